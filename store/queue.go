package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
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
	// SenderID is the id of the inbox whose address it is sent from, or empty.
	SenderID string
}

// claimColumns are the columns of messages, of inboxes and of none.
const (
	claimColumns = `m.seq, m.account_id, coalesce(m.inbox_seq, 0) AS inbox_seq, coalesce(i.id, '') AS inbox_id, m.id, m.direction, m.status,
		m.test_mode, m.from_email, m.addresses, m.subject, m.header_id, m.refs, m.automated, m.size, m.created_at, i.address AS inbox_address,
		coalesce(e.category, '') AS category, m.sent_by, coalesce(s.id, '') AS sender_id`
	claimTables = ` FROM messages m LEFT JOIN inboxes i ON i.seq = m.inbox_seq LEFT JOIN emails e ON e.message_seq = m.seq
		LEFT JOIN inboxes s ON s.seq = e.from_inbox`
)

// ClaimRecipients takes up to limit recipients that are due, not for one of the
// domains in busy and not of one of the accounts in full. Pushing their next attempt
// to the end of the lease is the claim, so that one whose process dies becomes due
// again by itself. Half of them are those that are due for longest, and half those
// that have become due last: new mail does not wait behind the backlog of another
// account. A node that is paused claims none.
func (s *Store) ClaimRecipients(ctx context.Context, limit int, lease time.Duration, busy []string, full ...int64) ([]Claimed, error) {
	if s.Paused() != nil {
		return nil, nil
	}
	var w where
	now := s.engine.Clock(w.arg(s.sharedNow()))
	w.conds = append(w.conds, "next_attempt_at <= "+now, "next_attempt_at >= "+w.arg(s.due.at(s.now())))
	notIn(&w, "domain", busy)
	notIn(&w, "account_id", full)
	// Materialized, or a plan may run the choice once for each row and take more
	// than limit.
	due, oldest := w.sql(), (limit+int(s.claims.Add(1)%2))/2
	q := `WITH oldest AS MATERIALIZED (
			SELECT seq FROM recipients` + due + ` ORDER BY next_attempt_at LIMIT ` + w.arg(oldest) + s.engine.SkipLocked() + `),
		newest AS MATERIALIZED (
			SELECT seq FROM recipients` + due + ` AND seq NOT IN (SELECT seq FROM oldest) ORDER BY next_attempt_at DESC LIMIT ` + w.arg(limit-oldest) + s.engine.SkipLocked() + `)
		UPDATE recipients SET next_attempt_at = ` + now + ` + ` + w.arg(lease.Microseconds()) + `, leased = true, fence = fence + 1, attempts = attempts + 1
		WHERE seq IN (SELECT seq FROM oldest UNION ALL SELECT seq FROM newest)
		RETURNING ` + recipientColumns
	// A claim that no one hears of would last to the end of the lease. So
	// the messages are read in the same transaction, and a commit without an
	// reply is checked.
	var claimed []Claimed
	var name string
	err := s.inTx(ctx, "claim recipients", func(tx *sqlx.Tx) error {
		var rows []Recipient
		claimed = nil
		err := tx.SelectContext(ctx, &rows, s.engine.Text(q), w.args...)
		if err != nil || len(rows) == 0 {
			return err
		}
		slices.SortFunc(rows, func(a, b Recipient) int { return cmp.Compare(a.Seq, b.Seq) })
		if err := tx.GetContext(ctx, &name, `SELECT `+s.engine.TxName()); err != nil {
			return fmt.Errorf("name of the transaction: %w", err)
		}
		if claimed, err = withMessages(ctx, tx, rows); err != nil {
			return err
		}
		claimed, err = s.leaveStopped(ctx, tx, claimed)
		return err
	})
	isClaimed := func(ctx context.Context) (bool, error) {
		var fence int64
		err := s.read.GetContext(ctx, &fence, `SELECT fence FROM recipients WHERE seq = $1`, claimed[0].Seq)
		return fence == claimed[0].Fence, err
	}
	if err != nil && (len(claimed) == 0 || !s.wasCommitted(ctx, name, err, outcomeLongTimeout, len(claimed), isClaimed)) {
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
		SenderID     string   `db:"sender_id"` // of an email's inbox
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
			claimed = append(claimed, Claimed{r, m.Message, from, m.Category, cmp.Or(m.InboxID, m.SenderID)})
			break
		}
	}
	return claimed, nil
}

// NextDue returns when the next recipient, not for one of the domains in busy and
// not of one of the accounts in full, becomes due, or nil when there is none.
func (s *Store) NextDue(ctx context.Context, busy []string, full ...int64) (*Time, error) {
	now := s.now()
	from := s.due.at(now)
	whole := len(busy)+len(full) == 0
	if from.UnixMicro() == 0 {
		first, err := s.firstDue(ctx, from, nil, nil)
		if err != nil {
			return nil, err
		}
		s.due.found(now, first, true)
		if first == nil || whole {
			return first, nil
		}
		from = s.due.at(now)
	}
	first, err := s.firstDue(ctx, from, busy, full)
	if err == nil && whole {
		s.due.found(now, first, false)
	}
	return first, err
}

func (s *Store) firstDue(ctx context.Context, from Time, busy []string, full []int64) (*Time, error) {
	q, args := firstDue(from, busy, full)
	var t []Time
	err := s.read.SelectContext(ctx, &t, q, args...)
	if err != nil || len(t) == 0 {
		return nil, s.wrap(err, "next due recipient")
	}
	return &t[0], nil
}

// firstDue is the query for when the first recipient from a time on is due.
func firstDue(from Time, busy []string, full []int64) (q string, args []any) {
	var w where
	w.add("next_attempt_at >= ?", from)
	notIn(&w, "domain", busy)
	notIn(&w, "account_id", full)
	return `SELECT next_attempt_at FROM recipients` + w.sql() + ` ORDER BY next_attempt_at LIMIT 1`, w.args
}

// RetryDeferred makes the deferred deliveries of an email or a sent message due at
// once. Recipients that are claimed keep their lease, so that nothing is sent twice.
// It returns ErrState if no delivery is deferred.
func (s *Store) RetryDeferred(ctx context.Context, accountID int64, id string) error {
	const (
		find  = `SELECT seq FROM messages WHERE account_id = $1 AND id = $2`
		retry = `UPDATE recipients SET next_attempt_at = $2
			WHERE message_seq = $1 AND status = 'queued' AND attempts > 0 AND NOT leased AND next_attempt_at > $2`
	)
	err := s.inTx(ctx, "retry deferred deliveries", func(tx *sqlx.Tx) error {
		var seq int64
		if err := tx.GetContext(ctx, &seq, find, accountID, id); errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("%s: %w", id, ErrNotFound)
		} else if err != nil {
			return err
		}
		res, err := tx.ExecContext(ctx, retry, seq, NewTime(s.now()))
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n > 0 {
			return err
		}
		return fmt.Errorf("deferred deliveries of %s: %w", id, ErrState)
	})
	if err == nil {
		s.changed([]topic{{kind: topicQueue}}, 1)
	}
	return err
}

// Lease identifies a claim on a recipient, see Claimed.
type Lease struct {
	RecipientSeq int64
	Fence        int64
}

// RenewLeases lets claims last for the time of lease from now, and returns those
// that are no more: the recipient was claimed again, or its attempt is recorded.
// A claim whose time is over and that no one has taken is renewed as well.
func (s *Store) RenewLeases(ctx context.Context, claims []Lease, lease time.Duration) (lost []Lease, err error) {
	if len(claims) == 0 {
		return nil, nil
	}
	// In the order of seq, as attempts are recorded, so that no one waits in a
	// ring.
	find := `SELECT seq, fence FROM recipients WHERE leased AND ` + s.engine.OneOf("seq", "$1") + ` ORDER BY seq` + s.engine.LockRow()
	push := `UPDATE recipients SET next_attempt_at = ` + s.engine.Clock("$2") + ` + cast($3 AS bigint) WHERE ` + s.engine.OneOf("seq", "$1")
	seqs := make([]int64, len(claims))
	for i, c := range claims {
		seqs[i] = c.RecipientSeq
	}
	err = s.inTx(ctx, "renew leases", func(tx *sqlx.Tx) error {
		lost = nil
		var rows []Recipient
		if err := tx.SelectContext(ctx, &rows, find, s.engine.List(seqs)); err != nil {
			return err
		}
		fences := make(map[int64]int64, len(rows))
		for _, r := range rows {
			fences[r.Seq] = r.Fence
		}
		kept := make([]int64, 0, len(rows))
		for _, c := range claims {
			if fence, leased := fences[c.RecipientSeq]; leased && fence == c.Fence {
				kept = append(kept, c.RecipientSeq)
			} else {
				lost = append(lost, c)
			}
		}
		if len(kept) == 0 {
			return nil
		}
		_, err := tx.ExecContext(ctx, push, s.engine.List(kept), s.sharedNow(), lease.Microseconds())
		return err
	})
	if err != nil {
		return nil, err
	}
	return lost, nil
}

// ReleaseLeases makes recipients due at once that were claimed by a process
// that died, and returns how many: see releaseClaims.
func (s *Store) ReleaseLeases(ctx context.Context) (int64, error) {
	return s.releaseClaims(ctx, "release leases", "recipients")
}

// releaseClaims makes the rows of a table due at once that were claimed by a
// process that died, and returns how many. Only a process that knows itself to be
// the only one can tell, which on SQLite it is: with several nodes on PostgreSQL
// nothing is done, and a lease that no one renews ends by itself.
func (s *Store) releaseClaims(ctx context.Context, what, table string) (int64, error) {
	if !s.engine.Alone() {
		return 0, nil
	}
	q := `UPDATE ` + table + ` SET next_attempt_at = $1, leased = false, fence = fence + 1
		WHERE next_attempt_at IS NOT NULL AND leased`
	var n int64
	err := s.inTx(ctx, what, func(tx *sqlx.Tx) error {
		res, err := tx.ExecContext(ctx, q, NewTime(s.now()))
		if err != nil {
			return err
		}
		n, err = res.RowsAffected()
		return err
	})
	return n, err
}

const (
	// dueSlack is by how much a row may become due earlier than one that was found
	// due before: clocks of nodes differ, and transactions take a while.
	dueSlack = 5 * time.Second
	// lookAllEvery is how often the queue is searched from its beginning, for rows
	// that came with an older time.
	lookAllEvery = 10 * time.Second
)

// dueFrom remembers where the queue begins. An index keeps entries of sent rows
// while a transaction, for example a backup, may still see them. A query that
// starts at the first entry would read all of them.
type dueFrom struct {
	mu   sync.Mutex
	last time.Time // when the row was due that was found due last
	all  time.Time // when the queue was last searched from its beginning
}

// at returns from which time on to look, which is zero when it is time to search
// the whole queue.
func (d *dueFrom) at(now time.Time) Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	if since := now.Sub(d.all); d.last.IsZero() || since < 0 || since >= lookAllEvery {
		return Time{time.UnixMicro(0)}
	}
	return NewTime(d.last.Add(-dueSlack))
}

// found notes the first row that a look found, or nil, when no domain was left
// out. all says that the look began with the whole queue.
func (d *dueFrom) found(now time.Time, first *Time, all bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if all {
		d.all = now
	}
	if first != nil && (!first.After(now) || first.Before(d.last)) {
		d.last = first.Time
	}
}

// endpointsFrom remembers where the pending deliveries of each webhook endpoint
// begin. Like the queue's, their index keeps the entries of finished deliveries
// while an old transaction may still read them.
type endpointsFrom struct {
	mu    sync.Mutex
	last  time.Time      // of the last search
	all   time.Time      // of the last search of all deliveries
	older map[int64]Time // the first due delivery of endpoints where that was due before last
}

// at returns the time to search from, and an earlier one for some endpoints. all
// reports that it is time to search all deliveries.
func (d *endpointsFrom) at(now time.Time) (from Time, older map[int64]Time, all bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if since := now.Sub(d.all); d.all.IsZero() || since < 0 || since >= lookAllEvery {
		return Time{}, nil, true
	}
	return NewTime(d.last.Add(-dueSlack)), d.older, false
}

// found records what a search found that began at now.
func (d *endpointsFrom) found(now time.Time, due []DueEndpoint, all bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = now
	if all {
		d.all = now
	}
	older := map[int64]Time{}
	for _, e := range due {
		if e.Due.Before(now.Add(-dueSlack)) {
			older[e.Seq] = e.Due
		}
	}
	d.older = older
}

// RecipientStatus is the delivery state of one recipient.
type RecipientStatus string

// The states of a recipient.
const (
	RecipientQueued     RecipientStatus = "queued"
	RecipientSent       RecipientStatus = "sent"
	RecipientDelivered  RecipientStatus = "delivered"
	RecipientBounced    RecipientStatus = "bounced"
	RecipientComplained RecipientStatus = "complained"
	RecipientFailed     RecipientStatus = "failed"
	RecipientSuppressed RecipientStatus = "suppressed"
)

// The states that only a recipient of an email can be in.
const (
	RecipientOpened  RecipientStatus = "opened"
	RecipientClicked RecipientStatus = "clicked"

	// These are not stored: they follow from the email and the attempts.
	RecipientScheduled RecipientStatus = "scheduled"
	RecipientSending   RecipientStatus = "sending"
	RecipientCancelled RecipientStatus = "cancelled"
)

// Recipient is one RCPT of one outbound message: a row of the queue.
type Recipient struct {
	Seq           int64           `db:"seq"`
	AccountID     int64           `db:"account_id"`
	MessageSeq    int64           `db:"message_seq"`
	Email         string          `db:"email"`
	Domain        string          `db:"domain"` // lower case; what the queue groups by
	Kind          string          `db:"kind"`   // to, cc, bcc
	Status        RecipientStatus `db:"status"`
	Attempts      int             `db:"attempts"`
	Fence         int64           `db:"fence"`           // rises with each claim
	NextAttemptAt *Time           `db:"next_attempt_at"` // nil: nothing more to do
	LastResponse  *string         `db:"last_response"`   // what the other server last said
	CreatedAt     Time            `db:"created_at"`
	SentAt        *Time           `db:"sent_at"`
	DeliveredAt   *Time           `db:"delivered_at"`
	BouncedAt     *Time           `db:"bounced_at"`
}

const recipientColumns = `seq, account_id, message_seq, email, domain, kind, status, attempts, fence, next_attempt_at,
	last_response, created_at, sent_at, delivered_at, bounced_at`
