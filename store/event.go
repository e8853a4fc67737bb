package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
)

// EventType names what happened.
type EventType string

// The events of messages.
const (
	EventMessageReceived EventType = "message.received"
	// EventMessageQuarantined shows only where the message is from.
	EventMessageQuarantined EventType = "message.quarantined"
	// EventMessageBlocked reports a message that lists refused. Nothing of it is stored.
	EventMessageBlocked    EventType = "message.blocked"
	EventMessageQueued     EventType = "message.queued"
	EventMessageSent       EventType = "message.sent"
	EventMessageDelivered  EventType = "message.delivered"
	EventMessageBounced    EventType = "message.bounced"
	EventMessageComplained EventType = "message.complained"
	EventMessageFailed     EventType = "message.failed"
)

// The events of emails.
const (
	EventEmailQueued     EventType = "email.queued"
	EventEmailScheduled  EventType = "email.scheduled"
	EventEmailSent       EventType = "email.sent"
	EventEmailDelivered  EventType = "email.delivered"
	EventEmailOpened     EventType = "email.opened"
	EventEmailClicked    EventType = "email.clicked"
	EventEmailBounced    EventType = "email.bounced"
	EventEmailComplained EventType = "email.complained"
	EventEmailFailed     EventType = "email.failed"
	EventEmailCancelled  EventType = "email.cancelled"
	// EventEmailDelayed reports that the first attempt for a recipient failed for now.
	EventEmailDelayed EventType = "email.delivery_delayed"
	// EventEmailSuppressed reports a recipient that the email is not sent to.
	EventEmailSuppressed EventType = "email.suppressed"
)

// The events of the suppression list.
const (
	EventUnsubscribed       EventType = "contact.unsubscribed"
	EventSuppressionCreated EventType = "suppression.created" // or covers more mail
	EventSuppressionDeleted EventType = "suppression.deleted"
)

// ofEmail are the events of an email in the place of those of a message.
var ofEmail = map[EventType]EventType{
	EventMessageSent:       EventEmailSent,
	EventMessageDelivered:  EventEmailDelivered,
	EventMessageBounced:    EventEmailBounced,
	EventMessageComplained: EventEmailComplained,
	EventMessageFailed:     EventEmailFailed,
}

// The events of drafts.
const (
	EventDraftCreated  EventType = "draft.created"
	EventDraftPending  EventType = "draft.pending" // created, edited, or the approval was undone
	EventDraftSent     EventType = "draft.sent"
	EventDraftRejected EventType = "draft.rejected"
)

// EventDomainDegraded reports that a required DNS record of a verified domain is
// missing.
const EventDomainDegraded EventType = "domain.health.degraded"

// EventWebhookTest is sent to one endpoint on request.
const EventWebhookTest EventType = "webhook.test"

// EventInboxDeleted ends the waits for messages on other nodes. Clients do not
// see it.
const EventInboxDeleted EventType = "inbox.deleted"

// Internal reports whether clients do not see events of this type in the log.
func (t EventType) Internal() bool { return t == EventWebhookTest || t == EventInboxDeleted }

// Event is one entry of the event log.
type Event struct {
	Seq       int64     `db:"seq"` // its place in the log
	AccountID int64     `db:"account_id"`
	ID        string    `db:"id"`
	Type      EventType `db:"type"`
	InboxID   *string   `db:"inbox_id"`   // of the events of messages and drafts
	MessageID *string   `db:"message_id"` // of the events of messages that are still there
	TestMode  bool      `db:"test_mode"`
	// MessageSeq is the message's number; nil when MessageID is.
	MessageSeq *int64 `db:"message_seq"`
	// Data is an EventData, a DraftEventData, a BlockedEventData, a DomainEventData, a SuppressionEventData or a
	// WebhookEventData in JSON.
	Data      string `db:"data"`
	CreatedAt Time   `db:"created_at"`
}

const eventColumns = `e.seq, e.account_id, e.id, e.type, i.id AS inbox_id, m.id AS message_id, m.seq AS message_seq, e.test_mode, e.data, e.created_at`

// eventNames are the eventColumns by their names.
const eventNames = `seq, account_id, id, type, inbox_id, message_id, message_seq, test_mode, data, created_at`

const eventTables = ` FROM events e LEFT JOIN inboxes i ON i.seq = e.inbox_seq LEFT JOIN messages m ON m.seq = e.message_seq`

// WebhookEventData is the data of a test event.
type WebhookEventData struct {
	WebhookID string `json:"webhook_id"`
}

// BlockedEventData is the data of an event about a refused message.
type BlockedEventData struct {
	From   string `json:"from"`    // address of the From header field; empty if it has none
	ListID string `json:"list_id"` // empty if no entry allows the sender
}

// SuppressionEventData is the data of an event about an entry of the suppression list,
// and of one about an unsubscribe, which has Email, Source and ContactID.
type SuppressionEventData struct {
	ID        string              `json:"id,omitempty"`
	Email     string              `json:"email"`
	Reason    SuppressionReason   `json:"reason,omitempty"`
	Category  SuppressionCategory `json:"category,omitempty"`
	Source    *string             `json:"source"`
	ContactID *string             `json:"contact_id,omitempty"`
	CreatedAt Time                `json:"created_at"`
}

// DraftEventData is the data of an event about a draft. It holds no content
// either.
type DraftEventData struct {
	DraftID string      `json:"draft_id"`
	Status  DraftStatus `json:"status"`
}

// EventData is the data of an event beside the resource. It holds no message
// content, so that retention has nothing to delete here.
type EventData struct {
	// Status is the message's at the moment of the event, and Recipients are the
	// states of its recipients, in their order. They are kept by events that are
	// about one recipient.
	Status     MessageStatus    `json:"status"`
	Recipients []RecipientState `json:"recipients,omitempty"`
	// ScheduledAt is of an email that was scheduled.
	ScheduledAt *Time `json:"scheduled_at,omitempty"`
	// Recipient is whose delivery the event is about.
	Recipient string `json:"recipient,omitempty"`
	// Response is what the remote server replied.
	Response string `json:"response,omitempty"`
	// Soft marks a bounce after the last retry, without a permanent failure.
	Soft bool `json:"soft,omitempty"`
	// Code, Enhanced and Reason are of a bounce that came back as a message: there the
	// response does not begin with them.
	Code     int    `json:"code,omitempty"`
	Enhanced string `json:"enhanced,omitempty"`
	Reason   string `json:"reason,omitempty"`
	// Bot reports that a machine opened or clicked. Link is the clicked link,
	// empty if simulated.
	Bot  bool   `json:"bot,omitempty"`
	Link string `json:"link,omitempty"`
}

// newEvent is an event to be written. Its notice has no id yet.
type newEvent struct {
	notice
	testMode bool
	data     any
}

// insertEvents writes events, and their deliveries to webhook endpoints.
func (s *Store) insertEvents(ctx context.Context, tx *sqlx.Tx, events []newEvent) error {
	rows, err := s.eventRows(ctx, tx, NewTime(s.now()), events...)
	if err != nil {
		return err
	}
	return s.insert(ctx, tx, rows...)
}

// sweepEvents deletes some of the events that are older than EventTTL and were counted.
func (s *Store) sweepEvents(ctx context.Context) (int, error) {
	if n, err := s.CountEvents(ctx); err != nil { // so that few wait for the next round
		return n, err
	}
	return s.sweepLog(ctx, "events", EventTTL, ` AND seq <= `+countedTo)
}

// ListMessageEvents returns a page of the events of an email or a sent message, oldest
// first. Events are kept for EventTTL.
func (s *Store) ListMessageEvents(ctx context.Context, accountID, messageSeq int64, p Page) (List[Event], error) {
	const q = `SELECT ` + eventColumns + eventTables + `
		WHERE e.account_id = $1 AND e.message_seq = $2 AND e.type NOT IN ('message.received', 'message.queued') AND e.seq > $3 ORDER BY e.seq LIMIT $4`
	scope := fmt.Sprintf("events/of/%d", messageSeq)
	var after position
	if p.Cursor != "" {
		var err error
		if after, err = s.cursors.read(scope, p.Cursor); err != nil {
			return List[Event]{}, err
		}
	}
	rows, err := readAll[Event](ctx, s, "events of a message", q, accountID, messageSeq, after.Seq, p.Limit+1)
	return page(s, scope, p.Limit, rows, func(e Event) position { return position{Seq: e.Seq} }), err
}

// MessagesOf returns messages with their content, by their numbers, unless their
// inbox is deleted. It leaves out messages that would exceed the memory limit.
func (s *Store) MessagesOf(ctx context.Context, seqs []int64) (map[int64]Message, error) {
	ms, err := s.messagesBySeq(ctx, seqs, &MessageFilter{}, false)
	if err != nil {
		return nil, err
	}
	n, err := s.fillPage(ctx, ms)
	if err != nil {
		return nil, err
	}
	return valued(ms[:n], seqOfMessage), nil
}

// EmailsOf is MessagesOf for emails.
func (s *Store) EmailsOf(ctx context.Context, seqs []int64) (map[int64]Email, error) {
	es, err := s.emailsBySeq(ctx, seqs)
	if err != nil {
		return nil, err
	}
	n, err := s.fillEmails(ctx, es)
	return valued(es[:n], func(e *Email) int64 { return e.Seq }), err
}

// RecipientState is the delivery state of a recipient at an event.
type RecipientState struct {
	Status   RecipientStatus `json:"status"`
	Attempts int             `json:"attempts,omitempty"`
}

// stepEvents are the events of the steps of progress.
var stepEvents = map[RecipientStatus]EventType{
	RecipientSent: EventMessageSent, RecipientDelivered: EventMessageDelivered, RecipientOpened: EventEmailOpened, RecipientClicked: EventEmailClicked,
}

func initialStates(rs []Recipient) []RecipientState {
	states := make([]RecipientState, len(rs))
	for i, r := range rs {
		states[i].Status = RecipientQueued
		if r.Status == RecipientSuppressed && r.Attempts == 0 {
			states[i].Status = RecipientSuppressed
		}
	}
	return states
}

// AsOf sets the message to its state at an event with this data.
func (m *Message) AsOf(e Event, data EventData) {
	m.Status = data.Status
	m.SentAt = until(m.SentAt, e, m.Status != MessageQueued)
	m.DeliveredAt = until(m.DeliveredAt, e, m.Status != MessageQueued && m.Status != MessageSent)
	states := data.Recipients
	if len(states) == 0 && !namesRecipient(e.Type) {
		states = initialStates(m.Recipients)
	}
	if len(states) != len(m.Recipients) { // an event of a version that kept none
		return
	}
	m.Recipients = slices.Clone(m.Recipients)
	for i := range m.Recipients {
		r := &m.Recipients[i]
		r.asOf(e, states[i])
		if data.Response != "" && r.Attempts > 0 && r.Email == data.Recipient {
			r.LastResponse = &data.Response
		}
	}
}

func (r *Recipient) asOf(e Event, was RecipientState) {
	if r.Attempts != was.Attempts || r.Status != was.Status && !slices.Contains(progress, r.Status) {
		r.LastResponse = nil // a later one
	}
	r.Status, r.Attempts = was.Status, was.Attempts
	r.SentAt = until(r.SentAt, e, r.Status != RecipientQueued)
	r.DeliveredAt = until(r.DeliveredAt, e, r.Status != RecipientQueued && r.Status != RecipientSent)
	r.BouncedAt = until(r.BouncedAt, e, !slices.Contains(progress, r.Status))
}

// AsOf sets the email to its state at an event with this data.
func (e *Email) AsOf(ev Event, data EventData) {
	e.Message.AsOf(ev, data)
	e.OpenedAt = until(e.OpenedAt, ev, !slices.Contains([]MessageStatus{MessageQueued, MessageSent, MessageDelivered}, e.Status))
	if data.ScheduledAt != nil {
		e.ScheduledAt = data.ScheduledAt
	}
	e.show()
}

// until returns at, if that was reached and is not after the event.
func until(at *Time, e Event, reached bool) *Time {
	if at == nil || !reached || at.After(e.CreatedAt.Time) {
		return nil
	}
	return at
}

func namesRecipient(typ EventType) bool {
	switch _, what, _ := strings.Cut(string(typ), "."); what {
	case "queued", "scheduled", "cancelled", "received", "quarantined":
		return false
	}
	return true
}

// scheduledEvent is the data of the event of an email that is scheduled.
func scheduledEvent(at *Time) string {
	return `{"status":"` + string(EmailScheduled) + `","scheduled_at":"` + at.UTC().Format(time.RFC3339Nano) + `"}`
}
