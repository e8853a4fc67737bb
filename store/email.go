package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// The states that an email can be in and a message of an inbox cannot. Sending
// is not stored: an email is it while it is queued and has been tried.
const (
	EmailScheduled MessageStatus = "scheduled"
	EmailSending   MessageStatus = "sending"
	EmailOpened    MessageStatus = "opened"
	EmailClicked   MessageStatus = "clicked"
	EmailCancelled MessageStatus = "cancelled"
)

// Category says what an email is for.
type Category string

// The categories.
const (
	CategoryTransactional Category = "transactional"
	CategoryMarketing     Category = "marketing"
)

// Email is a mail that belongs to no inbox: an outbound message with what only
// emails have. Its id begins with em_, and what it says is kept as it was given.
type Email struct {
	Message
	// FromInbox is the inbox whose address it is sent from, nil when it is
	// nobody's.
	FromInbox   *int64                `db:"from_inbox"`
	BatchID     *string               `db:"batch_id"`
	Category    Category              `db:"category"`
	Tags        JSON[Labels]          `db:"tags"`
	Metadata    JSON[json.RawMessage] `db:"metadata"` // an object
	ScheduledAt *Time                 `db:"scheduled_at"`
	OpenedAt    *Time                 `db:"opened_at"`
}

// Labels are values by name: strings, numbers, booleans or null, each as the JSON
// that it was written as.
type Labels map[string]json.RawMessage

// labelText is the text by which a label is found: that of a string, and a number
// or boolean as it was written.
func labelText(v json.RawMessage) string {
	var s string
	if err := json.Unmarshal(v, &s); err != nil {
		return string(v)
	}
	return s
}

// NewEmail is an email to be sent. It holds, of the message, ID, when it is given
// out already, AccountID, TestMode,
// FromEmail, Addresses, Subject, HeaderID, Automated, Size, Content and Recipients
// (Email, Domain, Kind); and FromInbox, Category, Tags, Metadata and, to be sent
// later, ScheduledAt. Everything else is the store's to fill in, in the copy that
// it returns.
type NewEmail struct {
	Email
	// Policy is that of FromInbox which the email was held against. Empty: it was
	// held against none.
	Policy SendPolicy
	// CreatedBy is the id of the key or user who sends it.
	CreatedBy string
}

// EnqueueEmail accepts an email: it is stored with its recipients, which are due
// at once or when it is scheduled, and returned. With once, whose row is the
// Email, the answer is stored too. ErrNotFound when the inbox that it is from is
// deleted, ErrPolicyChanged when that has another policy than n.
func (s *Store) EnqueueEmail(ctx context.Context, n *NewEmail, once *Once) (Email, error) {
	all, err := s.enqueueEmails(ctx, "enqueue email", []*NewEmail{n}, hotWrite{once: once})
	if err != nil {
		return Email{}, err
	}
	return all[0], nil
}

// Batch is emails that were sent by one call.
type Batch struct {
	ID     string
	Emails []Email
}

// EnqueueBatch is EnqueueEmail for many emails at once, all or none. The row of
// once is the Batch.
func (s *Store) EnqueueBatch(ctx context.Context, ns []*NewEmail, once *Once) (Batch, error) {
	const what = "enqueue batch"
	if len(ns) == 0 {
		return Batch{}, errors.New(what + ": no email")
	}
	id := NewID("batch_", s.now())
	for _, n := range ns {
		n.BatchID = &id
	}
	all, err := s.enqueueEmails(ctx, what, ns, hotWrite{once: once, batchID: id})
	return Batch{id, all}, err
}

func (s *Store) enqueueEmails(ctx context.Context, what string, ns []*NewEmail, w hotWrite) ([]Email, error) {
	for _, n := range ns {
		h, err := newHotEmail(n, s.now())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		w.emails = append(w.emails, h)
	}
	// Nothing else is held for them, so any committer may write them.
	if err := s.do(ctx, hash64(w.emails[0].msg.ID)&(1<<62-1), w); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return emailsOf(w.emails), nil
}

// hotEmail is a new email on its way into the database.
type hotEmail struct {
	*hotMessage
	email          Email // without its Message
	createdBy      string
	tags, metadata string
}

func newHotEmail(n *NewEmail, now time.Time) (*hotEmail, error) {
	m := n.Message
	m.Direction, m.Status = DirectionOut, MessageQueued
	if n.ScheduledAt != nil {
		m.Status = EmailScheduled
	}
	held := n.Policy
	if n.FromInbox == nil {
		held = ""
	}
	h, err := newHotMessage(&NewMessage{Message: m, Policy: held}, now)
	if err != nil {
		return nil, err
	}
	if h.msg.ID = m.ID; m.ID == "" {
		h.msg.ID = NewID("em_", now)
	}
	e := &hotEmail{hotMessage: h, email: n.Email, createdBy: n.CreatedBy, tags: "{}", metadata: "{}"}
	if e.email.Tags.V == nil {
		e.email.Tags.V = Labels{}
	}
	if len(e.email.Metadata.V) == 0 {
		e.email.Metadata.V = json.RawMessage("{}")
	}
	tags, err := json.Marshal(e.email.Tags.V)
	e.tags, e.metadata = string(tags), string(e.email.Metadata.V)
	return e, errIn("write JSON columns", err)
}

// emailsOf are the emails as stored.
func emailsOf(hs []*hotEmail) []Email {
	out := make([]Email, len(hs))
	for i, h := range hs {
		out[i] = h.email
		out[i].Message = h.msg
		out[i].show()
	}
	return out
}

// show gives an email and its recipients the states that are not stored: what
// has been tried is being sent, and what is not queued yet, or never will be,
// waits with the whole.
func (e *Email) show() {
	waits := map[MessageStatus]RecipientStatus{EmailScheduled: RecipientScheduled, EmailCancelled: RecipientCancelled}[e.Status]
	for i := range e.Recipients {
		r := &e.Recipients[i]
		switch {
		case r.Status != RecipientQueued:
		case waits != "":
			r.Status = waits
		case r.Attempts > 0:
			r.Status = RecipientSending
			if e.Status == MessageQueued {
				e.Status = EmailSending
			}
		}
	}
}
