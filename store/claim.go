package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/internal/crashpoint"
)

// Claimed is a recipient that this process alone delivers to until the lease
// ends, with the message (without content).
type Claimed struct {
	Recipient
	Message Message
	// From is the address that the mail is from: the inbox's, or that in the
	// header of an email.
	From string
	// Category is the email's, and empty of a message of an inbox.
	Category Category
}

// claimColumns are the columns of messages, of inboxes and of none.
const (
	claimColumns = `m.seq, m.account_id, coalesce(m.inbox_seq, 0) AS inbox_seq, coalesce(i.id, '') AS inbox_id, m.id, m.direction, m.status,
		m.test_mode, m.from_email, m.addresses, m.subject, m.header_id, m.refs, m.automated, m.size, m.created_at, i.address AS inbox_address,
		coalesce(e.category, '') AS category`
	claimTables = ` FROM messages m LEFT JOIN inboxes i ON i.seq = m.inbox_seq LEFT JOIN emails e ON e.message_seq = m.seq`
)

// ClaimRecipients takes up to limit recipients that are due and not for one of
// the domains in busy. Pushing their next attempt to the end of the lease is
// the claim, so that one whose process dies becomes due again by itself. A node
// that is paused claims none.
func (s *Store) ClaimRecipients(ctx context.Context, limit int, lease time.Duration, busy []string) ([]Claimed, error) {
	if s.Paused() != nil {
		return nil, nil
	}
	var w where
	now := s.engine.Clock(w.arg(s.sharedNow()))
	w.conds = append(w.conds, "next_attempt_at <= "+now, "next_attempt_at >= "+w.arg(s.due.at(s.now())))
	if len(busy) > 0 {
		w.notIn("domain", busy)
	}
	// Materialized, or a plan may run the choice once for each row and take more
	// than limit.
	q := `WITH due AS MATERIALIZED (
			SELECT seq FROM recipients` + w.sql() + ` ORDER BY next_attempt_at LIMIT ` + w.arg(limit) + s.engine.SkipLocked() + `)
		UPDATE recipients SET next_attempt_at = ` + now + ` + ` + w.arg(lease.Microseconds()) + `, leased = true, fence = fence + 1, attempts = attempts + 1
		WHERE seq IN (SELECT seq FROM due)
		RETURNING ` + recipientColumns
	// A claim that nobody hears of would last to the end of the lease. So
	// the messages are read in the same transaction, and a commit without an
	// answer is asked about.
	var claimed []Claimed
	var name string
	err := s.inTx(ctx, "claim recipients", func(tx *sqlx.Tx) error {
		var rows []Recipient
		claimed = nil
		err := tx.SelectContext(ctx, &rows, q, w.args...)
		if err != nil || len(rows) == 0 {
			return err
		}
		slices.SortFunc(rows, func(a, b Recipient) int { return cmp.Compare(a.Seq, b.Seq) })
		if err := tx.GetContext(ctx, &name, `SELECT `+s.engine.TxName()); err != nil {
			return fmt.Errorf("name of the transaction: %w", err)
		}
		claimed, err = withMessages(ctx, tx, rows)
		return err
	})
	if err != nil && (len(claimed) == 0 || !s.committed(ctx, name, err, askLong, len(claimed))) {
		return nil, err
	}
	if len(claimed) > 0 {
		crashpoint.Reach(crashpoint.Claim)
	}
	return claimed, nil
}

func withMessages(ctx context.Context, tx *sqlx.Tx, rows []Recipient) ([]Claimed, error) {
	seqs := make([]int64, len(rows))
	for i, r := range rows {
		seqs[i] = r.MessageSeq
	}
	q, args, err := sqlx.In(`SELECT `+claimColumns+claimTables+` WHERE m.seq IN (?)`, seqs)
	if err != nil {
		return nil, fmt.Errorf("messages of claimed recipients: %w", err)
	}
	var ms []struct {
		Message
		InboxAddress *string  `db:"inbox_address"`
		Category     Category `db:"category"`
	}
	if err := tx.SelectContext(ctx, &ms, tx.Rebind(q), args...); err != nil {
		return nil, fmt.Errorf("messages of claimed recipients: %w", err)
	}
	claimed := make([]Claimed, 0, len(rows))
	for _, r := range rows {
		for _, m := range ms {
			if m.Seq != r.MessageSeq {
				continue
			}
			from := m.FromEmail
			if m.InboxAddress != nil {
				from = *m.InboxAddress
			}
			claimed = append(claimed, Claimed{r, m.Message, from, m.Category})
			break
		}
	}
	return claimed, nil
}

// NextDue returns when the next recipient, not for one of the domains in busy,
// becomes due, or nil when there is none.
func (s *Store) NextDue(ctx context.Context, busy []string) (*Time, error) {
	now := s.now()
	from := s.due.at(now)
	if from.UnixMicro() == 0 {
		first, err := s.firstDue(ctx, from, nil)
		if err != nil {
			return nil, err
		}
		s.due.found(now, first, true)
		if first == nil || len(busy) == 0 {
			return first, nil
		}
		from = s.due.at(now)
	}
	first, err := s.firstDue(ctx, from, busy)
	if err == nil && len(busy) == 0 {
		s.due.found(now, first, false)
	}
	return first, err
}

func (s *Store) firstDue(ctx context.Context, from Time, busy []string) (*Time, error) {
	q, args := firstDue(from, busy)
	var t []Time
	err := s.read.SelectContext(ctx, &t, q, args...)
	if err != nil || len(t) == 0 {
		return nil, s.wrap(err, "next due recipient")
	}
	return &t[0], nil
}

// firstDue is the query for when the first recipient from a time on is due.
func firstDue(from Time, busy []string) (q string, args []any) {
	var w where
	w.add("next_attempt_at >= ?", from)
	if len(busy) > 0 {
		w.notIn("domain", busy)
	}
	return `SELECT next_attempt_at FROM recipients` + w.sql() + ` ORDER BY next_attempt_at LIMIT 1`, w.args
}
