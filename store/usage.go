package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/store/internal/quota"
)

// Usage is how much of its plan an account has used.
type Usage struct {
	Account Account
	Plan    Plan
	// Today and Month are the recipients accepted on this UTC day and in this UTC
	// month, test mode left out. They start again at DayEnds and MonthEnds.
	Today, Month       int64
	DayEnds, MonthEnds time.Time
}

// Usage returns what the account has used.
func (s *Store) Usage(ctx context.Context, accountID int64) (Usage, error) {
	const account = `SELECT ` + accountColumns + ` FROM accounts WHERE seq = $1`
	var u Usage
	if err := s.read.GetContext(ctx, &u.Account, account, accountID); err != nil {
		return u, s.wrap(err, "account")
	}
	now := s.now()
	today := dayOf(now)
	_, next := monthOf(now)
	row, err := readAccepted(ctx, s.read, accountID, now)
	if err != nil {
		return u, s.wrap(err, "usage")
	}
	u.Plan, u.Today, u.Month = s.Plan(u.Account), row.Today, row.Month
	u.DayEnds, u.MonthEnds = dayTime(today+1), dayTime(next)
	return u, nil
}

// Quota bounds the received mail that an inbox holds. The zero Quota is no bound.
type Quota = quota.Amount

// AccountQuota is how many times the mail of one full inbox an account may hold.
const AccountQuota = quota.InAccount

// Full reports whether an inbox, or its account, holds as much received mail as
// Config.InboxQuota allows. It makes no query.
func (s *Store) Full(in Mailbox) bool { return s.held.Full(in.AccountID, in.Seq) }

// Reusable returns how many bytes of the database's file deleted rows left to new
// ones, 0 on PostgreSQL: the file of SQLite does not shrink.
func (s *Store) Reusable(ctx context.Context) (int64, error) {
	q := s.engine.Reusable()
	if q == "" {
		return 0, nil
	}
	return readOne[int64](ctx, s, "reusable space", q)
}

// countHeld counts the received mail of an inbox or an account whose content is
// not deleted, up to a number of messages.
func (s *Store) countHeld(ctx context.Context, o quota.Owner, most int64) (quota.Amount, error) {
	const (
		total   = `SELECT count(*) AS messages, cast(coalesce(sum(size), 0) AS bigint) AS bytes FROM (SELECT size FROM messages WHERE `
		still   = ` AND direction = 'in' AND expired_at IS NULL LIMIT $2) m`
		inbox   = total + `inbox_seq = $1` + still
		account = total + `account_id = $1 AND inbox_seq IS NOT NULL` + still
	)
	q, owner := inbox, o.Inbox
	if o.Inbox == 0 {
		q, owner = account, o.Account
	}
	return readOne[quota.Amount](ctx, s, "count stored mail", q, owner, most)
}

// noteHeld counts what was received.
func (s *Store) noteHeld(messages []*preparedMessage) {
	for _, h := range messages {
		if h.msg.Direction == DirectionIn {
			s.held.Add(h.msg.AccountID, h.msg.InboxSeq, h.msg.Size)
		}
	}
}

// Counts holds the numbers of messages received, and of outbound recipients by
// result. Test mode is not counted.
type Counts struct {
	Received, Sent, Delivered, Bounced, Failed, Complained int64
}

// Add adds other counts.
func (c *Counts) Add(o Counts) {
	c.Received, c.Sent, c.Delivered = c.Received+o.Received, c.Sent+o.Sent, c.Delivered+o.Delivered
	c.Bounced, c.Failed, c.Complained = c.Bounced+o.Bounced, c.Failed+o.Failed, c.Complained+o.Complained
}

// add adds a number of events: kind is the second half of their type.
func (c *Counts) add(kind string, n int64) {
	switch kind {
	case "received":
		c.Received += n
	case "sent":
		c.Sent += n
	case "delivered":
		c.Delivered += n
	case "bounced":
		c.Bounced += n
	case "failed":
		c.Failed += n
	case "complained":
		c.Complained += n
	}
}

// Day holds the counts of one UTC day.
type Day struct {
	Date time.Time // when it begins
	Counts
}

// Stats returns the last days UTC days, today last, of the inboxes with these
// sequence numbers, or of the whole account when inboxes is nil.
func (s *Store) Stats(ctx context.Context, accountID int64, inboxes []int64, days int) ([]Day, error) {
	today := dayOf(s.now())
	first := today - int64(days) + 1
	all := make([]Day, days)
	for i := range all {
		all[i].Date = dayTime(first + int64(i))
	}
	if inboxes == nil {
		inboxes = []int64{wholeAccount}
	}
	if len(inboxes) == 0 {
		return all, nil
	}
	const q = `WITH later AS (` + uncounted + ` AND account_id = ?)
		SELECT day, kind, cast(sum(n) AS bigint) AS n FROM (
			SELECT day, kind, n FROM daily_counts WHERE account_id = ? AND inbox_seq IN (?) AND day BETWEEN ? AND ?
			UNION ALL SELECT day, kind, 1 FROM (SELECT inbox_seq, day, kind FROM later UNION ALL SELECT 0, day, kind FROM later) l
				WHERE inbox_seq IN (?) AND day BETWEEN ? AND ?) c
		GROUP BY day, kind`
	query, args, err := sqlx.In(q, accountID, accountID, inboxes, first, today, inboxes, first, today)
	if err != nil {
		return nil, fmt.Errorf("stats: %w", err)
	}
	var rows []struct {
		Day  int64  `db:"day"`
		Kind string `db:"kind"`
		N    int64  `db:"n"`
	}
	if err := s.read.SelectContext(ctx, &rows, s.read.Rebind(query), args...); err != nil {
		return nil, s.wrap(err, "stats")
	}
	for _, r := range rows {
		all[r.Day-first].add(r.Kind, r.N)
	}
	return all, nil
}

// GroupCounts holds the counts of an inbox or a tag.
type GroupCounts struct {
	ID   string // of the inbox
	Name string // its address, or the name and value of the tag: "flow:receipt"
	Counts
}

// groupedInboxes is how many of the newest inboxes InboxCounts reads.
const groupedInboxes = 100

// InboxCounts returns the counts of the last days UTC days of the account's newest
// inboxes: of the busiest ones, at most limit.
func (s *Store) InboxCounts(ctx context.Context, accountID int64, days, limit int) ([]GroupCounts, error) {
	const q = `WITH newest AS (SELECT seq, id, address FROM inboxes WHERE account_id = $1 AND status <> 'deleted' ORDER BY seq DESC LIMIT $2),
		later AS (` + uncounted + ` AND account_id = $1)
		SELECT i.id, i.address, c.kind, cast(sum(c.n) AS bigint) AS n FROM (
			SELECT inbox_seq, kind, n FROM daily_counts WHERE account_id = $1 AND inbox_seq IN (SELECT seq FROM newest) AND day > $3
			UNION ALL SELECT inbox_seq, kind, 1 FROM later WHERE day > $3) c
		JOIN newest i ON i.seq = c.inbox_seq GROUP BY i.id, i.address, c.kind`
	var rows []struct {
		ID      string `db:"id"`
		Address string `db:"address"`
		Kind    string `db:"kind"`
		N       int64  `db:"n"`
	}
	if err := s.read.SelectContext(ctx, &rows, q, accountID, groupedInboxes, dayOf(s.now())-int64(days)); err != nil {
		return nil, s.wrap(err, "counts of inboxes")
	}
	groups := map[string]*GroupCounts{}
	for _, r := range rows {
		if groups[r.ID] == nil {
			groups[r.ID] = &GroupCounts{ID: r.ID, Name: r.Address}
		}
		groups[r.ID].add(r.Kind, r.N)
	}
	return busiest(groups, limit), nil
}

// TagCounts returns how many of the account's latest emails, at most countedEmails, have
// each tag, by what became of them: of the most used tags, at most limit. Emails in test
// mode are left out.
func (s *Store) TagCounts(ctx context.Context, accountID int64, days, limit int) ([]GroupCounts, error) {
	const q = `SELECT e.tags, m.status, count(*) AS n
		FROM (SELECT message_seq, tags FROM emails WHERE account_id = $1 ORDER BY message_seq DESC LIMIT $2) e
		JOIN messages m ON m.seq = e.message_seq AND m.inbox_seq IS NULL AND NOT m.test_mode AND m.created_at >= $3
		WHERE e.tags <> '{}' GROUP BY e.tags, m.status`
	var rows []struct {
		Tags   JSON[Labels]  `db:"tags"`
		Status MessageStatus `db:"status"`
		N      int64         `db:"n"`
	}
	if err := s.read.SelectContext(ctx, &rows, q, accountID, countedEmails, NewTime(dayTime(dayOf(s.now())-int64(days)+1))); err != nil {
		return nil, s.wrap(err, "counts of tags")
	}
	groups := map[string]*GroupCounts{}
	for _, r := range rows {
		for name, value := range r.Tags.V {
			tag := name + ":" + labelText(value)
			if groups[tag] == nil {
				groups[tag] = &GroupCounts{Name: tag}
			}
			groups[tag].addStatus(r.Status, r.N)
		}
	}
	return busiest(groups, limit), nil
}

func (c *Counts) addStatus(status MessageStatus, n int64) {
	switch status {
	case MessageQueued, EmailSending, EmailScheduled, EmailCancelled:
		return
	case MessageFailed:
		c.Failed += n
		return
	case MessageBounced:
		c.Bounced += n
		return
	case MessageSent:
	case MessageComplained:
		c.Complained += n
		c.Delivered += n
	default:
		c.Delivered += n
	}
	c.Sent += n
}

// busiest returns the groups with the most mail, at most limit.
func busiest(groups map[string]*GroupCounts, limit int) []GroupCounts {
	all := make([]GroupCounts, 0, len(groups))
	for _, g := range groups {
		all = append(all, *g)
	}
	slices.SortFunc(all, func(a, b GroupCounts) int {
		return cmp.Or(cmp.Compare(b.Received+b.Sent+b.Failed, a.Received+a.Sent+a.Failed), strings.Compare(a.Name, b.Name))
	})
	return all[:min(len(all), limit)]
}

// sweepCounts deletes some of the counts of days that are no longer shown.
func (s *Store) sweepCounts(ctx context.Context) (int, error) {
	old := dayOf(s.now()) - MaxStatsDays - 1
	n, err := s.sweepBefore(ctx, "daily_counts", sweep{column: "day", key: "account_id, inbox_seq, day, kind"}, old)
	if n > 0 || err != nil {
		return n, err
	}
	return s.sweepBefore(ctx, "send_counts", sweep{column: "day", key: "account_id, day, kind, shard"}, old)
}

// countedTo is the number of the last event that daily_counts has.
const countedTo = `coalesce((SELECT seq FROM positions WHERE name = 'counted'), 0)`

// countable are the events that Stats shows, by the day on which they happened and the
// second half of their type.
const countable = `SELECT account_id, inbox_seq, created_at / 86400000000 AS day, 
	CASE WHEN type = 'email.suppressed' THEN 'failed' ELSE replace(replace(type, 'message.', ''), 'email.', '') END AS kind
	FROM events WHERE NOT test_mode
		AND type IN ('message.received', 'message.sent', 'message.delivered', 'message.bounced', 'message.failed', 'message.complained',
			'email.sent', 'email.delivered', 'email.bounced', 'email.failed', 'email.suppressed', 'email.complained')`

// uncounted are those that daily_counts does not have yet. A reader adds them.
const uncounted = countable + ` AND seq > ` + countedTo

// CountEvents adds the oldest uncounted events, at most countBatch, to the counts of
// their days, and returns how many it has passed; 0 means that there were none. The
// transaction also moves the position, so that no event counts twice, whatever other
// nodes do.
func (s *Store) CountEvents(ctx context.Context) (int, error) {
	const (
		from = `SELECT ` + countedTo
		last = `SELECT coalesce(max(seq), 0) AS seq, count(*) AS n FROM (SELECT seq FROM events WHERE seq > $1 AND seq <= $2 ORDER BY seq LIMIT $3) e`
		move = `INSERT INTO positions (name, seq) VALUES ('counted', $2) ON CONFLICT (name) DO UPDATE SET seq = excluded.seq WHERE positions.seq = $1`
		add  = `WITH next AS (` + countable + ` AND seq > $1 AND seq <= $2)
			INSERT INTO daily_counts (account_id, inbox_seq, day, kind, n)
			SELECT account_id, inbox_seq, day, kind, count(*) FROM (
				SELECT account_id, 0 AS inbox_seq, day, kind FROM next
				UNION ALL SELECT account_id, inbox_seq, day, kind FROM next WHERE inbox_seq IS NOT NULL) c
			GROUP BY account_id, inbox_seq, day, kind
			ON CONFLICT (account_id, inbox_seq, day, kind) DO UPDATE SET n = daily_counts.n + excluded.n`
	)
	upTo, err := s.settledTo(ctx, s.engine.EventLog)
	if err != nil {
		return 0, err
	}
	return transact(ctx, s, "count events", func(tx *sqlx.Tx) (int, error) {
		counted, err := getOne[int64](ctx, tx, from)
		if err != nil {
			return 0, err
		}
		next, err := getOne[struct{ Seq, N int64 }](ctx, tx, last, counted, upTo, countBatch) // the last to count, and how many
		if err != nil || next.N == 0 {
			return 0, err
		}
		moved, err := affected(tx.ExecContext(ctx, move, counted, next.Seq))
		if err != nil || moved == 0 { // another node has counted them
			return 0, err
		}
		_, err = tx.ExecContext(ctx, add, counted, next.Seq)
		return int(next.N), err
	})
}

// countBatch is how many events one transaction counts.
const countBatch = 2000

// countKind names what is counted while it happens, in send_counts.
type countKind string

// What limits an account: the recipients that were accepted, which the plan limits,
// and what came of those that were tried, which decides whether the account may go on
// sending.
const (
	countAccepted countKind = "accepted"

	countTried countKind = "tried"
	countHard  countKind = "hard"
)

// markedBy starts the name of the count of a domain's complaints.
const markedBy = "marked by "

// wholeAccount stands, among the inboxes of daily_counts, for all of an account.
const wholeAccount = 0

// secondsPerDay is of UTC days, which have no leap seconds here.
const secondsPerDay = 24 * 60 * 60

// dayOf is the number of the UTC day since 1970.
func dayOf(t time.Time) int64 { return t.Unix() / secondsPerDay }

// dayTime is when a day begins.
func dayTime(day int64) time.Time { return time.Unix(day*secondsPerDay, 0).UTC() }

// monthOf is the first day of the month, and the first of the next.
func monthOf(t time.Time) (first, next int64) {
	y, m, _ := t.UTC().Date()
	return dayOf(time.Date(y, m, 1, 0, 0, 0, 0, time.UTC)), dayOf(time.Date(y, m+1, 1, 0, 0, 0, 0, time.UTC))
}

// maxShards bounds into how many rows a count of an account is split.
const maxShards = 16

// shard is the row into which a transaction counts, by chance, so that few of them wait
// for each other's counts of an account.
func (s *Store) shard() int64 {
	if s.engine.Alone() {
		return 0
	}
	return rand.Int64N(maxShards) //nolint:gosec // no secret
}

// countRow is the row that adds n to a count of an account.
func countRow(account int64, now Time, kind countKind, shard, n int64) newRow {
	return newRow{
		`send_counts (account_id, day, kind, shard, n)`, []any{account, dayOf(now.Time), string(kind), shard, n},
		` ON CONFLICT (account_id, day, kind, shard) DO UPDATE SET n = send_counts.n + excluded.n`,
	}
}

// Totals returns what this process has committed since it started, without test
// mode.
type Totals struct {
	Received int64 // messages
	Accepted int64 // recipients
	// Attempts are by what the recipient was after each.
	Attempts map[RecipientStatus]int64
}

type totals struct {
	stored atomic.Int64 // messages, of all kinds

	mu                 sync.Mutex
	received, accepted int64
	tries              map[RecipientStatus]int64
}

// receive notes received messages, and recipients of accepted ones.
func (t *totals) receive(n, accepted int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.received += n
	t.accepted += accepted
}

// tried notes what the recipients were after attempts.
func (t *totals) tried(all []RecipientStatus) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tries == nil {
		t.tries = map[RecipientStatus]int64{}
	}
	for _, status := range all {
		t.tries[status]++
	}
}

// Totals returns what this process has committed so far.
func (s *Store) Totals() Totals {
	s.totals.mu.Lock()
	defer s.totals.mu.Unlock()
	return Totals{Received: s.totals.received, Accepted: s.totals.accepted, Attempts: maps.Clone(s.totals.tries)}
}

// QueueLag returns how many recipients are due, and for how long the first of
// them has been.
func (s *Store) QueueLag(ctx context.Context) (due int64, age time.Duration, err error) {
	const q = `SELECT count(*) AS due, coalesce(min(next_attempt_at), 0) AS first FROM recipients
		WHERE next_attempt_at IS NOT NULL AND next_attempt_at <= $1`
	now := NewTime(s.now())
	row, err := readOne[struct {
		Due   int64 `db:"due"`
		First Time  `db:"first"`
	}](ctx, s, "queue", q, now)
	if row.Due > 0 {
		age = now.Sub(row.First.Time)
	}
	return row.Due, age, err
}
