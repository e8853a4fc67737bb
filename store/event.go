package store

import (
	"context"
	"time"
)

// EventLife is how long events are kept.
const EventLife = 30 * 24 * time.Hour

// EventType names what happened.
type EventType string

// The events of messages.
const (
	EventMessageReceived   EventType = "message.received"
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
	EventDraftSent     EventType = "draft.sent"
	EventDraftRejected EventType = "draft.rejected"
)

// EventDomainDegraded tells that a required DNS record of a verified domain is
// gone.
const EventDomainDegraded EventType = "domain.health.degraded"

// EventWebhookTest is sent to one endpoint, because somebody asked for it.
const EventWebhookTest EventType = "webhook.test"

// EventInboxDeleted ends the waits for mail on other nodes. No client sees it.
const EventInboxDeleted EventType = "inbox.deleted"

// Internal reports whether clients do not see events of this type in the log.
func (t EventType) Internal() bool { return t == EventWebhookTest || t == EventInboxDeleted }

// Event is one entry of the log of what happened.
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
	// Data is an EventData, a DraftEventData, a DomainEventData or a
	// WebhookEventData in JSON.
	Data      string `db:"data"`
	CreatedAt Time   `db:"created_at"`
}

const eventColumns = `e.seq, e.account_id, e.id, e.type, i.id AS inbox_id, m.id AS message_id, m.seq AS message_seq, e.test_mode, e.data, e.created_at`

const eventTables = ` FROM events e LEFT JOIN inboxes i ON i.seq = e.inbox_seq LEFT JOIN messages m ON m.seq = e.message_seq`

// WebhookEventData is what a test event keeps.
type WebhookEventData struct {
	WebhookID string `json:"webhook_id"`
}

// DraftEventData is what an event about a draft keeps. It holds no content
// either.
type DraftEventData struct {
	DraftID string      `json:"draft_id"`
	Status  DraftStatus `json:"status"`
}

// EventData is what an event keeps beside the resource that it is about. It
// holds no content of mail, so that retention has nothing to delete here.
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
	// Response is what the other server said.
	Response string `json:"response,omitempty"`
	// Soft says of a bounce that it was not refused for good: the retries were used
	// up.
	Soft bool `json:"soft,omitempty"`
	// Code, Enhanced and Reason are of a bounce that came back as a mail: there the
	// response does not begin with them.
	Code     int    `json:"code,omitempty"`
	Enhanced string `json:"enhanced,omitempty"`
	Reason   string `json:"reason,omitempty"`
	// Bot says of an open or a click that a machine did it, and Link what was
	// clicked; a simulated click has none.
	Bot  bool   `json:"bot,omitempty"`
	Link string `json:"link,omitempty"`
}

// SweepEvents deletes some of the events that are older than EventLife, and
// returns how many; 0 means that there were none.
func (s *Store) SweepEvents(ctx context.Context) (int, error) {
	if may, err := s.mayDelete(ctx); !may {
		return 0, err
	}
	return s.sweepOld(ctx, "events", EventLife)
}
