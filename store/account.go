package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
)

// Account owns inboxes, keys and messages. Accounts cannot see each other's data.
type Account struct {
	Seq         int64   `db:"seq"`
	ID          string  `db:"id"`
	Name        string  `db:"name"`
	Plan        *string `db:"plan"`      // nil: the installation's; see Store.Plan
	Inboxes     int64   `db:"inboxes"`   // that are not deleted
	PausedAt    *Time   `db:"paused_at"` // since when it may not send
	PauseReason *string `db:"pause_reason"`
	CreatedAt   Time    `db:"created_at"`
}

const accountColumns = `seq, id, name, plan, inboxes, paused_at, pause_reason, created_at`

// FirstAccount returns the oldest account, or ErrNotFound before Bootstrap.
func (s *Store) FirstAccount(ctx context.Context) (Account, error) {
	return readOne[Account](ctx, s, "first account", `SELECT `+accountColumns+` FROM accounts ORDER BY seq LIMIT 1`)
}

// Account returns the account with that id.
func (s *Store) Account(ctx context.Context, id string) (Account, error) {
	return readOne[Account](ctx, s, "account "+id, `SELECT `+accountColumns+` FROM accounts WHERE id = $1`, id)
}

// PublicAccountID returns the public id of an account.
func (s *Store) PublicAccountID(ctx context.Context, seq int64) (string, error) {
	const q = `SELECT id FROM accounts WHERE seq = $1`
	return readOne[string](ctx, s, "account", q, seq)
}

// ListAccounts returns a page of all accounts, newest first.
func (s *Store) ListAccounts(ctx context.Context, p Page) (List[Account], error) {
	return listBySeq(ctx, s, p, "accounts", "list accounts", `SELECT `+accountColumns+` FROM accounts`, &where{}, "seq",
		func(a Account) int64 { return a.Seq })
}

// SetPlan puts the account on the plan with that name, or on the installation's
// own when it is nil. It returns ErrNotFound if the account does not exist.
func (s *Store) SetPlan(ctx context.Context, id string, plan *string) error {
	return s.execOne(ctx, "set plan", "account "+id, `UPDATE accounts SET plan = $2 WHERE id = $1`, id, plan)
}

// PauseAccount stops the account from sending; queued messages are still
// delivered. If it is already paused, only the reason changes. It returns
// ErrNotFound if the account does not exist.
func (s *Store) PauseAccount(ctx context.Context, id, reason string) error {
	const q = `UPDATE accounts SET paused_at = COALESCE(paused_at, $2), pause_reason = $3 WHERE id = $1`
	return s.execOne(ctx, "pause account", "account "+id, q, id, NewTime(s.now()), reason)
}

// ResumeAccount lets the account send again, and starts again with counting what
// bounces and is reported as spam. It returns ErrState if it is not paused.
func (s *Store) ResumeAccount(ctx context.Context, id string) error {
	const (
		resume = `UPDATE accounts SET paused_at = NULL, pause_reason = NULL WHERE id = $1 AND paused_at IS NOT NULL RETURNING seq`
		forget = `DELETE FROM send_counts WHERE account_id = $1 AND (kind IN ('tried', 'hard') OR kind LIKE 'marked%')`
	)
	return s.inTx(ctx, "resume account", func(tx *sqlx.Tx) error {
		seq, err := getOne[int64](ctx, tx, resume, id)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("account %s: %w", id, ErrState)
		}
		if err == nil {
			_, err = tx.ExecContext(ctx, forget, seq)
		}
		return err
	})
}

// FirstUser is the first user of a new installation.
type FirstUser struct {
	Name string
	Link UserLink
}

// Bootstrap creates the first account with its first key and, unless it is nil,
// its first user. If an account exists, it returns ErrState and changes nothing.
func (s *Store) Bootstrap(ctx context.Context, name string, key Key, user *FirstUser) (Account, Key, error) {
	var a Account
	err := s.inTx(ctx, "create the first account", func(tx *sqlx.Tx) error {
		if err := s.lockBootstrap(ctx, tx); err != nil {
			return err
		}
		var err error
		if a, err = s.insertAccount(ctx, tx, name); err != nil {
			return err
		}
		key.AccountID = a.Seq
		if key, err = s.insertKey(ctx, tx, key); err != nil || user == nil {
			return err
		}
		_, err = s.insertUser(ctx, tx, a.Seq, user.Name, RoleAdmin, user.Link)
		return err
	})
	return a, key, err
}

// CreateAccount creates an account without keys.
func (s *Store) CreateAccount(ctx context.Context, name string) (Account, error) {
	return transact(ctx, s, "create account", func(tx *sqlx.Tx) (Account, error) { return s.insertAccount(ctx, tx, name) })
}

func (s *Store) insertAccount(ctx context.Context, tx *sqlx.Tx, name string) (Account, error) {
	const q = `INSERT INTO accounts (id, name, created_at) VALUES ($1, $2, $3) RETURNING ` + accountColumns
	now := s.now()
	return getOne[Account](ctx, tx, q, NewID("acc_", now), name, NewTime(now))
}

// NoticeAccount returns the account that notices of this installation are sent by. It
// creates it without a key, so that no program sees what it sends.
func (s *Store) NoticeAccount(ctx context.Context) (accountID int64, err error) {
	const (
		find  = `SELECT a.seq FROM settings s JOIN accounts a ON a.id = s.value WHERE s.name = 'notice account'`
		claim = `INSERT INTO settings (name, value) VALUES ('notice account', $1) ON CONFLICT (name) DO NOTHING`
		plan  = `UPDATE accounts SET plan = $2 WHERE seq = $1`
		what  = "account for notices"
	)
	if accountID, err = readOne[int64](ctx, s, what, find); !errors.Is(err, ErrNotFound) {
		return accountID, err
	}
	accountID, err = transact(ctx, s, what, func(tx *sqlx.Tx) (int64, error) {
		a, err := s.insertAccount(ctx, tx, "Notices of Postroom")
		if err == nil {
			err = oneRow(what, ErrState)(tx.ExecContext(ctx, claim, a.ID))
		}
		if err == nil {
			_, err = tx.ExecContext(ctx, plan, a.Seq, PlanSelfHosted)
		}
		return a.Seq, err
	})
	if errors.Is(err, ErrState) { // another node was faster
		return readOne[int64](ctx, s, what, find)
	}
	return accountID, err
}

// lockBootstrap refuses when there is an account. Nodes that start together
// meet at the unique id of a row that only the first can write.
func (s *Store) lockBootstrap(ctx context.Context, tx *sqlx.Tx) error {
	const (
		count = `SELECT count(*) FROM (SELECT seq FROM accounts LIMIT 1) a`
		claim = `INSERT INTO settings (name, value) VALUES ('bootstrap', 'done') ON CONFLICT (name) DO NOTHING`
	)
	if err := oneRow("first account", ErrState)(tx.ExecContext(ctx, claim)); err != nil {
		return err
	}
	n, err := getOne[int](ctx, tx, count)
	if err == nil && n > 0 {
		err = fmt.Errorf("first account: %w", ErrState)
	}
	return err
}

// Plan holds the limits of an account. 0 means unlimited.
type Plan struct {
	Name string
	// Inboxes is the maximum number of inboxes, deleted ones excluded.
	Inboxes int64
	// Daily and Monthly are the maximum numbers of recipients per UTC day and UTC
	// month.
	Daily, Monthly int64
}

// The built-in plans.
const (
	// PlanSelfHosted has no limits.
	PlanSelfHosted = "self_hosted"
	// PlanFree has 10 inboxes, 200 recipients a day and 3,000 a month.
	PlanFree = "free"
)

func builtinPlans() []Plan {
	return []Plan{{Name: PlanSelfHosted}, {Name: PlanFree, Inboxes: 10, Daily: 200, Monthly: 3000}}
}

// plans holds the plans of an installation.
type plans struct {
	byName   map[string]Plan
	fallback Plan
}

// newPlans adds more to the built-in plans, or puts them in their place.
func newPlans(more []Plan, fallback string) (plans, error) {
	p := plans{byName: map[string]Plan{}}
	for _, plan := range append(builtinPlans(), more...) {
		p.byName[plan.Name] = plan
	}
	if fallback == "" {
		fallback = PlanSelfHosted
	}
	var ok bool
	if p.fallback, ok = p.byName[fallback]; !ok {
		return p, fmt.Errorf("plan %q not found", fallback)
	}
	return p, nil
}

// of returns the plan with that name. Accounts without a plan, or with an unknown
// one, have the installation's plan.
func (p plans) of(name *string) Plan {
	if name != nil {
		if plan, ok := p.byName[*name]; ok {
			return plan
		}
	}
	return p.fallback
}

// Plan is the plan that the account is on.
func (s *Store) Plan(a Account) Plan { return s.plans.of(a.Plan) }

// KnowsPlan reports whether name is a built-in plan or one of those in more.
func KnowsPlan(more []Plan, name string) bool {
	_, err := newPlans(more, name)
	return err == nil
}

// HasPlan reports whether the installation knows a plan with that name.
func (s *Store) HasPlan(name string) bool {
	_, ok := s.plans.byName[name]
	return ok
}

// check refuses n more recipients that exceed the plan.
func (p Plan) check(u acceptedSends, n int64, now time.Time) *Refused {
	period, most := RuleMonth, p.Monthly
	_, next := monthOf(now)
	ends := dayTime(next)
	if p.Monthly == 0 || u.Month+n <= p.Monthly {
		period, most, ends = RuleDay, p.Daily, dayTime(dayOf(now)+1)
		if p.Daily == 0 || u.Today+n <= p.Daily {
			return nil
		}
	}
	refused := refuse(period, "", "the plan %s has %d recipients a %s", p.Name, most, period)
	refused.Retry, refused.Never = ends, p.Monthly > 0 && n > p.Monthly || p.Daily > 0 && n > p.Daily
	return refused
}

// toSend returns the number of recipients to send to.
func (m *Message) toSend() (n int64) {
	for i := range m.Recipients {
		if m.Recipients[i].Status != RecipientSuppressed {
			n++
		}
	}
	return n
}

// Sending stops when, of the recipients of the last watchDays, at least watchFrom,
// more than 5 in 100 and at least hardFrom were refused permanently, or more than 3
// in 1000 complained, with at least markedFrom domains among them. A stranger who
// owns one domain cannot stop an account by complaints.
const (
	watchDays  = 30
	watchFrom  = 200
	hardFrom   = 10
	markedFrom = 3
)

// watched is what the watch over an account has counted.
type watched struct {
	tried, hard, marked int64
	markedBy            map[countKind]bool // a count for each domain with complaints
}

// add adds a count. Those that the watch does not need are ignored.
func (w *watched) add(kind countKind, n int64) {
	switch {
	case kind == countTried:
		w.tried += n
	case kind == countHard:
		w.hard += n
	case strings.HasPrefix(string(kind), markedBy):
		w.marked += n
		w.markedBy[kind] = true
	}
}

// over returns why an account must stop sending, or "".
func (w *watched) over() string {
	tried, hard, marked := w.tried, w.hard, w.marked
	switch {
	case tried < watchFrom:
		return ""
	case len(w.markedBy) >= markedFrom && marked*1000 > tried*3:
		return fmt.Sprintf("%d of %d recipients in %d days complained, more than 0.3 %%", marked, tried, watchDays)
	case hard >= hardFrom && hard*100 > tried*5:
		return fmt.Sprintf("%d of %d recipients in %d days bounced permanently, more than 5 %%", hard, tried, watchDays)
	}
	return ""
}

// near reports whether an account's complaint rate is near the limit: above 1 in
// 1000, the maximum that mailbox providers ask for.
func (w *watched) near() bool { return w.tried >= watchFrom && w.marked*1000 > w.tried }

// pause is an account to pause, or one near the limits. The second has no reason.
type pause struct {
	account       int64
	reason        string
	tried, marked int64
}

// pauseSender pauses an account whose bounce or complaint rate exceeds the limit, and
// returns what is to be logged of it, or nil.
func (s *Store) pauseSender(ctx context.Context, tx *sqlx.Tx, account int64, now Time) (*pause, error) {
	const (
		counted = `SELECT kind, cast(sum(n) AS bigint) AS n FROM send_counts
			WHERE account_id = $1 AND day > $2 AND (kind IN ('tried', 'hard') OR kind LIKE 'marked by %') GROUP BY kind`
		stop = `UPDATE accounts SET paused_at = $2, pause_reason = $3 WHERE seq = $1 AND paused_at IS NULL`
	)
	var counts []struct {
		Kind countKind `db:"kind"`
		N    int64     `db:"n"`
	}
	if err := tx.SelectContext(ctx, &counts, counted, account, dayOf(now.Time)-watchDays); err != nil {
		return nil, errIn("watch over senders", err)
	}
	w := watched{markedBy: map[countKind]bool{}}
	for _, c := range counts {
		w.add(c.Kind, c.N)
	}
	p := &pause{account, w.over(), w.tried, w.marked}
	if p.reason == "" {
		if w.near() {
			return p, nil
		}
		return nil, nil
	}
	stopped, err := affected(tx.ExecContext(ctx, stop, account, now, p.reason))
	if err != nil || stopped == 0 {
		return nil, errIn("pause the sender", err)
	}
	return p, nil
}

// log logs that the account was paused or is near the limit.
func (p pause) log(ctx context.Context, log *slog.Logger) {
	if p.reason == "" {
		log.WarnContext(ctx, "complaints come near to where sending is paused", "account", p.account, "complaints", p.marked, "recipients", p.tried)
		return
	}
	log.WarnContext(ctx, "sending is paused", "account", p.account, "reason", p.reason)
}
