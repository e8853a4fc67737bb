package store

import (
	"slices"
	"strings"
	"time"
)

// RecipientState is how far the delivery to a recipient had come at an event.
type RecipientState struct {
	Status   RecipientStatus `json:"status"`
	Attempts int             `json:"attempts,omitempty"`
}

// numberedState is the state of a recipient with the recipient's number.
type numberedState struct {
	seq int64
	RecipientState
}

// moments replays what a batch makes of the recipients of messages, so that each
// event keeps the state at its moment, not that at the end of the batch.
type moments map[int64][]numberedState // by message

// stepEvents are the events of the steps of progress.
var stepEvents = map[RecipientStatus]EventType{
	RecipientSent: EventMessageSent, RecipientDelivered: EventMessageDelivered, RecipientOpened: EventEmailOpened, RecipientClicked: EventEmailClicked,
}

// newMoments returns the states before the outcomes, given those after them.
func newMoments(after map[int64][]numberedState, outcomes []outcome) moments {
	m := moments(after)
	for _, o := range slices.Backward(outcomes) { // the first of a recipient's outcomes wins
		if s := m.find(&o); s != nil {
			s.Status = o.old
		}
	}
	return m
}

func (m moments) find(o *outcome) *numberedState {
	states := m[o.messageSeq]
	i := slices.IndexFunc(states, func(s numberedState) bool { return s.seq == o.recipientSeq })
	if i < 0 {
		return nil
	}
	return &states[i]
}

// step moves the recipient of an outcome to where one of the outcome's events,
// the last or another, says that it is.
func (m moments) step(o *outcome, typ EventType, last bool) {
	s := m.find(o)
	if s == nil {
		return
	}
	if last {
		s.Status = o.Status
		return
	}
	if i := slices.IndexFunc(progress, func(r RecipientStatus) bool { return stepEvents[r] == typ }); i > slices.Index(progress, s.Status) {
		s.Status = progress[i]
	}
}

// of returns the status of a message and the states of its recipients.
func (m moments) of(messageSeq int64) (status MessageStatus, states []RecipientState) {
	statuses := make([]RecipientStatus, 0, len(m[messageSeq]))
	for _, s := range m[messageSeq] {
		statuses, states = append(statuses, s.Status), append(states, s.RecipientState)
	}
	return statusOf(statuses), states
}

// initialStates are those of the recipients of a new message.
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

// AsOf makes of the message what it was at an event with this data.
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

// AsOf makes of the email what it was at an event with this data.
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

// namesRecipient says whether events of this type are about one recipient.
func namesRecipient(typ EventType) bool {
	switch _, what, _ := strings.Cut(string(typ), "."); what {
	case "queued", "scheduled", "cancelled", "received":
		return false
	}
	return true
}

// scheduledEvent is the data of the event of an email that is scheduled.
func scheduledEvent(at *Time) string {
	return `{"status":"` + string(EmailScheduled) + `","scheduled_at":"` + at.UTC().Format(time.RFC3339Nano) + `"}`
}
