package store

import (
	"context"

	"github.com/jmoiron/sqlx"
)

// SentTo is a recipient of mail of ours, as those see it who bring news of it.
type SentTo struct {
	AccountID, MessageSeq, RecipientSeq int64
	Email                               string
	// HandedOverAt is when a server took the mail, nil when none has.
	HandedOverAt *Time
	// Engagements is how many opens and clicks were told of.
	Engagements int
	// Inbox is where the mail was sent from, nil when that is none or deleted.
	Inbox *Mailbox
}

const (
	sentColumns = `r.account_id, r.message_seq, r.seq, r.email, coalesce(r.delivered_at, r.sent_at), r.engagements, i.seq, i.id, i.status, i.expires_at`
	sentTables  = ` FROM recipients r JOIN messages m ON m.seq = r.message_seq LEFT JOIN emails e ON e.message_seq = m.seq
		LEFT JOIN inboxes i ON i.seq = coalesce(m.inbox_seq, e.from_inbox) AND i.status <> 'deleted'`
	sentTo    = `SELECT ` + sentColumns + sentTables + ` WHERE r.seq = $3 AND r.message_seq = $2 AND r.account_id = $1 AND NOT m.test_mode`
	sentEmail = `SELECT ` + sentColumns + sentTables + ` WHERE m.account_id = $1 AND m.id = $2 AND e.message_seq IS NOT NULL AND NOT m.test_mode`
	// As the index messages_header has it, of which emails are those without inbox.
	sentByHeader = `SELECT ` + sentColumns + sentTables + `
		WHERE m.account_id = $1 AND m.inbox_seq = $2 AND m.header_hash = $3 AND m.header_id = $4 AND m.direction = 'out' AND NOT m.test_mode
		UNION ALL
		SELECT ` + sentColumns + sentTables + `
		WHERE m.account_id = $1 AND m.inbox_seq IS NULL AND e.from_inbox = $2 AND m.header_hash = $3 AND m.header_id = $4 AND NOT m.test_mode`
)

// SentTo returns a recipient by all of its numbers, or ErrNotFound.
func (s *Store) SentTo(ctx context.Context, accountID, messageSeq, recipientSeq int64) (SentTo, error) {
	all, err := s.sent(ctx, sentTo, accountID, messageSeq, recipientSeq)
	if err == nil && len(all) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return SentTo{}, s.wrap(err, "recipient of a report")
	}
	return all[0], nil
}

// SentByHeader returns the recipients of the mail that was sent from an inbox
// with a header Message-ID, none when there is no such mail.
func (s *Store) SentByHeader(ctx context.Context, in Mailbox, headerID string) ([]SentTo, error) {
	all, err := s.sent(ctx, sentByHeader, in.AccountID, in.Seq, hash64(headerID), headerID)
	return all, s.wrap(err, "recipients of a report")
}

// SentEmail returns the only recipient of an email. ErrNotFound when there is no
// such email, or none that went to one recipient alone.
func (s *Store) SentEmail(ctx context.Context, accountID int64, id string) (SentTo, error) {
	all, err := s.sent(ctx, sentEmail, accountID, id)
	if err == nil && len(all) != 1 {
		err = ErrNotFound
	}
	if err != nil {
		return SentTo{}, s.wrap(err, "tracked email")
	}
	return all[0], nil
}

func (s *Store) sent(ctx context.Context, q string, args ...any) (all []SentTo, err error) {
	rows, err := s.read.QueryContext(ctx, q, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var t SentTo
		var seq *int64
		var id *string
		var status *InboxStatus
		var expires *Time
		if err := rows.Scan(&t.AccountID, &t.MessageSeq, &t.RecipientSeq, &t.Email, &t.HandedOverAt, &t.Engagements, &seq, &id, &status, &expires); err != nil {
			return nil, err
		}
		if seq != nil {
			t.Inbox = &Mailbox{*seq, t.AccountID, *id, *status, expires}
		}
		all = append(all, t)
	}
	return all, rows.Err()
}

// Unsubscribe takes an address, folded in emailFold, off the account's marketing
// mail, because of the mail of that number, which may be deleted.
func (s *Store) Unsubscribe(ctx context.Context, accountID, messageSeq int64, email, emailFold string) error {
	const (
		mail = `SELECT id FROM messages WHERE seq = $1 AND account_id = $2`
		put  = `INSERT INTO suppressions (` + suppressionWritten + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)` + widen
	)
	now := s.now()
	return s.inTx(ctx, "unsubscribe", func(tx *sqlx.Tx) error {
		var source []string
		if err := tx.SelectContext(ctx, &source, mail, messageSeq, accountID); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, put, accountID, NewID("sup_", now), email, emailFold, SuppressedUnsubscribe, SuppressMarketing,
			first(source), NewTime(now))
		return err
	})
}

// first is the first of rows that may be none.
func first[T any](rows []T) *T {
	if len(rows) == 0 {
		return nil
	}
	return &rows[0]
}
