package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Attempt is what came of one try for one recipient.
type Attempt struct {
	// RecipientSeq, MessageSeq and Fence are as claimed. When the recipient has
	// been claimed again since, the attempt is not recorded.
	RecipientSeq int64
	MessageSeq   int64
	Fence        int64
	// Status is what the recipient is now; RecipientQueued means that there will
	// be another try.
	Status RecipientStatus
	// Soft says, for RecipientBounced, that nobody refused the mail for good.
	Soft bool
	// Next is when, for RecipientQueued, and nil otherwise.
	Next *Time
	// Untried says, for RecipientQueued, that there was no attempt after all, and
	// none is counted.
	Untried bool
	// Response is what the other server said, or why it was not reached. Only
	// its beginning is kept.
	Response string
	// Signature, when not empty, is what signing put before the raw message.
	// The first one is kept, and every later attempt sends the same bytes.
	Signature string
	// Suppress, when not empty, is why the recipient, whose address is EmailFold
	// without regard to case, is put on the account's list of those that are not
	// sent to.
	Suppress SuppressionReason
	// SuppressFor is the mail that the address is not sent; empty for all.
	SuppressFor SuppressionCategory
	EmailFold   string
}

// maxResponse bounds, in bytes, what is kept of another server's words.
const maxResponse = 1000

// RecordAttempt stores what came of an attempt, moves the message's status and
// writes the events. ErrState when another claim has taken the recipient since.
func (s *Store) RecordAttempt(ctx context.Context, a Attempt) error {
	err := a.check()
	if err == nil {
		err = s.do(ctx, a.MessageSeq, hotWrite{attempts: []*Attempt{&a}})
	}
	return errIn("record attempt", err)
}

// check refuses what would lose the recipient or try it for ever.
func (a *Attempt) check() error {
	switch {
	case a.Status == RecipientQueued && a.Next == nil:
		return errors.New("an attempt that is to be repeated has no time for it")
	case a.Status != RecipientQueued && a.Next != nil:
		return fmt.Errorf("an attempt that ended as %s has a time for another", a.Status)
	}
	return nil
}

// attemptEvents notes the events of the outcomes. Each keeps what the message was
// at its moment: of an email that is sent and delivered at once, email.sent says
// sent.
func (b *hotBatch) attemptEvents(outcomes []outcome, moved map[int64]Message, at moments) error {
	for _, o := range outcomes {
		m := moved[o.messageSeq]
		b.countOutcome(&o, &m)
		types := o.events()
		for i, typ := range types {
			at.step(&o, typ, i == len(types)-1)
			data, err := json.Marshal(o.eventData(at.of(o.messageSeq)))
			if err != nil {
				return fmt.Errorf("write event: %w", err)
			}
			if email, ok := ofEmail[typ]; ok && m.InboxSeq == 0 {
				typ = email
			}
			b.event(NewID("evt_", b.now.Time), typ, &m, string(data))
		}
	}
	return nil
}

// eventData is what the events of the outcome keep.
func (o *outcome) eventData(status MessageStatus, recipients []RecipientState) EventData {
	data := EventData{Status: status, Recipients: recipients, Recipient: o.email, Response: o.Response[:min(len(o.Response), maxResponse)]}
	if r := o.report; r != nil {
		data.Soft, data.Code, data.Enhanced, data.Reason, data.Bot, data.Link = r.Soft, r.Code, r.Enhanced, r.Reason, r.Bot, r.Link
		return data
	}
	data.Soft = o.Status == RecipientBounced && (o.Soft || strings.HasPrefix(o.Response, "4"))
	return data
}

// events are those that the outcome is told by.
func (o *outcome) events() []EventType {
	if o.report != nil {
		return o.told
	}
	return attemptEvents[o.Status]
}

// attemptEvents are the events of a recipient's new status. A server that takes
// the mail for its own user both got it and delivered it.
var attemptEvents = map[RecipientStatus][]EventType{
	RecipientSent:      {EventMessageSent},
	RecipientDelivered: {EventMessageSent, EventMessageDelivered},
	RecipientOpened:    {EventMessageSent, EventMessageDelivered, EventEmailOpened},
	RecipientClicked:   {EventMessageSent, EventMessageDelivered, EventEmailOpened, EventEmailClicked},
	RecipientBounced:   {EventMessageBounced},
	RecipientFailed:    {EventMessageFailed},
	// Nothing else tells that nothing will come of it.
	RecipientSuppressed: {EventMessageFailed},
	// Who complains has got the mail.
	RecipientComplained: {EventMessageSent, EventMessageDelivered, EventMessageComplained},
}

// statusOf is the status of a message: the furthest that any recipient has
// reached; when all ended badly, bounced if one bounced, else failed; and
// complained wins over all.
func statusOf(rs []RecipientStatus) MessageStatus {
	has := func(r RecipientStatus) bool { return slices.Contains(rs, r) }
	switch {
	case has(RecipientComplained):
		return MessageComplained
	case has(RecipientClicked):
		return EmailClicked
	case has(RecipientOpened):
		return EmailOpened
	case has(RecipientDelivered):
		return MessageDelivered
	case has(RecipientSent):
		return MessageSent
	case has(RecipientQueued):
		return MessageQueued
	case has(RecipientBounced):
		return MessageBounced
	}
	return MessageFailed
}
