package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/postroom/postroom/gen"
)

func (p Program) claimCommand() *cobra.Command {
	return Group(&cobra.Command{Use: "claim", Short: "Share the messages of an inbox among workers"},
		p.claimNextCommand(),
		p.claimUpdateCommand("extend", "Keep a claimed message for longer", gen.ClaimUpdateActionExtend),
		p.claimUpdateCommand("release", "Let others have a claimed message", gen.ClaimUpdateActionRelease),
		p.claimUpdateCommand("done", "Say that a claimed message is done: no one gets it again", gen.ClaimUpdateActionDone))
}

const claimFor = 5 * time.Minute

func (p Program) claimNextCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "next", Short: "Claim the oldest message that no one has claimed; exits with 1 if there is none",
		Example: "  postroom claim next --inbox orders@mail.example.com --for 10m --timeout 1m --json",
	}
	inbox := cmd.Flags().String("inbox", "", "only of this inbox, by ID or address")
	from := cmd.Flags().String("from", "", "only from this address, or *@domain")
	subject := cmd.Flags().String("subject", "", "only with this text in the subject")
	label := cmd.Flags().String("label", "", "only with this label")
	lasts := spanFlag(cmd, "for", claimFor, "how long the claim lasts")
	timeout := spanFlag(cmd, "timeout", 0, "how long to wait for a message, up to 2m")
	return p.overAPI(cmd, func(ctx context.Context, a *api, _ []string) error {
		id, err := a.inboxID(ctx, *inbox)
		if err != nil {
			return err
		}
		req := &gen.MessageClaim{
			InboxID: opt(id), From: optNil(*from), Subject: opt(*subject), Timeout: gen.NewOptInt(int(timeout.Seconds())),
			Seconds: gen.NewOptClaimSeconds(gen.ClaimSeconds(lasts.Seconds())),
		}
		given(&req.Label, gen.Label(*label))
		res, err := a.ClaimMessage(ctx, req)
		if err == nil && res.Claim.Null {
			return fmt.Errorf("there is no message to claim")
		}
		return a.show(res, err, func(t *table) {
			t.row("Token", fmt.Sprint(res.Claim.Value.Token))
			t.row("Until", when(res.Claim.Value.ExpiresAt.Value))
			m := res.Message.Value
			showMessage(t, &m, m.Text.Or(""))
		})
	})
}

func (p Program) claimUpdateCommand(name, short string, action gen.ClaimUpdateAction) *cobra.Command {
	cmd := &cobra.Command{Use: name + " MESSAGE", Short: short, Example: "  postroom claim " + name + " msg_01k5 --token 1"}
	token := cmd.Flags().Int64("token", 0, "token of the claim")
	mustGive(cmd, "token")
	lasts := new(claimFor)
	if action == gen.ClaimUpdateActionExtend {
		lasts = spanFlag(cmd, "for", claimFor, "how long the claim lasts from now")
	}
	return p.named(cmd, (*api).byID, func(ctx context.Context, a *api, id string) error {
		req := &gen.ClaimUpdate{Token: *token, Action: action, Seconds: gen.NewOptClaimSeconds(gen.ClaimSeconds(lasts.Seconds()))}
		c, err := a.UpdateClaim(ctx, req, gen.UpdateClaimParams{MessageID: id})
		return a.show(c, err, func(t *table) { t.row(c.MessageID, c.Status) })
	})
}

// marksFlags adds the flags that label a message or thread and mark it as read.
func marksFlags(cmd *cobra.Command) func() *gen.Marks {
	add := cmd.Flags().StringArray("add", nil, "label to add (repeatable)")
	remove := cmd.Flags().StringArray("remove", nil, "label to remove (repeatable)")
	read := cmd.Flags().Bool("read", false, "mark as read; --read=false marks as unread")
	return func() *gen.Marks {
		m := &gen.Marks{AddLabels: labels(*add), RemoveLabels: labels(*remove)}
		if cmd.Flags().Changed("read") {
			m.Read.SetTo(*read)
		}
		return m
	}
}

func labels(names []string) []gen.Label {
	all := make([]gen.Label, len(names))
	for i, name := range names {
		all[i] = gen.Label(name)
	}
	return all
}

func (p Program) messageMarkCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "mark MESSAGE", Short: "Label a message, or mark it as read", Example: "  postroom message mark msg_01k5 --add urgent --read"}
	marks := marksFlags(cmd)
	return p.named(cmd, (*api).byID, func(ctx context.Context, a *api, id string) error {
		m, err := a.UpdateMessage(ctx, marks(), gen.UpdateMessageParams{MessageID: id})
		return a.show(m, err, func(t *table) { t.row(m.ID, strings.Join(m.Labels, ", ")) })
	})
}

func (p Program) threadMarkCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "mark THREAD", Short: "Label a thread, or mark its messages as read", Example: "  postroom thread mark thr_01k5 --remove urgent"}
	marks := marksFlags(cmd)
	return p.named(cmd, (*api).byID, func(ctx context.Context, a *api, id string) error {
		th, err := a.UpdateThread(ctx, marks(), gen.UpdateThreadParams{ThreadID: id})
		return a.show(th, err, func(t *table) { t.row(th.ID, strings.Join(th.Labels, ", ")) })
	})
}
