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
	"time"

	"github.com/postroom/postroom/internal/work"
	"github.com/postroom/postroom/store/internal/batch"
)

// Persist writes a result that must not be lost. It retries write until it
// succeeds, returns ErrState, or ctx ends; other errors than those of a database
// that is away end it after recordTries. The context of write ignores the end of
// ctx, so that a known result is stored during shutdown.
func Persist(ctx context.Context, write func(context.Context) error) error {
	once := func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
		defer cancel()
		return write(ctx)
	}
	wait := 50 * time.Millisecond
	for try := 1; ; try++ {
		err := once()
		away := errors.Is(err, ErrUnavailable) || errors.Is(err, ErrFull) || errors.Is(err, context.DeadlineExceeded)
		if err == nil || errors.Is(err, ErrState) || ctx.Err() != nil || try >= recordTries && !away {
			return err
		}
		work.Pause(ctx, wait, nil)
		wait = min(2*wait, 5*time.Second)
	}
}

// Attempt is the result of one delivery attempt for one recipient.
type Attempt struct {
	// RecipientSeq, MessageSeq and Fence are as claimed. When the recipient has
	// been claimed again since, the attempt is not recorded.
	RecipientSeq int64
	MessageSeq   int64
	Fence        int64
	// Status is the new status of the recipient. RecipientQueued means that there
	// will be another attempt.
	Status RecipientStatus
	// Soft marks a bounce without a permanent failure.
	Soft bool
	// Own marks a bounce that this installation decided, without the recipient's
	// server. It does not count towards pausing the account.
	Own bool
	// Next is the time of the next attempt for RecipientQueued, else nil.
	Next *Time
	// Untried reports that there was no attempt, so that none is counted. It
	// requires RecipientQueued.
	Untried bool
	// Response is the remote server's reply, or why it was not reached. It is
	// truncated.
	Response string
	// Signature, if not empty, is the signature put before the raw message. The
	// first one is stored, and every later attempt sends the same bytes.
	Signature string
	// RelayedID, if not empty, is the Message-ID that a relay gave to the message,
	// in the form of mail.SESMessageID. A message that refers to it joins the thread.
	RelayedID string
	// Suppress, if not empty, is the reason to suppress the recipient's address.
	// EmailFold is its case-folded form.
	Suppress SuppressionReason
	// SuppressFor limits the suppression to a category; empty means all mail.
	SuppressFor SuppressionCategory
	EmailFold   string
}

// RecordAttempt stores what came of an attempt, moves the message's status and
// writes the events. It returns ErrState if another claim has taken the recipient
// since.
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

// attemptEvents adds the events of the outcomes. Each keeps the message's state
// at its moment: if an email is sent and delivered at once, email.sent has the
// status sent.
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
			b.event(NewLongID("evt_", b.now.Time), typ, &m, string(data))
		}
	}
	return nil
}

func (o *outcome) eventData(status MessageStatus, recipients []RecipientState) EventData {
	data := EventData{Status: status, Recipients: recipients, Recipient: o.email, Response: o.Response[:min(len(o.Response), maxResponse)]}
	if r := o.report; r != nil {
		data.Soft, data.Code, data.Enhanced, data.Reason, data.Bot, data.Link = r.Soft, r.Code, r.Enhanced, r.Reason, r.Bot, r.Link
		return data
	}
	data.Soft = o.Status == RecipientBounced && (o.Soft || strings.HasPrefix(o.Response, "4"))
	return data
}

func (o *outcome) events() []EventType {
	if o.report != nil {
		return o.told
	}
	return attemptEvents[o.Status]
}

// attemptEvents maps a recipient's new status to events. A server that delivers a
// message directly has both accepted and delivered it.
var attemptEvents = map[RecipientStatus][]EventType{
	RecipientSent:      {EventMessageSent},
	RecipientDelivered: {EventMessageSent, EventMessageDelivered},
	RecipientOpened:    {EventMessageSent, EventMessageDelivered, EventEmailOpened},
	RecipientClicked:   {EventMessageSent, EventMessageDelivered, EventEmailOpened, EventEmailClicked},
	RecipientBounced:   {EventMessageBounced},
	RecipientFailed:    {EventMessageFailed},
	// No other event reports that the message will not be sent.
	RecipientSuppressed: {EventMessageFailed},
	// A complaint implies delivery.
	RecipientComplained: {EventMessageSent, EventMessageDelivered, EventMessageComplained},
}

// statusOf returns the status of a message: the furthest that any recipient has
// reached. If all have failed, it is bounced if one bounced, else failed.
// Complained overrides all.
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

// The names of v are those of no column.
const (
	lockMessages     = `SELECT seq FROM messages WHERE seq IN ({rows}) ORDER BY seq`
	lockRecipients   = `SELECT seq FROM recipients WHERE seq IN ({rows}) ORDER BY seq`
	updateRecipients = `
	WITH v (rcpt, claim, became, untried, again_at, said, sent, delivered, bounced) AS (VALUES {rows})
	UPDATE recipients
	   SET leased = false, status = became, attempts = attempts - untried, next_attempt_at = again_at, last_response = said,
	       sent_at = coalesce(sent_at, sent), delivered_at = coalesce(delivered_at, delivered), bounced_at = coalesce(bounced_at, bounced)
	  FROM v
	 WHERE seq = rcpt AND fence = claim AND next_attempt_at IS NOT NULL
	RETURNING seq, message_seq, email`
	keepSignatures = `
	WITH v (msg, line) AS (VALUES {rows})
	UPDATE contents SET signature = line FROM v WHERE message_seq = msg AND signature IS NULL`
	recipientStatuses = `SELECT message_seq, seq, status, attempts FROM recipients WHERE message_seq IN ({rows}) ORDER BY seq`
	moveMessages      = `
	WITH v (msg, became, sent, delivered, settled) AS (VALUES {rows})
	UPDATE messages
	   SET status = became, sent_at = coalesce(sent_at, sent), delivered_at = coalesce(delivered_at, delivered),
	       settled_at = coalesce(settled_at, settled)
	  FROM v
	 WHERE seq = msg
	RETURNING seq, account_id, coalesce(inbox_seq, 0), id, test_mode, status`
	relayedAs = `
	INSERT INTO thread_references (inbox_seq, header_hash, header_id, thread_seq)
	SELECT inbox_seq, $2, $3, thread_seq FROM messages WHERE seq = $1 AND thread_seq IS NOT NULL
	ON CONFLICT DO NOTHING`
	openEmail = `UPDATE emails SET opened_at = coalesce(opened_at, $2) WHERE message_seq = $1`
)

// outcome is an attempt that was recorded.
type outcome struct {
	*Attempt
	messageSeq   int64
	recipientSeq int64
	old          RecipientStatus // of the recipient
	email        string
	report       *Report     // that it comes from; nil for an attempt
	told         []EventType // by the report
}

// recordAttempts writes the attempts and reports of a batch and then updates
// their messages.
func (b *hotBatch) recordAttempts(ctx context.Context, attempts []*Attempt, reports []*Report) error {
	if len(attempts)+len(reports) == 0 {
		return nil
	}
	if err := b.lockAttempted(ctx, attempts, reports); err != nil {
		return err
	}
	outcomes, err := b.updateRecipients(ctx, attempts)
	if err != nil {
		return err
	}
	if err := b.keepSignatures(ctx, outcomes); err != nil {
		return errIn("keep signatures", err)
	}
	reported, err := b.recordReports(ctx, reports)
	if err != nil {
		return err
	}
	outcomes = append(outcomes, reported...)
	moved, states, err := b.moveMessages(ctx, outcomes)
	if err != nil {
		return errIn("move messages", err)
	}
	if err := b.noteRelayed(ctx, outcomes); err != nil {
		return errIn("note the identifiers of a relay", err)
	}
	if err := b.noteOpened(ctx, outcomes); err != nil {
		return errIn("note opens", err)
	}
	if err := b.suppress(ctx, outcomes, moved); err != nil {
		return errIn("suppress", err)
	}
	return b.attemptEvents(outcomes, moved, newMoments(states, outcomes))
}

// lockAttempted puts the attempts into the order of their recipients, and holds
// the messages and then the recipients, those of the reports too, where others
// could be in the way.
func (b *hotBatch) lockAttempted(ctx context.Context, attempts []*Attempt, reports []*Report) error {
	slices.SortStableFunc(attempts, func(x, y *Attempt) int { return cmp.Compare(x.RecipientSeq, y.RecipientSeq) })
	if b.store.engine.LockRow() == "" {
		return nil
	}
	var messages, recipients [][2]int64
	for _, a := range attempts {
		messages, recipients = append(messages, [2]int64{a.MessageSeq}), append(recipients, [2]int64{a.RecipientSeq})
	}
	for _, r := range reports {
		messages, recipients = append(messages, [2]int64{r.MessageSeq}), append(recipients, [2]int64{r.RecipientSeq})
	}
	none := func(*sql.Rows) error { return nil }
	if err := b.store.hot.lockMessages.Find(ctx, b.tx, batch.Sorted(messages), none); err != nil {
		return errIn("lock messages", err)
	}
	return errIn("lock recipients", b.store.hot.lockRecipients.Find(ctx, b.tx, batch.Sorted(recipients), none))
}

// updateRecipients writes the attempts. It returns ErrState if the claim of one
// has ended; then the whole batch must be rolled back.
func (b *hotBatch) updateRecipients(ctx context.Context, attempts []*Attempt) ([]outcome, error) {
	args := make([]any, 0, len(attempts)*b.store.hot.updateRecipients.Columns)
	written := make(map[int64]outcome, len(attempts))
	for _, a := range attempts {
		args = append(args, b.attemptRow(a)...)
	}
	err := b.store.hot.updateRecipients.Each(ctx, b.tx, args, func(rows *sql.Rows) error {
		var seq int64
		var o outcome
		err := rows.Scan(&seq, &o.messageSeq, &o.email)
		written[seq] = o
		return err
	})
	if err != nil {
		return nil, errIn("update recipients", err)
	}
	outcomes := make([]outcome, 0, len(attempts))
	for _, a := range attempts {
		o, ok := written[a.RecipientSeq]
		if !ok {
			err := fmt.Errorf("recipient %d at fence %d: %w", a.RecipientSeq, a.Fence, ErrState)
			return nil, b.itemOf(err, func(w *hotWrite) bool { return slices.Contains(w.attempts, a) })
		}
		delete(written, a.RecipientSeq) // of two attempts for it, one did not write
		o.Attempt, o.recipientSeq, o.old = a, a.RecipientSeq, RecipientQueued
		outcomes = append(outcomes, o)
		b.tries[a.Status]++
	}
	return outcomes, nil
}

func (b *hotBatch) attemptRow(a *Attempt) []any {
	var again, sent, delivered, bounced any
	now := b.now.UnixMicro()
	switch a.Status {
	case RecipientDelivered, RecipientOpened, RecipientClicked, RecipientComplained:
		sent, delivered = now, now
	case RecipientSent:
		sent = now
	case RecipientBounced:
		bounced = now
	case RecipientQueued:
		again = a.Next.UnixMicro()
	}
	response := storable(a.Response[:min(len(a.Response), maxResponse)])
	untried := int64(0)
	if a.Untried {
		untried = 1
	}
	return []any{a.RecipientSeq, a.Fence, string(a.Status), untried, again, response, sent, delivered, bounced}
}

// keepSignatures stores what the messages were signed with, unless that is known.
func (b *hotBatch) keepSignatures(ctx context.Context, outcomes []outcome) error {
	var args []any
	kept := map[int64]bool{}
	for _, o := range outcomes {
		if o.Signature != "" && !kept[o.messageSeq] {
			args = append(args, o.messageSeq, o.Signature)
			kept[o.messageSeq] = true
		}
	}
	return b.store.hot.keepSignatures.Each(ctx, b.tx, args, func(*sql.Rows) error { return nil })
}

// moveMessages brings the status of messages up to their recipients', and
// returns those of the outcomes that are final, with the states of their
// recipients.
func (b *hotBatch) moveMessages(ctx context.Context, outcomes []outcome) (map[int64]Message, map[int64][]numberedState, error) {
	var list [][2]int64
	for _, o := range outcomes {
		if o.Status != RecipientQueued {
			list = append(list, [2]int64{o.messageSeq})
		}
	}
	list = batch.Sorted(list)
	states := make(map[int64][]numberedState, len(list))
	err := b.store.hot.statuses.Find(ctx, b.tx, list, func(rows *sql.Rows) error {
		var seq int64
		var state numberedState
		err := rows.Scan(&seq, &state.seq, &state.Status, &state.Attempts)
		states[seq] = append(states[seq], state)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	args := make([]any, 0, len(list)*b.store.hot.moveMessages.Columns)
	for _, key := range list {
		status, _ := moments(states).of(key[0])
		var sent, delivered, settled any
		if !slices.ContainsFunc(states[key[0]], func(s numberedState) bool { return s.Status == RecipientQueued }) {
			settled = b.now.UnixMicro()
		}
		switch status {
		case MessageDelivered, EmailOpened, EmailClicked, MessageComplained:
			sent, delivered = b.now.UnixMicro(), b.now.UnixMicro()
		case MessageSent:
			sent = b.now.UnixMicro()
		}
		args = append(args, key[0], string(status), sent, delivered, settled)
	}
	moved := make(map[int64]Message, len(list))
	err = b.store.hot.moveMessages.Each(ctx, b.tx, args, func(rows *sql.Rows) error {
		var m Message
		err := rows.Scan(&m.Seq, &m.AccountID, &m.InboxSeq, &m.ID, &m.TestMode, &m.Status)
		moved[m.Seq] = m
		return err
	})
	if err == nil && len(moved) != len(list) {
		err = fmt.Errorf("%d of %d are there", len(moved), len(list))
	}
	if err != nil {
		return nil, nil, err
	}
	for _, m := range moved {
		if m.InboxSeq != 0 {
			b.wake(topic{topicInbox, m.InboxSeq})
		}
	}
	return moved, states, nil
}

// noteRelayed lets replies find the thread of a message to which a relay gave another
// Message-ID.
func (b *hotBatch) noteRelayed(ctx context.Context, outcomes []outcome) error {
	for _, o := range outcomes {
		if o.RelayedID == "" {
			continue
		}
		if _, err := b.tx.StmtContext(ctx, b.store.hot.relayedAs).ExecContext(ctx, o.messageSeq, hash64(o.RelayedID), o.RelayedID); err != nil {
			return err
		}
	}
	return nil
}

// noteOpened notes when emails were first opened. An email with a complaint keeps its
// status, but gets the time.
func (b *hotBatch) noteOpened(ctx context.Context, outcomes []outcome) error {
	for _, o := range outcomes {
		opened := o.Status == RecipientOpened || o.Status == RecipientClicked
		if o.report != nil {
			opened = o.report.engages() && !o.report.Bot
		}
		if !opened {
			continue
		}
		if _, err := b.tx.StmtContext(ctx, b.store.hot.openEmail).ExecContext(ctx, o.messageSeq, b.now.UnixMicro()); err != nil {
			return err
		}
	}
	return nil
}
