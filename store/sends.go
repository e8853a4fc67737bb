package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/store/internal/engine"
)

// Limits bound what a key, an inbox or an account sends. A limit that is nil does
// not bound anything. The windows slide: a send counts for exactly a minute, an
// hour or 24 hours.
type Limits struct {
	SendsPerMinute      *int64 `json:"sends_per_minute,omitempty"` // recipients
	SendsPerHour        *int64 `json:"sends_per_hour,omitempty"`
	SendsPerDay         *int64 `json:"sends_per_day,omitempty"`
	RecipientsPerDay    *int64 `json:"recipients_per_day,omitempty"`     // different ones
	NewRecipientsPerDay *int64 `json:"new_recipients_per_day,omitempty"` // that were never written to
	PerRecipientPerDay  *int64 `json:"per_recipient_per_day,omitempty"`
	SimilarPerHour      *int64 `json:"similar_per_hour,omitempty"` // recipients of the same text
	// OnLimit says what happens to a send over a limit; empty means LimitRefuses.
	OnLimit OnLimit `json:"on_limit,omitempty"`
}

// OnLimit is what happens to a send over a limit.
type OnLimit string

// What happens to a send over a limit: it is refused, or becomes a draft.
const (
	LimitRefuses  OnLimit = "refuse"
	LimitApproval OnLimit = "approval"
)

// LimitField is a limit by its name in the API.
type LimitField struct {
	Name   string
	Of     func(*Limits) **int64
	window time.Duration
	by     *counting
	// shown says that BudgetUses shows how much of the limit is used.
	shown bool
}

// counting is how limits count.
type counting struct {
	alone func(*sendScope, *counted) int64             // what a message alone counts
	used  func(window, context.Context) (int64, error) // what the window has; nil where each recipient or text has a sum of its own
	next  string                                       // the query for when the row after $4 others leaves the window
}

var (
	bySends = &counting{
		func(_ *sendScope, m *counted) int64 { return int64(len(m.to)) },
		window.sends, `SELECT at` + windowRows + ` ORDER BY at, n LIMIT 1 OFFSET $4`,
	}
	byPerson = &counting{
		func(_ *sendScope, m *counted) int64 { return int64(len(m.people)) },
		window.recipients, `SELECT max(at) AS last_at` + windowRows + ` GROUP BY recipient ORDER BY last_at LIMIT 1 OFFSET $4`,
	}
	byNewPerson = &counting{
		func(u *sendScope, m *counted) int64 { return int64(len(m.people) - len(u.known)) },
		window.newRecipients, `SELECT at` + windowRows + ` AND first ORDER BY at, n LIMIT 1 OFFSET $4`,
	}
	byCopies = &counting{alone: func(*sendScope, *counted) int64 { return 1 }}
	byText   = &counting{alone: byPerson.alone}
)

// LimitFields are all limits.
func LimitFields() []LimitField {
	return []LimitField{
		{"sends_per_minute", func(l *Limits) **int64 { return &l.SendsPerMinute }, time.Minute, bySends, false},
		{"sends_per_hour", func(l *Limits) **int64 { return &l.SendsPerHour }, time.Hour, bySends, true},
		{"sends_per_day", func(l *Limits) **int64 { return &l.SendsPerDay }, day, bySends, true},
		{"recipients_per_day", func(l *Limits) **int64 { return &l.RecipientsPerDay }, day, byPerson, true},
		{"new_recipients_per_day", func(l *Limits) **int64 { return &l.NewRecipientsPerDay }, day, byNewPerson, true},
		{"per_recipient_per_day", func(l *Limits) **int64 { return &l.PerRecipientPerDay }, day, byCopies, false},
		{"similar_per_hour", func(l *Limits) **int64 { return &l.SimilarPerHour }, time.Hour, byText, false},
	}
}

// None reports whether l bounds nothing.
func (l *Limits) None() bool {
	return l == nil || !slices.ContainsFunc(LimitFields(), func(f LimitField) bool { return *f.Of(l) != nil })
}

func bounds(l *JSON[Limits]) *Limits {
	if l == nil {
		return nil
	}
	return &l.V
}

// Looser returns the name of a limit that is lower or set in l only, or "" if m
// bounds at least as much as l.
func (l *Limits) Looser(m *Limits) string {
	if l.None() {
		return ""
	}
	if m == nil {
		m = &Limits{}
	}
	for _, f := range LimitFields() {
		before, after := *f.Of(l), *f.Of(m)
		if before != nil && (after == nil || *after > *before) {
			return f.Name
		}
	}
	if l.OnLimit != LimitApproval && m.OnLimit == LimitApproval {
		return "on_limit"
	}
	return ""
}

// AccountScope is the scope of the limits of an account.
const AccountScope = "account"

// sendScope is a key, inbox or account with limits in the log of sends. The row of its
// account is locked until the commit.
type sendScope struct {
	account int64
	name    string // id of the key or inbox, or AccountScope
	limits  *Limits
	last    int64 // number of its last row
	at      Time  // of the next send: the times of a scope never go back
	known   []int64
}

// counted is what a message counts as.
type counted struct {
	message int64
	to      []int64 // hashes of its recipients
	people  []int64 // the different ones, in order
	text    int64   // hash of the normalized text, 0 unless a limit needs it
}

// txReader reads in a transaction by prepared statements.
type txReader struct {
	*engine.Prepared
	tx *sqlx.Tx
}

func (r txReader) GetContext(ctx context.Context, dest any, query string, args ...any) error {
	return r.Get(ctx, r.tx, dest, query, args...)
}

func (r txReader) SelectContext(ctx context.Context, dest any, query string, args ...any) error {
	return r.Select(ctx, r.tx, dest, query, args...)
}

// readScope reads where a scope stands.
func readScope(ctx context.Context, from getter, u *sendScope, now Time) error {
	const q = `SELECT n, at FROM sends WHERE account_id = $1 AND scope = $2 ORDER BY n DESC LIMIT 1`
	row, err := getOne[struct {
		N  int64 `db:"n"`
		At Time  `db:"at"`
	}](ctx, from, q, u.account, u.name)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	u.last, u.at = max(row.N, 0), now
	if row.At.After(now.Time) {
		u.at = row.At
	}
	return nil
}

// window is a limit of a scope over the rows of the log since a time.
type window struct {
	*sendScope
	from  getter
	start Time
}

// rows starts a query for the rows of a window that count.
const windowRows = ` FROM sends WHERE account_id = $1 AND scope = $2 AND at > $3 AND NOT gone`

func (w window) args(more ...any) []any { return append([]any{w.account, w.name, w.start}, more...) }

// sends counts the rows of the window. Their numbers follow each other, so it reads
// only the first one, and those that do not count.
func (w window) sends(ctx context.Context) (int64, error) {
	const q = `SELECT coalesce($4 + 1 - (SELECT n FROM sends WHERE account_id = $1 AND scope = $2 AND at > $3 ORDER BY at, n LIMIT 1), 0)
		- (SELECT count(*) FROM sends WHERE account_id = $1 AND scope = $2 AND at > $3 AND gone)`
	return getOne[int64](ctx, w.from, q, w.args(w.last)...)
}

func (w window) recipients(ctx context.Context) (int64, error) {
	return getOne[int64](ctx, w.from, `SELECT count(DISTINCT recipient)`+windowRows, w.args()...)
}

func (w window) newRecipients(ctx context.Context) (int64, error) {
	return getOne[int64](ctx, w.from, `SELECT count(*)`+windowRows+` AND first`, w.args()...)
}

// leaves returns the time at which the window has room: a query finds the time of
// what must leave it. If nothing can make room, that is after a whole window.
func (w window) leaves(ctx context.Context, f LimitField, q string, args ...any) (time.Time, error) {
	at, err := getOne[Time](ctx, w.from, q, args...)
	if errors.Is(err, sql.ErrNoRows) {
		at, err = w.at, nil
	}
	return at.Add(f.window), err
}

// over returns when a message would fit under a limit, or zero if it fits now.
func (w window) over(ctx context.Context, f LimitField, m *counted, most int64) (fits time.Time, err error) {
	switch f.by {
	case byCopies:
		return w.overPerRecipient(ctx, f, m, most)
	case byText:
		return w.overSimilar(ctx, f, m, most)
	}
	more := f.by.alone(w.sendScope, m)
	if f.by == byPerson {
		met, err := w.among(ctx, `SELECT DISTINCT recipient`+windowRows, m.people)
		if more -= int64(len(met)); err != nil {
			return fits, err
		}
	}
	if more == 0 {
		return fits, nil
	}
	used, err := f.by.used(w, ctx)
	if err != nil || used+more <= most {
		return fits, err
	}
	return w.leaves(ctx, f, f.by.next, w.args(used+more-most-1)...)
}

// among returns those of the recipients that a query finds.
func (w window) among(ctx context.Context, q string, people []int64) ([]int64, error) {
	args := w.args()
	marks := each(people, func(p int64) string {
		args = append(args, p)
		return fmt.Sprintf("$%d", len(args))
	})
	return getAll[int64](ctx, w.from, q+` AND recipient IN (`+strings.Join(marks, ", ")+`)`, args...)
}

// overPerRecipient returns when each recipient can get one more message.
func (w window) overPerRecipient(ctx context.Context, f LimitField, m *counted, most int64) (latest time.Time, err error) {
	const (
		count = `SELECT count(DISTINCT message_seq)` + windowRows + ` AND recipient = $4`
		one   = `SELECT min(at) AS first_at` + windowRows + ` AND recipient = $4 GROUP BY message_seq ORDER BY first_at LIMIT 1 OFFSET $5`
	)
	for _, to := range m.people {
		n, err := getOne[int64](ctx, w.from, count, w.args(to)...)
		if err != nil {
			return latest, err
		}
		if n < most {
			continue
		}
		at, err := w.leaves(ctx, f, one, w.args(to, n-most)...)
		if err != nil {
			return latest, err
		}
		if at.After(latest) {
			latest = at
		}
	}
	return latest, nil
}

// overSimilar returns when the text can go to the recipients of the message.
func (w window) overSimilar(ctx context.Context, f LimitField, m *counted, most int64) (fits time.Time, err error) {
	const q = `SELECT recipient, max(at) AS last_at` + windowRows + ` AND text = $4 GROUP BY recipient ORDER BY last_at`
	var got []struct {
		Recipient int64 `db:"recipient"`
		LastAt    Time  `db:"last_at"`
	}
	if err := w.from.SelectContext(ctx, &got, q, w.args(m.text)...); err != nil {
		return fits, err
	}
	more := slices.Clone(m.people)
	for _, g := range got {
		more = slices.DeleteFunc(more, func(p int64) bool { return p == g.Recipient })
	}
	over := len(got) + len(more) - int(most)
	switch {
	case len(more) == 0 || over <= 0:
		return fits, nil
	case over > len(got):
		return w.at.Add(f.window), nil
	}
	return got[over-1].LastAt.Add(f.window), nil
}

// overLimits returns the limit of a scope that a message would exceed for the longest
// time, or nil.
func (u *sendScope) overLimits(ctx context.Context, tx txReader, m *counted) (worst *Refused, err error) {
	if u.limits.NewRecipientsPerDay != nil {
		w := window{u, tx, Time{time.UnixMicro(-1)}} // ever
		if u.known, err = w.among(ctx, `SELECT DISTINCT recipient`+windowRows, m.people); err != nil {
			return nil, err
		}
	}
	for _, f := range LimitFields() {
		most := *f.Of(u.limits)
		if most == nil {
			continue
		}
		fits, err := window{u, tx, Time{u.at.Add(-f.window)}}.over(ctx, f, m, *most)
		if err != nil {
			return nil, err
		}
		if never := *most > 0 && f.by.alone(u, m) > *most; !fits.IsZero() && (worst == nil || never && !worst.Never || fits.After(worst.Retry) && never == worst.Never) {
			worst = overLimit(f.Name, u.name, *most, fits)
			worst.Never = never
		}
	}
	return worst, nil
}

// record adds a message to the log of a scope.
func (u *sendScope) record(ctx context.Context, tx txReader, m *counted) error {
	const insert = `INSERT INTO sends (account_id, scope, n, at, message_seq, recipient, text, first, gone) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, false)`
	var text any
	if u.limits.SimilarPerHour != nil {
		text = m.text
	}
	known := slices.Clone(u.known)
	for _, to := range m.to {
		first := u.limits.NewRecipientsPerDay != nil && !slices.Contains(known, to)
		known = append(known, to)
		u.last++
		if _, err := tx.Exec(ctx, tx.tx, insert, u.account, u.name, u.last, u.at, m.message, to, text, first); err != nil {
			return errIn("count a send", err)
		}
	}
	return nil
}

// uncount takes a message out of the log: it did not leave, or leaves only now. The
// account is locked.
func uncount(ctx context.Context, tx *sqlx.Tx, message int64) error {
	const (
		firsts = `SELECT account_id, scope, recipient FROM sends WHERE message_seq = $1 AND first`
		forget = `UPDATE sends SET gone = true, first = false WHERE message_seq = $1 AND NOT gone`
		// The next message to the recipient was then the first.
		next = `UPDATE sends SET first = true WHERE account_id = $1 AND scope = $2 AND n = (SELECT n FROM sends
			WHERE account_id = $1 AND scope = $2 AND recipient = $3 AND NOT gone ORDER BY n LIMIT 1)`
	)
	var first []struct {
		AccountID int64  `db:"account_id"`
		Scope     string `db:"scope"`
		Recipient int64  `db:"recipient"`
	}
	if err := tx.SelectContext(ctx, &first, firsts, message); err != nil {
		return errIn("sends of a message", err)
	}
	if _, err := tx.ExecContext(ctx, forget, message); err != nil {
		return errIn("take a message out of the sends", err)
	}
	for _, f := range first {
		if _, err := tx.ExecContext(ctx, next, f.AccountID, f.Scope, f.Recipient); err != nil {
			return errIn("take a message out of the sends", err)
		}
	}
	return nil
}

// hashAddress hashes an address so that all its spellings have one hash.
func hashAddress(email string) int64 { return safeHash(mail.Mailbox(email)) }

// safeHash is hash64 for texts that someone may choose so that their hashes are
// equal.
func safeHash(s string) int64 {
	sum := sha256.Sum256([]byte(s))
	return int64(binary.BigEndian.Uint64(sum[:])) //nolint:gosec // bits, not a number
}

// textHash hashes the normalized subject and text of a message: the words without
// digits, punctuation, case, addresses and links, and without the names of the
// recipients.
func textHash(m *Message, text string) int64 {
	names := map[string]bool{}
	a := m.Addresses.V
	for _, to := range slices.Concat(a.To, a.Cc, a.Bcc) {
		local, _, _ := strings.Cut(to.Email, "@")
		for _, w := range words(to.Name + " " + local) {
			names[w] = true
		}
	}
	kept := slices.DeleteFunc(words(m.Subject+" "+text), func(w string) bool { return names[w] })
	return safeHash(strings.Join(kept, " "))
}

// words returns the words of a text in lower case, without digits. Addresses and
// links are not words.
func words(text string) (out []string) {
	for field := range strings.FieldsSeq(text) {
		if strings.Contains(field, "@") || strings.Contains(field, "://") {
			continue
		}
		out = append(out, strings.FieldsFunc(strings.ToLower(field), func(r rune) bool { return !unicode.IsLetter(r) })...)
	}
	return out
}

// learnRecipients notes the recipients of the newest messages of an inbox as
// written to, because the inbox is about to limit new ones.
func (s *Store) learnRecipients(ctx context.Context, tx *sqlx.Tx, in Inbox) error {
	const (
		newest = `SELECT DISTINCT email FROM recipients WHERE message_seq IN
			(SELECT seq FROM messages WHERE inbox_seq = $1 AND direction = 'out' ORDER BY created_at DESC LIMIT $2)`
		meet = `INSERT INTO sends (account_id, scope, n, at, message_seq, recipient, first, gone)
			SELECT cast($1 AS bigint), cast($2 AS text), (SELECT coalesce(min(n), 1) - 1 FROM sends WHERE account_id = $1 AND scope = $2),
				0, 0, cast($3 AS bigint), true, false
			WHERE NOT EXISTS (SELECT 1 FROM sends WHERE account_id = $1 AND scope = $2 AND recipient = $3 AND first)`
	)
	to, err := getAll[string](ctx, tx, newest, in.Seq, maxWrittenTo)
	if err != nil {
		return errIn("recipients of the inbox", err)
	}
	for _, email := range to {
		if _, err := tx.ExecContext(ctx, meet, in.AccountID, in.ID, hashAddress(email)); err != nil {
			return errIn("recipients of the inbox", err)
		}
	}
	return nil
}

// BudgetUse is how much of a limit is used now.
type BudgetUse struct {
	Scope string // ID of the inbox or key, or AccountScope
	Name  string // address of the inbox or name of the key
	Limit string // as LimitFields name it
	Used  int64
	Max   int64
}

// limitedScopes is how many inboxes, and how many keys, BudgetUses reads.
const limitedScopes = 50

// BudgetUses returns limits that are nearly used: at least percent of them. It
// considers the limits of the account and of its newest inboxes and keys that have
// limits, and of those the ones that count in one sum: recipients per hour or day,
// different recipients and new recipients.
func (s *Store) BudgetUses(ctx context.Context, accountID int64, percent int64) ([]BudgetUse, error) {
	const limited = `
		SELECT id, name, limits FROM (SELECT id, address AS name, limits FROM inboxes
			WHERE account_id = $1 AND limits IS NOT NULL AND status <> 'deleted' ORDER BY seq DESC LIMIT $2) i
		UNION ALL
		SELECT id, name, limits FROM (SELECT id, name, limits FROM api_keys
			WHERE account_id = $1 AND limits IS NOT NULL AND revoked_at IS NULL ORDER BY seq DESC LIMIT $2) k`
	type scope struct {
		ID     string       `db:"id"`
		Name   string       `db:"name"`
		Limits JSON[Limits] `db:"limits"`
	}
	scopes, err := readAll[scope](ctx, s, "scopes with limits", limited, accountID, limitedScopes)
	if err != nil {
		return nil, err
	}
	if l := s.agentLimits; l != nil {
		scopes = append(scopes, scope{ID: AccountScope, Limits: JSON[Limits]{V: *l}})
	}
	now := NewTime(s.now())
	var all []BudgetUse
	for _, at := range scopes {
		u := &sendScope{account: accountID, name: at.ID, limits: &at.Limits.V}
		if err := readScope(ctx, s.read, u, now); err != nil {
			return nil, s.wrap(err, "use of limits")
		}
		for _, f := range LimitFields() {
			most := *f.Of(u.limits)
			if most == nil || *most == 0 || !f.shown {
				continue
			}
			used, err := f.by.used(window{u, s.read, NewTime(now.Add(-f.window))}, ctx)
			if err != nil {
				return nil, s.wrap(err, "use of limits")
			}
			if used*100 >= *most*percent {
				all = append(all, BudgetUse{at.ID, at.Name, f.Name, used, *most})
			}
		}
	}
	return all, nil
}
