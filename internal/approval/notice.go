package approval

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/domains"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/compose"
	"github.com/postroom/postroom/internal/mail/plaintext"
	"github.com/postroom/postroom/store"
)

const (
	// noticesEvery is the interval of looking for new drafts.
	noticesEvery = 3 * time.Second
	// maxQuoted is how much of a text a notice quotes, in bytes.
	maxQuoted = 16 << 10
	// maxSubject is how much of the subject of a draft a notice has, in bytes.
	maxSubject = 200
)

// Notices configures the emails to approvers.
type Notices struct {
	// Approvers are the email addresses that get an email about each pending draft.
	Approvers []string
	// Links creates the links to the drafts.
	Links *Links
	// Domain is the mail domain of the installation, which the emails come from.
	Domain string
}

// Notify sends the emails about pending drafts that are due, and returns how many.
// What fails stays for a later round.
func (w *Worker) Notify(ctx context.Context) (sent int, err error) {
	to, err := w.approvers(ctx)
	if err != nil || len(to) == 0 {
		return 0, err
	}
	accounts, err := w.cfg.Store.AccountsToNotify(ctx)
	faults := []error{err}
	for _, account := range accounts {
		n, err := w.cfg.Store.ClaimDraftNotices(ctx, account)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		for _, d := range n.Each {
			faults = append(faults, w.announce(ctx, to, &sent, d))
		}
		if len(n.Digest) > 0 {
			faults = append(faults, w.announce(ctx, to, &sent, n.Digest...))
		}
	}
	return sent, errors.Join(faults...)
}

// approvers returns the approvers who get emails. An agent may have an inbox at any
// domain that this installation receives for, so no approver is at one.
func (w *Worker) approvers(ctx context.Context) ([]string, error) {
	var out []string
	for _, email := range w.cfg.Notices.Approvers {
		_, domain, _ := strings.Cut(email, "@")
		ours, err := domains.Receives(ctx, w.cfg.Store, w.cfg.Notices.Domain, domain)
		if err != nil {
			return nil, err
		}
		if ours {
			w.cfg.Log.WarnContext(ctx, "approver gets no emails, because inboxes can be made at the domain", "approver", email)
			continue
		}
		out = append(out, email)
	}
	return out, nil
}

// announce sends one email about drafts of an account to each approver, and records
// that.
func (w *Worker) announce(ctx context.Context, to []string, sent *int, ds ...store.Draft) error {
	var pending []*gen.Draft
	for _, d := range ds {
		as := asReader(ctx, d.AccountID)
		g, err := w.api.GetDraft(as, gen.GetDraftParams{DraftID: d.ID})
		if refused, ok := errors.AsType[*gen.ErrorStatusCodeWithHeaders](err); ok && refused.StatusCode == http.StatusNotFound {
			continue // its inbox has been deleted
		}
		if err != nil {
			return fmt.Errorf("read draft %s: %w", d.ID, err)
		}
		if g.Version == d.Version && g.Status == string(gen.DraftStatusPending) {
			pending = append(pending, g)
		}
	}
	for _, approver := range to {
		if len(pending) == 0 {
			break
		}
		subject, text, err := w.write(ctx, approver, ds[0].AccountID, len(ds) > 1, pending)
		if err == nil {
			err = w.send(ctx, approver, subject, text, pending)
		}
		if errors.Is(err, store.ErrIdempotencyRaced) {
			continue // another node sent it, and stopped before it recorded that
		}
		if err != nil {
			return fmt.Errorf("tell %s about draft %s: %w", approver, pending[0].ID, err)
		}
		*sent++
	}
	return w.cfg.Store.DraftsAnnounced(ctx, ds...)
}

// asReader returns the context of calls that read what an account has.
func asReader(ctx context.Context, account int64) context.Context {
	return httpapi.AsKey(ctx, store.Key{
		ID: store.SenderNotices, AccountID: account, Mode: store.KeyLive, Scopes: store.JSON[[]string]{V: []string{"read"}},
	})
}

// write returns the email about drafts of one account. What agents and strangers wrote
// is quoted, below the links.
func (w *Worker) write(ctx context.Context, approver string, account int64, digest bool, ds []*gen.Draft) (subject, text string, err error) {
	var b strings.Builder
	link := func(d *gen.Draft) string {
		return w.cfg.Notices.Links.URL(Link{AccountID: account, DraftID: d.ID, Version: d.Version, Approver: approver, Expires: w.cfg.Now().Add(linkTTL).Unix()})
	}
	const rules = "A link shows the draft. Nothing is sent until you press a button there.\nIt works for 24 hours. Do not forward this email.\n"
	if digest {
		fmt.Fprintf(&b, "%d drafts wait for your approval.\n\n", len(ds))
		for _, d := range ds {
			fmt.Fprintf(&b, "To %s\n> %s\n%s\n\n", addresses(d.To), oneLine(d.Subject), link(d))
		}
		b.WriteString(rules)
		return fmt.Sprintf("Approve %d drafts?", len(ds)), b.String(), nil
	}
	d := ds[0]
	as := asReader(ctx, account)
	in, err := w.api.GetInbox(as, gen.GetInboxParams{InboxID: d.InboxID})
	if err != nil {
		return "", "", err
	}
	fmt.Fprintf(&b, "A draft waits for your approval. Read it, and approve or reject it:\n\n%s\n\n%s\nFrom: %s\nTo: %s\n", link(d), rules, in.Address, addresses(d.To))
	for _, f := range []struct {
		name string
		of   []gen.MailAddress
	}{{"Cc", d.Cc}, {"Bcc", d.Bcc}} {
		if len(f.of) > 0 {
			fmt.Fprintf(&b, "%s: %s\n", f.name, addresses(f.of))
		}
	}
	if at, ok := d.ExpiresAt.Get(); ok {
		then := "rejected"
		if d.OnExpiry == string(store.ExpirySends) {
			then = "sent"
		}
		fmt.Fprintf(&b, "Without a decision it is %s at %s.\n", then, at.UTC().Format("2006-01-02 15:04 MST"))
	}
	for _, warning := range d.Warnings {
		fmt.Fprintf(&b, "Warning: %s\n", oneLine(warning.Message))
	}
	fmt.Fprintf(&b, "\nSubject:\n%s\nText:\n%s", quoted(oneLine(d.Subject)), quoted(d.Text.Or("(only HTML: open the link to see it)")))
	for _, file := range d.Attachments {
		fmt.Fprintf(&b, "Attachment:\n%s", quoted(oneLine(file.Filename)))
	}
	if err := w.writeSource(as, &b, d); err != nil {
		return "", "", err
	}
	return "Approve? " + oneLine(d.Subject), b.String(), nil
}

// writeSource adds the message that a draft replies to or forwards.
func (w *Worker) writeSource(ctx context.Context, b *strings.Builder, d *gen.Draft) error {
	id, ok := d.SourceMessageID.Get()
	if !ok {
		return nil
	}
	res, err := w.api.GetMessage(ctx, gen.GetMessageParams{MessageID: id})
	if refused, ok := errors.AsType[*gen.ErrorStatusCodeWithHeaders](err); ok && refused.StatusCode == http.StatusNotFound {
		return nil // deleted since
	}
	if err != nil {
		return err
	}
	what := "message of"
	if res.Message.TestMode {
		what = "simulated message, which was not sent by"
	}
	fmt.Fprintf(b, "\nIn response to the %s %s:\n%s", what, res.Message.From.Value.Email, quoted(res.Message.Text.Or("")))
	return nil
}

// send queues an email to an approver, once for the same drafts.
func (w *Worker) send(ctx context.Context, approver, subject, text string, ds []*gen.Draft) error {
	account, err := w.cfg.Store.NoticeAccount(ctx)
	if err != nil {
		return err
	}
	now := w.cfg.Now()
	id := store.NewID("em_", now)
	from, to := mail.Address{Name: "Postroom", Email: mail.NoticeName + "@" + w.cfg.Notices.Domain}, mail.Address{Email: approver}
	out := compose.Outgoing{
		Seed: id, HeaderID: "<" + id + "@" + w.cfg.Notices.Domain + ">", Date: now.UTC(), From: from, To: []mail.Address{to},
		ReplyTo: []mail.Address{to}, Subject: subject, Text: text, Headers: [][2]string{{"Auto-Submitted", "auto-generated"}},
	}
	var raw strings.Builder
	if _, err := out.WriteTo(&raw); err != nil {
		return fmt.Errorf("compose: %w", err)
	}
	versions := sha256.New()
	for _, d := range ds {
		_, _ = fmt.Fprintf(versions, "%s/%d ", d.ID, d.Version) // a hash never returns an error
	}
	_, domain, _ := strings.Cut(approver, "@")
	_, err = w.cfg.Store.EnqueueEmail(ctx, &store.NewEmail{
		Email: store.Email{
			Message: store.Message{
				ID: id, AccountID: account, FromEmail: from.Email, Subject: subject, HeaderID: out.HeaderID, Automated: true, Size: int64(raw.Len()),
				Addresses:  store.JSON[mail.Addresses]{V: mail.Addresses{From: &from, To: out.To, ReplyTo: out.ReplyTo}},
				Recipients: []store.Recipient{{Email: approver, Domain: domain, Kind: "to"}},
				Content: &store.Content{
					Raw: []byte(raw.String()), Snippet: plaintext.Snippet(text), Body: &store.JSON[store.Body]{V: store.Body{Text: text}},
					Attachments: store.JSON[[]mail.Attachment]{V: []mail.Attachment{}},
				},
			},
			Category: store.CategoryTransactional,
		},
		CreatedBy: store.Sender{ID: store.SenderNotices}, Text: text,
	}, &store.Once{
		AccountID: account, Operation: "tell " + approver, Key: hex.EncodeToString(versions.Sum(nil)), BodyHash: versions.Sum(nil),
		Render: func(any) (store.CachedResponse, error) {
			return store.CachedResponse{Status: http.StatusCreated, Kind: "Email", Body: json.RawMessage(`{}`)}, nil
		},
	})
	return err
}

// addresses lists email addresses.
func addresses(all []gen.MailAddress) string {
	var out []string
	for _, a := range all {
		out = append(out, a.Email)
	}
	return strings.Join(out, ", ")
}

// oneLine shortens a text that a stranger may have written to one line.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > maxSubject {
		s = strings.ToValidUTF8(s[:maxSubject], "") + "…"
	}
	return s
}

// quoted returns a text with a mark before each line.
func quoted(s string) string {
	if len(s) > maxQuoted {
		s = strings.ToValidUTF8(s[:maxQuoted], "") + "\n… The link shows the rest."
	}
	return "> " + strings.ReplaceAll(strings.TrimRight(strings.ReplaceAll(s, "\r", ""), "\n"), "\n", "\n> ") + "\n"
}
