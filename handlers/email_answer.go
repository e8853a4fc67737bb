package handlers

import (
	"encoding/json"
	"fmt"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/store"
)

func emailToAPI(e store.Email) (*gen.Email, error) {
	as := e.Addresses.V
	out := &gen.Email{
		Object: "email", ID: e.ID, Status: string(e.Status), Expired: e.ExpiredAt != nil, From: senderToAPI(as), To: mailboxes(as.To),
		Cc:  nullMailboxes(as.Cc),
		Bcc: nullMailboxes(as.Bcc), ReplyTo: gen.NilString{Null: true}, Subject: e.Subject, HTML: gen.NilString{Null: true},
		Text: gen.NilString{Null: true}, Tags: labelsToAPI(e.Tags.V), Metadata: gen.FreeObject{}, Category: string(e.Category),
		Recipients: make([]gen.Recipient, 0, len(e.Recipients)), CreatedAt: e.CreatedAt.Time, ScheduledAt: nilTime(e.ScheduledAt),
		SentAt: nilTime(e.SentAt), DeliveredAt: nilTime(e.DeliveredAt), OpenedAt: nilTime(e.OpenedAt), TestMode: e.TestMode,
		BatchID: nilString(e.BatchID),
	}
	if len(as.ReplyTo) > 0 {
		out.ReplyTo = gen.NewNilString(mailbox(as.ReplyTo[0]))
	}
	for _, r := range e.Recipients {
		out.Recipients = append(out.Recipients, recipientToAPI(r))
	}
	if c := e.Content; c != nil && c.Body != nil {
		out.HTML, out.Text = emptyIsNull(c.Body.V.HTML), emptyIsNull(c.Body.V.Text)
	}
	if err := json.Unmarshal(e.Metadata.V, &out.Metadata); err != nil {
		return nil, fmt.Errorf("metadata of an email: %w", err)
	}
	return out, nil
}

func emailCreatedToAPI(e store.Email) *gen.EmailCreated {
	return &gen.EmailCreated{
		Object: "email", ID: e.ID, Status: string(e.Status), From: senderToAPI(e.Addresses.V), To: mailboxes(e.Addresses.V.To),
		Subject: e.Subject, CreatedAt: e.CreatedAt.Time, ScheduledAt: nilTime(e.ScheduledAt), TestMode: e.TestMode,
	}
}

func batchToAPI(b store.Batch) *gen.EmailBatch {
	out := &gen.EmailBatch{Object: "email.batch", ID: b.ID, Count: len(b.Emails)}
	for _, e := range b.Emails {
		c := emailCreatedToAPI(e)
		out.Emails = append(out.Emails, gen.EmailInBatch{
			Object: c.Object, ID: c.ID, Status: c.Status, From: c.From, To: c.To, Subject: c.Subject, CreatedAt: c.CreatedAt,
			ScheduledAt: c.ScheduledAt, TestMode: c.TestMode, BatchID: b.ID,
		})
	}
	return out
}

func senderToAPI(as mail.Addresses) string {
	if as.From == nil {
		return ""
	}
	return mailbox(*as.From)
}
