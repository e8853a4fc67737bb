package cli

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/postroom/postroom/gen"
)

func (p Program) webhookCommand() *cobra.Command {
	list := &cobra.Command{Use: "list", Short: "List webhook endpoints, newest first"}
	return Group(&cobra.Command{Use: "webhook", Short: "Manage, test and replay webhooks"},
		p.webhookCreateCommand(),
		listing(p, list, []string{"ID", "STATUS", "URL", "EVENTS", "INBOXES"}, func(w gen.WebhookEndpoint) []string {
			return []string{w.ID, activity(w.Active, w.DisabledReason), w.URL, short(allOr(w.Events), 60), short(allOr(w.InboxIds), 60)}
		}, func(ctx context.Context, a *api, page gen.OptInt) iter.Seq2[gen.WebhookEndpoint, error] {
			return a.Webhooks(ctx, gen.ListWebhooksParams{Limit: page})
		}),
		p.webhookGetCommand(),
		p.deletion("delete WEBHOOK", "Delete a webhook endpoint", "webhook endpoint %s", (*api).byID, func(ctx context.Context, a *api, id string) (any, error) {
			return a.DeleteWebhook(ctx, gen.DeleteWebhookParams{WebhookID: id})
		}),
		p.webhookTestCommand(), p.webhookReplayCommand())
}

func eventTypes(names []string) (gen.OptNilWebhookEvents, error) {
	var types gen.WebhookEvents
	for _, name := range names {
		one, err := oneOf(name, gen.EventType("").AllValues())
		if err != nil {
			return gen.OptNilWebhookEvents{}, UsageError{fmt.Errorf("no event %q: %w", name, err)}
		}
		types = append(types, one)
	}
	if len(types) == 0 {
		return gen.OptNilWebhookEvents{}, nil
	}
	return gen.NewOptNilWebhookEvents(types), nil
}

func (p Program) webhookCreateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "create URL",
		Short:   "Create a webhook endpoint and print its secret once",
		Example: "  postroom webhook create https://app.example.com/hooks --event message.received --inbox signup@agents.example.com",
	}
	events := cmd.Flags().StringSlice("event", nil, "type of event to send (repeatable; default: all)")
	inboxes := cmd.Flags().StringSlice("inbox", nil, "only events of this inbox, by ID or address (repeatable; default: all)")
	return p.overAPI(cmd, func(ctx context.Context, a *api, args []string) error {
		types, err := eventTypes(*events)
		if err != nil {
			return err
		}
		req := &gen.WebhookCreate{URL: gen.WebhookUrl(args[0]), Events: types}
		var ids gen.WebhookInboxIds
		for _, inbox := range *inboxes {
			id, err := a.inboxID(ctx, inbox)
			if err != nil {
				return err
			}
			ids = append(ids, id)
		}
		if len(ids) > 0 {
			req.InboxIds.SetTo(ids)
		}
		made, err := a.CreateWebhook(ctx, req)
		return a.show(made, err, func(t *table) { t.row(made.ID, made.Secret) })
	})
}

// allOr lists names. None means all.
func allOr(names []string) string {
	if len(names) == 0 {
		return "all"
	}
	return strings.Join(names, ", ")
}

// activity says whether an endpoint gets events.
func activity(active bool, reason gen.NilString) string {
	if active {
		return "active"
	}
	return strings.TrimSpace("off " + reason.Or(""))
}

func (p Program) webhookGetCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "get WEBHOOK", Short: "Show a webhook endpoint"}
	return p.named(cmd, (*api).byID, func(ctx context.Context, a *api, id string) error {
		w, err := a.GetWebhook(ctx, gen.GetWebhookParams{WebhookID: id})
		return a.show(w, err, func(t *table) {
			t.row("ID", w.ID)
			t.row("URL", w.URL)
			t.row("Status", activity(w.Active, w.DisabledReason))
			t.row("Events", allOr(w.Events))
			t.row("Inboxes", allOr(w.InboxIds))
			t.row("Created", when(w.CreatedAt))
		})
	})
}

func (p Program) webhookTestCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "test WEBHOOK", Short: "Send a test event and show the response"}
	return p.named(cmd, (*api).byID, func(ctx context.Context, a *api, id string) error {
		r, err := a.TestWebhook(ctx, gen.TestWebhookParams{WebhookID: id})
		if err := a.show(r, err, func(t *table) {
			t.row("Status", fmt.Sprint(r.StatusCode))
			t.row("Time", fmt.Sprintf("%d ms", r.ResponseTimeMs))
			t.field("Error", r.Error.Or(""))
		}); err != nil || r.Success {
			return err
		}
		return fmt.Errorf("the endpoint did not accept the test event")
	})
}

func (p Program) webhookReplayCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "replay WEBHOOK",
		Short:   "Send the events of the past again, in order",
		Example: "  postroom webhook replay wh_01k5 --since 24h --event message.received",
	}
	since := momentFlag(cmd, "since", "since this time, or this long ago, such as 10m (required)")
	events := cmd.Flags().StringSlice("event", nil, "type of event to send (repeatable; default: those of the endpoint)")
	mustGive(cmd, "since")
	return p.named(cmd, (*api).byID, func(ctx context.Context, a *api, id string) error {
		types, err := eventTypes(*events)
		if err != nil {
			return err
		}
		r, err := a.ReplayWebhook(ctx, &gen.WebhookReplay{Since: *since, Types: types}, gen.ReplayWebhookParams{WebhookID: id})
		return a.show(r, err, func(t *table) {
			t.row("Queued", fmt.Sprintf("%d events", r.Queued))
			if r.HasMore {
				t.row("There are more events. Replay again with --since " + r.Until.Format(time.RFC3339Nano))
			}
		})
	})
}
