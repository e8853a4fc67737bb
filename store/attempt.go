package store

import (
	"cmp"
	"context"
	"database/sql"
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
	// Response is what the other server said, or why it was not reached. Only
	// its beginning is kept.
	Response string
	// Signature, when not empty, is what signing put before the raw message.
	// The first one is kept, and every later attempt sends the same bytes.
	Signature string
	// Suppress, when not empty, is why the recipient, whose address is EmailFold
	// without regard to case, is put on the account's list of those that are not
	// sent to.
	Suppress  SuppressionReason
	EmailFold string
}

// maxResponse bounds, in bytes, what is kept of another server's words.
const maxResponse = 1000

const (
	lockMessages  = `SELECT seq FROM messages WHERE seq IN ({list}) ORDER BY seq`
	updateAttempt = `
	UPDATE recipients
	   SET leased = false, status = $3, next_attempt_at = $4, last_response = $5,
	       sent_at = coalesce(sent_at, cast($6 AS bigint)), delivered_at = coalesce(delivered_at, cast($7 AS bigint)),
	       bounced_at = coalesce(bounced_at, cast($8 AS bigint))
	 WHERE seq = $1 AND fence = $2 AND next_attempt_at IS NOT NULL
	RETURNING message_seq, email`
	keepSignature     = `UPDATE contents SET signature = $2 WHERE message_seq = $1 AND signature IS NULL`
	recipientStatuses = `SELECT status FROM recipients WHERE message_seq = $1`
	moveMessage       = `
	UPDATE messages
	   SET status = $2, sent_at = coalesce(sent_at, cast($3 AS bigint)), delivered_at = coalesce(delivered_at, cast($4 AS bigint))
	 WHERE seq = $1
	RETURNING seq, account_id, coalesce(inbox_seq, 0), test_mode, status`
	openEmail = `UPDATE emails SET opened_at = coalesce(opened_at, $2) WHERE message_seq = $1`
)

// RecordAttempt stores what came of an attempt, moves the message's status and
// writes the events. ErrState when another claim has taken the recipient since.
func (s *Store) RecordAttempt(ctx context.Context, a Attempt) error {
	err := a.check()
	if err == nil {
		err = s.do(ctx, a.MessageSeq, hotWrite{attempt: &a})
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

// outcome is an attempt that was recorded.
type outcome struct {
	*Attempt
	messageSeq int64
	email      string
}

// recordAttempts writes the attempts of a batch and then what they make of
// their messages.
func (b *hotBatch) recordAttempts(ctx context.Context, attempts []*Attempt) error {
	if len(attempts) == 0 {
		return nil
	}
	if err := b.lockMessages(ctx, attempts); err != nil {
		return errIn("lock messages", err)
	}
	outcomes := make([]outcome, 0, len(attempts))
	for _, a := range attempts {
		o, err := b.recordAttempt(ctx, a)
		if err != nil {
			return err
		}
		outcomes = append(outcomes, o)
		b.tries[a.Status]++
	}
	moved := map[int64]Message{}
	for _, o := range outcomes {
		if _, done := moved[o.messageSeq]; done || o.Status == RecipientQueued {
			continue
		}
		m, err := b.moveMessage(ctx, o.messageSeq)
		if err != nil {
			return errIn("move message", err)
		}
		moved[o.messageSeq] = m
	}
	if err := b.suppress(ctx, outcomes, moved); err != nil {
		return errIn("suppress", err)
	}
	return b.attemptEvents(outcomes, moved)
}

// lockMessages holds the messages of the attempts and puts the attempts into
// the order in which their recipients are held.
func (b *hotBatch) lockMessages(ctx context.Context, attempts []*Attempt) error {
	seqs := make([][2]int64, len(attempts))
	for i, a := range attempts {
		seqs[i][0] = a.MessageSeq
	}
	slices.SortStableFunc(attempts, func(x, y *Attempt) int { return cmp.Compare(x.RecipientSeq, y.RecipientSeq) })
	return b.store.hot.lockMessages.each(ctx, b.tx, sorted(seqs), func(*sql.Rows) error { return nil })
}

func (b *hotBatch) recordAttempt(ctx context.Context, a *Attempt) (outcome, error) {
	o := outcome{Attempt: a}
	var next, sent, delivered, bounced any
	now := b.now.UnixMicro()
	switch a.Status {
	case RecipientDelivered, RecipientOpened, RecipientClicked:
		sent, delivered = now, now
	case RecipientSent:
		sent = now
	case RecipientBounced:
		bounced = now
	case RecipientQueued:
		next = a.Next.UnixMicro()
	}
	response := storable(a.Response[:min(len(a.Response), maxResponse)])
	row := b.tx.StmtContext(ctx, b.store.hot.updateAttempt).
		QueryRowContext(ctx, a.RecipientSeq, a.Fence, string(a.Status), next, response, sent, delivered, bounced)
	if err := row.Scan(&o.messageSeq, &o.email); errors.Is(err, sql.ErrNoRows) {
		return o, fmt.Errorf("recipient %d at fence %d: %w", a.RecipientSeq, a.Fence, ErrState)
	} else if err != nil {
		return o, fmt.Errorf("update recipient: %w", err)
	}
	if a.Signature == "" {
		return o, nil
	}
	_, err := b.tx.StmtContext(ctx, b.store.hot.keepSignature).ExecContext(ctx, o.messageSeq, a.Signature)
	return o, errIn("keep signature", err)
}

// moveMessage brings a message's status up to its recipients'.
func (b *hotBatch) moveMessage(ctx context.Context, seq int64) (Message, error) {
	status, err := b.statusOf(ctx, seq)
	if err != nil {
		return Message{}, err
	}
	var sent, delivered any
	switch status {
	case MessageDelivered, EmailOpened, EmailClicked:
		sent, delivered = b.now.UnixMicro(), b.now.UnixMicro()
	case MessageSent:
		sent = b.now.UnixMicro()
	}
	var m Message
	err = b.tx.StmtContext(ctx, b.store.hot.moveMessage).QueryRowContext(ctx, seq, string(status), sent, delivered).
		Scan(&m.Seq, &m.AccountID, &m.InboxSeq, &m.TestMode, &m.Status)
	if err != nil {
		return m, err
	}
	if m.InboxSeq != 0 {
		b.wake(topic{topicInbox, m.InboxSeq})
	}
	if m.Status == EmailOpened || m.Status == EmailClicked {
		_, err = b.tx.StmtContext(ctx, b.store.hot.openEmail).ExecContext(ctx, seq, b.now.UnixMicro())
	}
	return m, err
}

func (b *hotBatch) statusOf(ctx context.Context, messageSeq int64) (MessageStatus, error) {
	var rs []RecipientStatus
	err := scanAll(ctx, b.tx.StmtContext(ctx, b.store.hot.statuses), []any{messageSeq}, func(rows *sql.Rows) error {
		rs = append(rs, "")
		return rows.Scan(&rs[len(rs)-1])
	})
	return statusOf(rs), err
}

// attemptEvents notes the events of the outcomes.
func (b *hotBatch) attemptEvents(outcomes []outcome, moved map[int64]Message) error {
	for _, o := range outcomes {
		m := moved[o.messageSeq]
		data, err := json.Marshal(EventData{
			Status: m.Status, Recipient: o.email, Response: o.Response[:min(len(o.Response), maxResponse)],
			Soft: o.Status == RecipientBounced && (o.Soft || strings.HasPrefix(o.Response, "4")),
		})
		if err != nil {
			return fmt.Errorf("write event: %w", err)
		}
		b.countOutcome(o.Attempt, &m)
		for _, typ := range attemptEvents[o.Status] {
			if email, ok := ofEmail[typ]; ok && m.InboxSeq == 0 {
				typ = email
			}
			b.event(NewID("evt_", b.now.Time), typ, &m, string(data))
		}
	}
	return nil
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
