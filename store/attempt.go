package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"
)

// Attempt is what came of one try for one recipient.
type Attempt struct {
	// RecipientSeq, MessageSeq and Fence are as claimed. When the recipient has been claimed
	// again since, the attempt is not recorded.
	RecipientSeq int64
	MessageSeq   int64
	Fence        int64
	// Status is what the recipient is now; RecipientQueued means that there will
	// be another try.
	Status RecipientStatus
	// Next is when, for RecipientQueued.
	Next *Time
	// Response is what the other server said, or why it was not reached.
	Response string
	// Signature, when not empty, is what signing put before the raw message.
	// The first one is kept, and every later attempt sends the same bytes.
	Signature string
}

// maxResponse bounds what is kept of another server's words.
const maxResponse = 1000

const updateAttempt = `
	UPDATE recipients
	   SET status = $3, next_attempt_at = $4, last_response = $5,
	       sent_at = coalesce(sent_at, cast($6 AS bigint)), delivered_at = coalesce(delivered_at, cast($7 AS bigint)),
	       bounced_at = coalesce(bounced_at, cast($8 AS bigint))
	 WHERE seq = $1 AND fence = $2 AND next_attempt_at IS NOT NULL
	RETURNING message_seq, email`

const keepSignature = `UPDATE contents SET signature = $2 WHERE message_seq = $1 AND signature IS NULL`

// RecordAttempt stores what came of an attempt, moves the message's status and
// writes the events. ErrState when another claim has taken the recipient since.
func (s *Store) RecordAttempt(ctx context.Context, a Attempt) error {
	if err := s.do(ctx, a.MessageSeq, hotWrite{attempt: &a}); err != nil {
		return fmt.Errorf("record attempt: %w", err)
	}
	return nil
}

// Claimed is a recipient that this process alone delivers to until the lease
// ends, with the message (without content).
type Claimed struct {
	Recipient
	Message Message
	// InboxAddress is the address of the inbox that sends.
	InboxAddress string
}

// ClaimRecipients takes up to limit recipients that are due and not for one of
// the domains in busy. Pushing their next attempt to the end of the lease is
// the claim, so that one whose process dies becomes due again by itself.
func (s *Store) ClaimRecipients(ctx context.Context, limit int, lease time.Duration, busy []string) ([]Claimed, error) {
	now := s.now()
	var w where
	until, due := w.arg(NewTime(now.Add(lease))), w.arg(NewTime(now))
	w.conds = append(w.conds, "next_attempt_at <= "+due)
	if len(busy) > 0 {
		w.notIn("domain", busy)
	}
	q := `UPDATE recipients SET next_attempt_at = ` + until + `, fence = fence + 1, attempts = attempts + 1
		WHERE seq IN (SELECT seq FROM recipients` + w.sql() + ` ORDER BY next_attempt_at LIMIT ` + w.arg(limit) + s.dialect.skipLocked() + `)
		RETURNING ` + recipientColumns
	var rows []Recipient
	err := s.inTx(ctx, "claim recipients", func(tx *sqlx.Tx) error {
		rows = nil
		return tx.SelectContext(ctx, &rows, q, w.args...)
	})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	slices.SortFunc(rows, func(a, b Recipient) int { return int(a.Seq - b.Seq) })
	return s.withMessages(ctx, rows)
}

func (s *Store) withMessages(ctx context.Context, rows []Recipient) ([]Claimed, error) {
	seqs := make([]int64, len(rows))
	for i, r := range rows {
		seqs[i] = r.MessageSeq
	}
	q, args, err := sqlx.In(`SELECT `+messageColumns+`, i.address AS inbox_address`+messageTables+` WHERE m.seq IN (?)`, seqs)
	if err != nil {
		return nil, fmt.Errorf("messages of claimed recipients: %w", err)
	}
	var ms []struct {
		Message
		InboxAddress string `db:"inbox_address"`
	}
	if err := s.read.SelectContext(ctx, &ms, s.read.Rebind(q), args...); err != nil {
		return nil, s.wrap(err, "messages of claimed recipients")
	}
	claimed := make([]Claimed, 0, len(rows))
	for _, r := range rows {
		for _, m := range ms {
			if m.Seq == r.MessageSeq {
				claimed = append(claimed, Claimed{r, m.Message, m.InboxAddress})
				break
			}
		}
	}
	return claimed, nil
}

// NextDue returns when the next recipient, not for one of the domains in busy,
// becomes due, or nil when there is none.
func (s *Store) NextDue(ctx context.Context, busy []string) (*Time, error) {
	var w where
	w.add("next_attempt_at IS NOT NULL")
	if len(busy) > 0 {
		w.notIn("domain", busy)
	}
	var t []Time
	err := s.read.SelectContext(ctx, &t, `SELECT next_attempt_at FROM recipients`+w.sql()+` ORDER BY next_attempt_at LIMIT 1`, w.args...)
	if err != nil || len(t) == 0 {
		return nil, s.wrap(err, "next due recipient")
	}
	return &t[0], nil
}

// recordAttempts writes the attempts of a batch and then what they make of
// their messages.
func (b *hotBatch) recordAttempts(ctx context.Context, attempts []*Attempt) error {
	type outcome struct {
		messageSeq int64
		email      string
		attempt    *Attempt
	}
	var outcomes []outcome
	for _, a := range attempts {
		a.Response = a.Response[:min(len(a.Response), maxResponse)]
		o := outcome{attempt: a}
		var sent, delivered, bounced *Time
		switch a.Status {
		case RecipientDelivered:
			sent, delivered = &b.now, &b.now
		case RecipientSent:
			sent = &b.now
		case RecipientBounced:
			bounced = &b.now
		}
		row := b.tx.StmtContext(ctx, b.store.stmts.get(updateAttempt)).QueryRowContext(ctx, a.RecipientSeq, a.Fence, a.Status, a.Next,
			a.Response, sent, delivered, bounced)
		if err := row.Scan(&o.messageSeq, &o.email); err != nil {
			return b.store.lostClaim(err, a)
		}
		outcomes = append(outcomes, o)
		if a.Signature == "" {
			continue
		}
		if _, err := b.tx.StmtContext(ctx, b.store.stmts.get(keepSignature)).ExecContext(ctx, o.messageSeq, a.Signature); err != nil {
			return fmt.Errorf("keep signature: %w", err)
		}
	}
	moved := map[int64]Message{}
	for _, o := range outcomes {
		if _, done := moved[o.messageSeq]; done || o.attempt.Status == RecipientQueued {
			continue
		}
		m, err := b.moveMessage(ctx, o.messageSeq)
		if err != nil {
			return err
		}
		moved[o.messageSeq] = m
	}
	for _, o := range outcomes {
		m := moved[o.messageSeq]
		for _, typ := range attemptEvents[o.attempt.Status] {
			b.event(typ, &m, EventData{Status: m.Status, Recipient: o.email, Response: o.attempt.Response})
		}
	}
	return nil
}

// attemptEvents are the events of a recipient's new status. A server that takes
// the mail for its own user both got it and delivered it.
var attemptEvents = map[RecipientStatus][]EventType{
	RecipientSent:      {EventMessageSent},
	RecipientDelivered: {EventMessageSent, EventMessageDelivered},
	RecipientBounced:   {EventMessageBounced},
	RecipientFailed:    {EventMessageFailed},
}

// moveMessage brings a message's status up to its recipients'.
func (b *hotBatch) moveMessage(ctx context.Context, seq int64) (Message, error) {
	const (
		statuses = `SELECT status FROM recipients WHERE message_seq = $1`
		move     = `UPDATE messages
			   SET status = $2, sent_at = coalesce(sent_at, cast($3 AS bigint)), delivered_at = coalesce(delivered_at, cast($4 AS bigint))
			 WHERE seq = $1
			RETURNING seq, account_id, inbox_seq, test_mode, status`
	)
	var rs []RecipientStatus
	if err := b.tx.SelectContext(ctx, &rs, statuses+b.store.dialect.lockRow(), seq); err != nil {
		return Message{}, fmt.Errorf("statuses of recipients: %w", err)
	}
	status := statusOf(rs)
	var sent, delivered *Time
	switch status {
	case MessageDelivered:
		sent, delivered = &b.now, &b.now
	case MessageSent:
		sent = &b.now
	}
	var m Message
	if err := b.tx.GetContext(ctx, &m, move, seq, status, sent, delivered); err != nil {
		return Message{}, fmt.Errorf("move message: %w", err)
	}
	b.wake(topic{topicInbox, m.InboxSeq})
	return m, nil
}

// statusOf is the status of a message: the furthest that any recipient has
// reached; when all ended badly, bounced if one bounced, else failed; and
// complained wins over all.
func statusOf(rs []RecipientStatus) MessageStatus {
	has := func(r RecipientStatus) bool { return slices.Contains(rs, r) }
	switch {
	case has(RecipientComplained):
		return MessageComplained
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
