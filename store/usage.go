package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
)

// Usage is how much of its plan an account has used.
type Usage struct {
	Account Account
	Plan    Plan
	// Today and Month are the recipients accepted on this UTC day and in this
	// UTC month, test mode left out. They begin anew at DayEnds and MonthEnds.
	Today, Month       int64
	DayEnds, MonthEnds time.Time
}

// Usage returns what the account has used.
func (s *Store) Usage(ctx context.Context, accountID int64) (Usage, error) {
	const (
		account = `SELECT ` + accountColumns + ` FROM accounts WHERE seq = $1`
		counts  = `SELECT cast(coalesce(sum(n), 0) AS bigint) AS month,
				cast(coalesce(sum(CASE WHEN day = $3 THEN n END), 0) AS bigint) AS today
			FROM daily_counts WHERE account_id = $1 AND inbox_seq = 0 AND day >= $2 AND kind = 'accepted'`
	)
	var u Usage
	if err := s.read.GetContext(ctx, &u.Account, account, accountID); err != nil {
		return u, s.wrap(err, "account")
	}
	now := s.now()
	today := dayOf(now)
	first, next := monthOf(now)
	var row struct {
		Month int64 `db:"month"`
		Today int64 `db:"today"`
	}
	if err := s.read.GetContext(ctx, &row, counts, accountID, first, today); err != nil {
		return u, s.wrap(err, "usage")
	}
	u.Plan, u.Today, u.Month = s.Plan(u.Account), row.Today, row.Month
	u.DayEnds, u.MonthEnds = dayTime(today+1), dayTime(next)
	return u, nil
}

// Counts are what happened to mail: messages received, and recipients of
// outbound mail by what became of them. Test mode is left out.
type Counts struct {
	Received, Sent, Delivered, Bounced, Failed, Complained int64
}

func (c *Counts) add(kind countKind, n int64) {
	switch kind {
	case countReceived:
		c.Received += n
	case countSent:
		c.Sent += n
	case countDelivered:
		c.Delivered += n
	case countBounced:
		c.Bounced += n
	case countFailed:
		c.Failed += n
	case countComplained:
		c.Complained += n
	}
}

// Day is what happened on one UTC day.
type Day struct {
	Date time.Time // when it begins
	Counts
}

// MaxStatsDays is how many days are kept.
const MaxStatsDays = 90

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
	q, args, err := sqlx.In(`SELECT day, kind, cast(sum(n) AS bigint) AS n FROM daily_counts
		WHERE account_id = ? AND inbox_seq IN (?) AND day BETWEEN ? AND ? GROUP BY day, kind`, accountID, inboxes, first, today)
	if err != nil {
		return nil, fmt.Errorf("stats: %w", err)
	}
	var rows []struct {
		Day  int64     `db:"day"`
		Kind countKind `db:"kind"`
		N    int64     `db:"n"`
	}
	if err := s.read.SelectContext(ctx, &rows, s.read.Rebind(q), args...); err != nil {
		return nil, s.wrap(err, "stats")
	}
	for _, r := range rows {
		all[r.Day-first].add(r.Kind, r.N)
	}
	return all, nil
}

// SweepCounts deletes some of the counts of days that are no longer shown, and
// returns how many; 0 means that there were none.
func (s *Store) SweepCounts(ctx context.Context) (int, error) {
	if may, err := s.mayDelete(ctx); !may {
		return 0, err
	}
	const q = `DELETE FROM daily_counts WHERE (account_id, inbox_seq, day, kind, shard) IN
		(SELECT account_id, inbox_seq, day, kind, shard FROM daily_counts WHERE day < $1 ORDER BY day LIMIT $2)`
	return s.sweep(ctx, "sweep counts", q, dayOf(s.now())-MaxStatsDays, sweepBatch)
}
