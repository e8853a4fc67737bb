package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/internal/mail"
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

// The windows of the limits.
const (
	minuteWindow = time.Minute
	hourWindow   = time.Hour
	dayWindow    = 24 * time.Hour
)

// LimitField is a limit by its name in the API.
type LimitField struct {
	Name string
	Of   func(*Limits) **int64
}

// LimitFields are all limits.
func LimitFields() []LimitField {
	return []LimitField{
		{"sends_per_minute", func(l *Limits) **int64 { return &l.SendsPerMinute }},
		{"sends_per_hour", func(l *Limits) **int64 { return &l.SendsPerHour }},
		{"sends_per_day", func(l *Limits) **int64 { return &l.SendsPerDay }},
		{"recipients_per_day", func(l *Limits) **int64 { return &l.RecipientsPerDay }},
		{"new_recipients_per_day", func(l *Limits) **int64 { return &l.NewRecipientsPerDay }},
		{"per_recipient_per_day", func(l *Limits) **int64 { return &l.PerRecipientPerDay }},
		{"similar_per_hour", func(l *Limits) **int64 { return &l.SimilarPerHour }},
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

// Sender is a key or person who sends, with the limits of a key.
type Sender struct {
	ID     string
	Limits *Limits
}

// SenderNotices is the ID of the Sender of notices of the installation itself. No limits
// apply to them.
const SenderNotices = "notices"

// BudgetError means that a send is over a limit. Nothing of it was counted.
type BudgetError struct {
	Limit  string // its name
	Of     string // whose limit: the id of an inbox or key, or "account"
	Max    int64
	Resets time.Time // when the send fits, if nothing else is sent
	// Approval reports that the send is to become a draft.
	Approval bool
}

func (e *BudgetError) Error() string {
	whose := "the account"
	switch {
	case strings.HasPrefix(e.Of, "ibx_"):
		whose = "inbox " + e.Of
	case strings.HasPrefix(e.Of, "key_"):
		whose = "key " + e.Of
	}
	return fmt.Sprintf("this send is over the limit %s=%d of %s", e.Limit, e.Max, whose)
}

// DraftsError means that some emails of a batch need approval, and have no
// draft: the batch must be sent again with NewEmail.Draft set.
type DraftsError struct{ Indexes []int }

func (e *DraftsError) Error() string {
	return fmt.Sprintf("emails %d of the batch need approval", e.Indexes)
}

// AccountScope is the scope of the limits of an account.
const AccountScope = "account"

// budget is what a key, inbox or account with limits has sent. Its row is locked
// until the commit.
type budget struct {
	scope  string
	of     string // for the error
	limits *Limits
	total  int64 // recipients that were ever counted
	at     Time  // of the last send
	sent   bool  // by this transaction
}

// budgetsOf returns the budgets that a message counts against. inbox may be nil.
func (b *hotBatch) budgetsOf(h *hotMessage, inbox *hotInbox) map[string]*budget {
	var all map[string]*budget
	add := func(scope, of string, l *Limits) {
		if l.None() {
			return
		}
		if all == nil {
			all = map[string]*budget{}
		}
		all[scope] = &budget{scope: scope, of: of, limits: l}
	}
	for _, s := range h.senders {
		if s.ID == SenderNotices {
			return nil
		}
		add(s.ID, s.ID, s.Limits)
	}
	if inbox != nil {
		add(inbox.id, inbox.id, inbox.limits)
	}
	if l := b.store.agentLimits; l != nil {
		add(fmt.Sprint(AccountScope, "/", h.msg.AccountID), AccountScope, l)
	}
	return all
}

// inboxOf returns the inbox that an email is sent from, or nil.
func (b *hotBatch) inboxOf(h *hotEmail) *hotInbox {
	if h.email.FromInbox == nil {
		return nil
	}
	return b.inboxes[*h.email.FromInbox]
}

// sends returns the messages and emails that are not of test mode and leave an inbox or
// an account, each with the inbox that it is sent from, nil for none.
func (b *hotBatch) sends(ms []*hotMessage, es []*hotEmail) iter.Seq2[*hotMessage, *hotInbox] {
	return func(yield func(*hotMessage, *hotInbox) bool) {
		for _, h := range ms {
			if h.sendsForReal() && !yield(h, h.inbox) {
				return
			}
		}
		for _, h := range es {
			if h.sendsForReal() && !yield(h.hotMessage, b.inboxOf(h)) {
				return
			}
		}
	}
}

// lockBudgets locks the budgets of the batch in the order of their names. Most
// batches have none.
func (b *hotBatch) lockBudgets(ctx context.Context) error {
	const lock = `INSERT INTO budgets (scope, total, at) VALUES ($1, 0, 0)
		ON CONFLICT (scope) DO UPDATE SET total = budgets.total RETURNING total, at`
	all := map[string]*budget{}
	for h, in := range b.sends(b.messages, b.emails) {
		maps.Copy(all, b.budgetsOf(h, in))
	}
	b.budgets = all
	for _, scope := range slices.Sorted(maps.Keys(all)) {
		u := all[scope]
		if err := b.tx.QueryRowxContext(ctx, lock, scope).Scan(&u.total, &u.at); err != nil {
			return errIn("lock a budget", err)
		}
	}
	return nil
}

// spend counts what a write sends, or returns why it must not be sent. Of a batch,
// emails over a limit are left out one by one.
func (b *hotBatch) spend(ctx context.Context, w *hotWrite) (refused, err error) {
	for _, h := range w.emails {
		h.refused, h.held = nil, nil
	}
	if len(b.budgets)+len(b.listed) == 0 && !slices.ContainsFunc(w.emails, b.fromApprovalInbox) {
		return nil, nil
	}
	if w.batchID != "" {
		return b.spendBatch(ctx, w)
	}
	for _, h := range w.messages {
		if refused, err = b.spendOne(ctx, h, h.inbox, w.approval); refused != nil || err != nil {
			return refused, err
		}
	}
	for _, h := range w.emails {
		if refused, err = b.spendEmail(ctx, h); refused != nil || err != nil {
			return refused, err
		}
	}
	return nil, nil
}

// errNeedsApproval means that an email is from the address of an inbox that sends
// only what was approved.
var errNeedsApproval = errors.New("the inbox sends only what was approved")

func (b *hotBatch) fromApprovalInbox(h *hotEmail) bool {
	in := b.inboxOf(h)
	return in != nil && in.policy == PolicyApproval
}

// spendEmail is spendOne for an email. One that needs approval because of its inbox
// counts against no budget.
func (b *hotBatch) spendEmail(ctx context.Context, h *hotEmail) (refused, err error) {
	if !b.fromApprovalInbox(h) {
		return b.spendOne(ctx, h.hotMessage, b.inboxOf(h), nil)
	}
	if refused, err := b.checkRecipients(ctx, h.hotMessage, b.inboxOf(h), nil); refused != nil || err != nil {
		return refused, err
	}
	return errNeedsApproval, nil
}

// spendBatch is spend for a batch of emails. If all are over a limit, or some of
// them need a draft, nothing is counted.
func (b *hotBatch) spendBatch(ctx context.Context, w *hotWrite) (refused, err error) {
	before := map[string]budget{}
	for scope, u := range b.budgets {
		before[scope] = *u
	}
	if _, err := b.tx.ExecContext(ctx, `SAVEPOINT spend_batch`); err != nil {
		return nil, errIn("count a batch", err)
	}
	drafts, passed := &DraftsError{}, 0
	for i, h := range w.emails {
		over, err := b.spendEmail(ctx, h)
		switch {
		case err != nil:
			return nil, err
		case over == nil:
			passed++
		case needsApproval(over) && b.inboxOf(h) != nil && h.draft == nil:
			drafts.Indexes = append(drafts.Indexes, i)
		case needsApproval(over) && b.inboxOf(h) != nil:
			h.hold(b.inboxOf(h), b.now)
			passed++
		default:
			if listed, ok := errors.AsType[*ListError](over); ok {
				listed.Email = i
			}
			h.refused = over
			refused = cmp.Or(refused, over)
		}
	}
	switch {
	case len(drafts.Indexes) > 0:
		refused = drafts
	case passed > 0:
		refused = nil
	}
	end := `RELEASE SAVEPOINT spend_batch`
	if refused != nil {
		end = `ROLLBACK TO SAVEPOINT spend_batch`
		for scope, u := range before {
			*b.budgets[scope] = u
		}
	}
	_, err = b.tx.ExecContext(ctx, end)
	return refused, errIn("count a batch", err)
}

// needsApproval reports whether a refused send is to become a draft.
func needsApproval(refused error) bool {
	over, ok := errors.AsType[*BudgetError](refused)
	listed, isList := errors.AsType[*ListError](refused)
	return ok && over.Approval || isList && listed.Approval || errors.Is(refused, errNeedsApproval)
}

// NeedsApproval reports whether a send was refused that is to become a draft.
func NeedsApproval(err error) bool { return needsApproval(err) }

// spendOne counts a message from an inbox, or nil, against its budgets, or returns
// the error of a list, or of the limit that it would exceed for the longest time. A
// person or another key may approve a draft beyond limits and lists that ask for
// approval.
func (b *hotBatch) spendOne(ctx context.Context, h *hotMessage, inbox *hotInbox, a *Approval) (refused, err error) {
	if refused, err := b.checkRecipients(ctx, h, inbox, a); refused != nil || err != nil {
		return refused, err
	}
	of := b.budgetsOf(h, inbox)
	m := spending{n: h.msg.toSend()}
	if m.n == 0 || len(of) == 0 || !h.sendsForReal() {
		return nil, nil
	}
	for i := range h.msg.Recipients {
		if r := &h.msg.Recipients[i]; r.Status != RecipientSuppressed {
			m.to = append(m.to, hashAddress(r.Email))
		}
	}
	slices.Sort(m.to)
	m.to = slices.Compact(m.to)
	var worst *BudgetError
	mayHold := true
	for _, scope := range slices.Sorted(maps.Keys(of)) {
		u := b.budgets[scope]
		if m.text == 0 && u.limits.SimilarPerHour != nil {
			m.text = h.textHash()
		}
		over, err := b.over(ctx, u, &m)
		if err != nil {
			return nil, errIn("read a budget", err)
		}
		if over == nil || u.limits.OnLimit == LimitApproval && a != nil && a.By != a.CreatedBy {
			continue
		}
		mayHold = mayHold && u.limits.OnLimit == LimitApproval
		if worst == nil || over.Resets.After(worst.Resets) {
			worst = over
		}
	}
	if worst != nil {
		worst.Approval = mayHold && a == nil
		return worst, nil
	}
	for scope := range of {
		if err := b.record(ctx, b.budgets[scope], &m, a); err != nil {
			return nil, errIn("count a send", err)
		}
	}
	return nil, nil
}

// spending is what a message counts as.
type spending struct {
	n    int64   // recipients
	to   []int64 // their hashes, in order
	text int64   // hash of the normalized text
}

// windowStart returns the time after which sends count.
func (b *hotBatch) windowStart(u *budget, window time.Duration) Time {
	return Time{b.sendTime(u).Add(-window)}
}

// sendTime is the time of a send. The times of a budget never go back.
func (b *hotBatch) sendTime(u *budget) Time {
	if u.at.After(b.now.Time) {
		return u.at
	}
	return b.now
}

// over returns the limit of a budget that a message would exceed, or nil: the one
// that it would exceed for the longest time.
func (b *hotBatch) over(ctx context.Context, u *budget, m *spending) (worst *BudgetError, err error) {
	known, err := b.known(ctx, u, m)
	if err != nil {
		return nil, err
	}
	for _, f := range LimitFields() {
		most := *f.Of(u.limits)
		if most == nil {
			continue
		}
		var resets Time
		var window time.Duration
		switch f.Name {
		case "sends_per_minute":
			window = minuteWindow
			resets, err = b.overSends(ctx, u, m.n, *most, window)
		case "sends_per_hour":
			window = hourWindow
			resets, err = b.overSends(ctx, u, m.n, *most, window)
		case "sends_per_day":
			window = dayWindow
			resets, err = b.overSends(ctx, u, m.n, *most, window)
		case "recipients_per_day":
			window = dayWindow
			more := m.without(known, func(k knownRecipient) bool { return k.LastAt.After(b.windowStart(u, window).Time) })
			resets, err = b.overRecipients(ctx, u, "last_at", more, *most)
		case "new_recipients_per_day":
			window = dayWindow
			resets, err = b.overRecipients(ctx, u, "first_at", m.without(known, func(knownRecipient) bool { return true }), *most)
		case "per_recipient_per_day":
			window = dayWindow
			resets, err = b.overPerRecipient(ctx, u, m, *most)
		case "similar_per_hour":
			window = hourWindow
			resets, err = b.overSimilar(ctx, u, m, *most)
		}
		if err != nil {
			return nil, err
		}
		if resets.IsZero() {
			continue
		}
		over := &BudgetError{Limit: f.Name, Of: u.of, Max: *most, Resets: resets.Add(window)}
		if worst == nil || over.Resets.After(worst.Resets) {
			worst = over
		}
	}
	return worst, nil
}

// overSends returns the time of the send that must leave the window for n more
// recipients to fit, or zero if they fit.
func (b *hotBatch) overSends(ctx context.Context, u *budget, n, most int64, window time.Duration) (Time, error) {
	const (
		// What was counted before the window: the total after the last send before
		// it, or before the first send that is still known.
		before = `SELECT coalesce((SELECT total FROM budget_sends WHERE scope = $1 AND at <= $2 ORDER BY at DESC, total DESC LIMIT 1),
			(SELECT total - n FROM budget_sends WHERE scope = $1 ORDER BY total LIMIT 1), cast($3 AS bigint))`
		leaves = `SELECT at FROM budget_sends WHERE scope = $1 AND total >= $2 ORDER BY total LIMIT 1`
	)
	var outside int64
	if err := b.tx.GetContext(ctx, &outside, before, u.scope, b.windowStart(u, window), u.total); err != nil {
		return Time{}, err
	}
	if u.total-outside+n <= most {
		return Time{}, nil
	}
	return b.leaves(ctx, u, leaves, u.total+n-most)
}

// leaves runs a query for the time of what must leave the window. If nothing can
// make room, that is now.
func (b *hotBatch) leaves(ctx context.Context, u *budget, q string, args ...any) (Time, error) {
	var at Time
	err := b.tx.GetContext(ctx, &at, q, append([]any{u.scope}, args...)...)
	if errors.Is(err, sql.ErrNoRows) {
		return b.sendTime(u), nil
	}
	return at, err
}

// knownRecipient is someone who was written to.
type knownRecipient struct {
	Hash    int64 `db:"hash"`
	FirstAt Time  `db:"first_at"`
	LastAt  Time  `db:"last_at"`
}

// known reads the recipients of a message that were written to before, if a limit
// needs them.
func (b *hotBatch) known(ctx context.Context, u *budget, m *spending) (known []knownRecipient, err error) {
	if !u.limits.countsPeople() {
		return nil, nil
	}
	q, args, err := sqlx.In(`SELECT hash, first_at, last_at FROM budget_recipients WHERE scope = ? AND hash IN (?)`, u.scope, m.to)
	if err == nil {
		err = b.tx.SelectContext(ctx, &known, b.tx.Rebind(q), args...)
	}
	return known, err
}

func (l *Limits) countsPeople() bool {
	return l.RecipientsPerDay != nil || l.NewRecipientsPerDay != nil
}

// without returns how many recipients of the message are not among those that
// were written to and match.
func (m *spending) without(known []knownRecipient, match func(knownRecipient) bool) int64 {
	n := len(m.to)
	for _, k := range known {
		if match(k) {
			n--
		}
	}
	return int64(n)
}

// overRecipients returns the time of the recipient that must leave the window of a
// day for more recipients to fit, or zero if they fit. column is the time that
// counts.
func (b *hotBatch) overRecipients(ctx context.Context, u *budget, column string, more, most int64) (Time, error) {
	start := b.windowStart(u, dayWindow)
	var n int64
	if more == 0 {
		return Time{}, nil
	}
	if err := b.tx.GetContext(ctx, &n, `SELECT count(*) FROM budget_recipients WHERE scope = $1 AND `+column+` > $2`, u.scope, start); err != nil {
		return Time{}, err
	}
	if n+more <= most {
		return Time{}, nil
	}
	q := `SELECT ` + column + ` FROM budget_recipients WHERE scope = $1 AND ` + column + ` > $2 ORDER BY ` + column + ` LIMIT 1 OFFSET $3`
	return b.leaves(ctx, u, q, start, n+more-most-1)
}

// overPerRecipient returns the time of the message that must leave the window of a
// day for each recipient to get one more, or zero.
func (b *hotBatch) overPerRecipient(ctx context.Context, u *budget, m *spending, most int64) (latest Time, err error) {
	const (
		count = `SELECT count(*) FROM budget_texts WHERE scope = $1 AND hash = $2 AND at > $3`
		one   = `SELECT at FROM budget_texts WHERE scope = $1 AND hash = $2 AND at > $3 ORDER BY at LIMIT 1 OFFSET $4`
	)
	start := b.windowStart(u, dayWindow)
	for _, to := range m.to {
		var n int64
		if err := b.tx.GetContext(ctx, &n, count, u.scope, to, start); err != nil {
			return Time{}, err
		}
		if n+1 <= most {
			continue
		}
		at, err := b.leaves(ctx, u, one, to, start, n-most)
		if err != nil {
			return Time{}, err
		}
		if at.After(latest.Time) {
			latest = at
		}
	}
	return latest, nil
}

// overSimilar returns the time of the recipient that must leave the window of an
// hour for the text to go to the recipients of the message, or zero.
func (b *hotBatch) overSimilar(ctx context.Context, u *budget, m *spending, most int64) (Time, error) {
	const q = `SELECT hash, max(at) AS last_at FROM budget_texts WHERE scope = $1 AND text = $2 AND at > $3 GROUP BY hash ORDER BY last_at`
	var got []knownRecipient
	if err := b.tx.SelectContext(ctx, &got, q, u.scope, m.text, b.windowStart(u, hourWindow)); err != nil {
		return Time{}, err
	}
	more := 0
	for _, to := range m.to {
		if !slices.ContainsFunc(got, func(k knownRecipient) bool { return k.Hash == to }) {
			more++
		}
	}
	over := int64(len(got)+more) - most
	switch {
	case more == 0 || over <= 0:
		return Time{}, nil
	case over > int64(len(got)):
		return b.sendTime(u), nil
	}
	return got[over-1].LastAt, nil
}

// record counts a message against a budget. An approved draft has a time of its own
// in the budget, by which returnBudgets finds it.
func (b *hotBatch) record(ctx context.Context, u *budget, m *spending, approved *Approval) error {
	const (
		send = `INSERT INTO budget_sends (scope, total, n, at) VALUES ($1, $2, $3, $4)`
		move = `UPDATE budgets SET total = $2, at = $3 WHERE scope = $1`
		meet = `INSERT INTO budget_recipients (scope, hash, first_at, last_at) VALUES ($1, $2, $3, $3)
			ON CONFLICT (scope, hash) DO UPDATE SET last_at = excluded.last_at`
		text = `INSERT INTO budget_texts (scope, hash, text, at) VALUES ($1, $2, $3, $4)`
	)
	at := b.sendTime(u)
	if approved != nil {
		if !at.After(u.at.Time) {
			at = Time{u.at.Add(time.Microsecond)}
		}
		if err := b.noteApproval(ctx, u, m, approved.DraftSeq, at); err != nil {
			return err
		}
	}
	next := at
	if approved != nil {
		next = Time{at.Add(time.Microsecond)}
	}
	u.total += m.n
	if _, err := b.tx.ExecContext(ctx, send, u.scope, u.total, m.n, at); err != nil {
		return err
	}
	if _, err := b.tx.ExecContext(ctx, move, u.scope, u.total, next); err != nil {
		return err
	}
	for _, to := range m.to {
		if u.limits.countsPeople() {
			if _, err := b.tx.ExecContext(ctx, meet, u.scope, to, at); err != nil {
				return err
			}
		}
		if u.limits.PerRecipientPerDay != nil || u.limits.SimilarPerHour != nil {
			if _, err := b.tx.ExecContext(ctx, text, u.scope, to, m.text, at); err != nil {
				return err
			}
		}
	}
	u.at = next
	return nil
}

// noteApproval notes what an approved draft counts as, so that an undo can return
// it: the budget, and when each recipient was written to before.
func (b *hotBatch) noteApproval(ctx context.Context, u *budget, m *spending, draft int64, at Time) error {
	const (
		note    = `INSERT INTO budget_approvals (draft_seq, scope, at) VALUES ($1, $2, $3)`
		persons = `INSERT INTO budget_approvals (draft_seq, scope, at, hash, last_at)
			SELECT cast(? AS bigint), r.scope, cast(? AS bigint), r.hash, r.last_at FROM budget_recipients r WHERE r.scope = ? AND r.hash IN (?)`
	)
	if _, err := b.tx.ExecContext(ctx, note, draft, u.scope, at); err != nil {
		return err
	}
	if !u.limits.countsPeople() {
		return nil
	}
	return execIn(ctx, b.tx, persons, draft, at, u.scope, m.to)
}

// budgetUse is a budget that an approved draft counted against.
type budgetUse struct {
	Scope string `db:"scope"`
	At    Time   `db:"at"`
}

// lockApproved locks the budgets that an approved draft counted against, in the
// order of lockBudgets, and returns them.
func (s *Store) lockApproved(ctx context.Context, tx *sqlx.Tx, draft int64) (all []budgetUse, err error) {
	const (
		of   = `SELECT scope, at FROM budget_approvals WHERE draft_seq = $1 AND hash IS NULL ORDER BY scope`
		lock = `UPDATE budgets SET total = total WHERE scope = $1`
	)
	if err := tx.SelectContext(ctx, &all, of, draft); err != nil {
		return nil, errIn("budgets of the draft", err)
	}
	for _, u := range all {
		if _, err := tx.ExecContext(ctx, lock, u.Scope); err != nil {
			return nil, errIn("lock a budget", err)
		}
	}
	return all, nil
}

// returnBudgets takes what an approved draft counted out of the budgets, which
// lockApproved has locked. Nothing else in them has the same time.
func (s *Store) returnBudgets(ctx context.Context, tx *sqlx.Tx, draft int64, all []budgetUse) error {
	const (
		send  = `DELETE FROM budget_sends WHERE scope = $1 AND at = $2 RETURNING total, n`
		total = `UPDATE budgets SET total = total - $2 WHERE scope = $1`
		// The totals stay different from each other at each step.
		lower = `UPDATE budget_sends SET total = $3 - total WHERE scope = $1 AND total > $2`
		turn  = `UPDATE budget_sends SET total = -total WHERE scope = $1 AND total < 0`
		texts = `DELETE FROM budget_texts WHERE scope = $1 AND at = $2`
		// A recipient who was written to before, and one who was written to since.
		known = `UPDATE budget_recipients SET last_at = (SELECT a.last_at FROM budget_approvals a
				WHERE a.draft_seq = $3 AND a.scope = budget_recipients.scope AND a.hash = budget_recipients.hash)
			WHERE scope = $1 AND last_at = $2 AND first_at < $2`
		since = `UPDATE budget_recipients SET first_at = last_at WHERE scope = $1 AND first_at = $2 AND last_at > $2`
		fresh = `DELETE FROM budget_recipients WHERE scope = $1 AND first_at = $2 AND last_at = $2`
	)
	for _, u := range all {
		var was struct {
			Total int64 `db:"total"`
			N     int64 `db:"n"`
		}
		err := tx.GetContext(ctx, &was, send, u.Scope, u.At)
		if errors.Is(err, sql.ErrNoRows) { // the limits were removed
			continue
		}
		if err != nil {
			return errIn("return a budget", err)
		}
		err = execAll(ctx, tx, []statement{
			{total, []any{u.Scope, was.N}}, {lower, []any{u.Scope, was.Total, was.N}}, {turn, []any{u.Scope}}, {texts, []any{u.Scope, u.At}},
			{known, []any{u.Scope, u.At, draft}}, {since, []any{u.Scope, u.At}}, {fresh, []any{u.Scope, u.At}},
		})
		if err != nil {
			return errIn("return a budget", err)
		}
	}
	_, err := tx.ExecContext(ctx, `DELETE FROM budget_approvals WHERE draft_seq = $1`, draft)
	return errIn("return a budget", err)
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
func (h *hotMessage) textHash() int64 {
	names := map[string]bool{}
	a := h.msg.Addresses.V
	for _, to := range slices.Concat(a.To, a.Cc, a.Bcc) {
		local, _, _ := strings.Cut(to.Email, "@")
		for _, w := range words(to.Name + " " + local) {
			names[w] = true
		}
	}
	kept := slices.DeleteFunc(words(h.msg.Subject+" "+h.text), func(w string) bool { return names[w] })
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
		meet = `INSERT INTO budget_recipients (scope, hash, first_at, last_at) VALUES ($1, $2, 0, 0) ON CONFLICT DO NOTHING`
	)
	var to []string
	if err := tx.SelectContext(ctx, &to, newest, in.Seq, maxWrittenTo); err != nil {
		return errIn("recipients of the inbox", err)
	}
	for _, email := range to {
		if _, err := tx.ExecContext(ctx, meet, in.ID, hashAddress(email)); err != nil {
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
		ID     string        `db:"id"`
		Name   string        `db:"name"`
		Limits *JSON[Limits] `db:"limits"`
	}
	var scopes []scope
	if err := s.read.SelectContext(ctx, &scopes, limited, accountID, limitedScopes); err != nil {
		return nil, s.wrap(err, "scopes with limits")
	}
	if l := s.agentLimits; l != nil {
		scopes = append(scopes, scope{ID: fmt.Sprint(AccountScope, "/", accountID), Limits: &JSON[Limits]{V: *l}})
	}
	var all []BudgetUse
	for _, at := range scopes {
		for _, f := range LimitFields() {
			most := *f.Of(&at.Limits.V)
			if most == nil || *most == 0 {
				continue
			}
			used, err := s.budgetUsed(ctx, at.ID, f.Name)
			if err != nil {
				return nil, err
			}
			if used*100 >= *most*percent {
				id := at.ID
				if at.Name == "" {
					id = AccountScope
				}
				all = append(all, BudgetUse{id, at.Name, f.Name, used, *most})
			}
		}
	}
	return all, nil
}

// budgetUsed returns how much of a limit is used, or 0 for a limit that has no one
// sum.
func (s *Store) budgetUsed(ctx context.Context, scope, limit string) (n int64, err error) {
	const (
		sends = `SELECT coalesce((SELECT b.total - coalesce(
				(SELECT total FROM budget_sends WHERE scope = $1 AND at <= $2 ORDER BY at DESC, total DESC LIMIT 1),
				(SELECT total - n FROM budget_sends WHERE scope = $1 ORDER BY total LIMIT 1), b.total)
			FROM budgets b WHERE b.scope = $1), 0) AS n`
		different = `SELECT count(*) AS n FROM budget_recipients WHERE scope = $1 AND last_at > $2`
		recent    = `SELECT count(*) AS n FROM budget_recipients WHERE scope = $1 AND first_at > $2`
	)
	q, window := "", dayWindow
	switch limit {
	case "sends_per_hour":
		q, window = sends, hourWindow
	case "sends_per_day":
		q = sends
	case "recipients_per_day":
		q = different
	case "new_recipients_per_day":
		q = recent
	default:
		return 0, nil
	}
	var row struct {
		N int64 `db:"n"`
	}
	err = s.read.GetContext(ctx, &row, q, scope, NewTime(s.now().Add(-window)))
	return row.N, s.wrap(err, "use of a limit")
}

// SweepBudgets deletes some of the counted sends that are older than all windows,
// and returns how many; 0 means that there were none.
func (s *Store) SweepBudgets(ctx context.Context) (int, error) {
	if may, err := s.mayDelete(ctx); !may {
		return 0, err
	}
	const (
		sends     = `DELETE FROM budget_sends WHERE (scope, total) IN (SELECT scope, total FROM budget_sends WHERE at <= $1 LIMIT $2)`
		approvals = `DELETE FROM budget_approvals WHERE draft_seq IN (SELECT draft_seq FROM budget_approvals WHERE at <= $1 LIMIT $2)`
		texts     = `DELETE FROM budget_texts WHERE (scope, hash, at) IN (SELECT scope, hash, at FROM budget_texts WHERE at <= $1 LIMIT $2)`
	)
	old := NewTime(s.now().Add(-2 * dayWindow))
	total := 0
	for _, q := range []string{sends, texts, approvals} {
		n, err := s.exec(ctx, "sweep budgets", q, old, sweepBatch)
		if total += n; err != nil {
			return 0, err
		}
	}
	return total, nil
}

// StopAccount is the scope of a stop of a whole account. The others are the ids of
// inboxes and keys.
const StopAccount = "account"

// stopsEvery is how long a node may send by what it knows of the stops.
const stopsEvery = 200 * time.Millisecond

// stop is an account, inbox or key that sends nothing.
type stop struct {
	AccountID int64  `db:"account_id"`
	Scope     string `db:"scope"`  // what was stopped
	Sender    string `db:"sender"` // Scope, or a key that descends from it
}

// stopsWhere returns the query for the stops with a condition. A stop of a key is also
// one of each key that descends from it.
func stopsWhere(condition string) string {
	return `WITH RECURSIVE own AS (SELECT account_id, scope FROM stops WHERE ` + condition + `),
		held (account_id, scope, sender) AS (SELECT account_id, scope, scope FROM own
			UNION SELECT h.account_id, h.scope, k.id FROM held h JOIN api_keys k ON k.created_by = h.sender WHERE k.account_id = h.account_id)
		SELECT account_id, scope, sender FROM held`
}

// stops remembers what is stopped for a moment, so that delivering many messages
// reads it once.
type stops struct {
	mu   sync.Mutex
	read time.Time // a monotonic time
	all  []stop
}

// StoppedError means that a person stopped the sender.
type StoppedError struct{ Scope string }

func (e *StoppedError) Error() string {
	if e.Scope == StopAccount {
		return "sending is stopped for this account"
	}
	return "sending is stopped for " + e.Scope
}

// Stop stops an account, or one of its inboxes or keys, from sending, on all nodes.
// A stop of a key also stops the keys that descend from it.
// What is queued waits. It returns when it was stopped.
func (s *Store) Stop(ctx context.Context, accountID int64, scope string) (Time, error) {
	const q = `INSERT INTO stops (account_id, scope, at) VALUES ($1, $2, $3) ON CONFLICT (account_id, scope) DO UPDATE SET at = stops.at RETURNING at`
	var at Time
	err := s.inTx(ctx, "stop sending", func(tx *sqlx.Tx) error { return tx.GetContext(ctx, &at, q, accountID, scope, NewTime(s.now())) })
	s.stops.forget()
	return at, err
}

// Resume ends a stop. What waited for it becomes due, the first of it at once and the
// rest by ReleaseResumed.
func (s *Store) Resume(ctx context.Context, accountID int64, scope string) (Time, error) {
	const (
		end = `DELETE FROM stops WHERE account_id = $1 AND scope = $2`
		// A later time than that of an earlier resumption, by one millisecond at least.
		note = `UPDATE accounts SET resumed_at = CASE WHEN resumed_at >= $2 THEN resumed_at + 1000 ELSE $2 END WHERE seq = $1`
	)
	now := NewTime(s.now())
	err := s.inTx(ctx, "resume sending", func(tx *sqlx.Tx) error {
		// This waits for each claim that stops recipients, so that after it there are no more.
		if _, err := tx.ExecContext(ctx, end, accountID, scope); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, note, accountID, now)
		return err
	})
	s.stops.forget()
	if err != nil {
		return now, err
	}
	if _, err := s.ReleaseResumed(ctx); err != nil { // the queue of each node tries again
		s.log.WarnContext(ctx, "resumed mail is not released yet", "account_id", accountID, "error", err)
	}
	return now, nil
}

// resumedBatch is how many recipients one transaction makes due after a stop.
const resumedBatch = 500

// resuming is how far this node has come with an account that was resumed.
type resuming struct {
	mu    sync.Mutex
	of    resumedAccount
	after int64 // seq of a recipient
}

type resumedAccount struct {
	Seq       int64 `db:"seq"`
	ResumedAt Time  `db:"resumed_at"`
}

// ReleaseResumed makes some of the recipients due that waited for a stop that has
// ended, and returns how many. Those of other stops are stopped again when they are
// claimed. They are due from now on, and their time for retries starts again. A node that is paused releases none.
func (s *Store) ReleaseResumed(ctx context.Context) (int, error) {
	const (
		next  = `SELECT seq, resumed_at FROM accounts WHERE resumed_at IS NOT NULL ORDER BY seq LIMIT 1`
		found = `SELECT seq FROM recipients WHERE account_id = $1 AND stopped_due IS NOT NULL AND seq > $2 ORDER BY seq LIMIT $3`
		wake  = `UPDATE recipients SET next_attempt_at = CASE WHEN status = 'queued' THEN cast(? AS bigint) END, stopped_due = NULL, created_at = ?
			WHERE stopped_due IS NOT NULL AND seq IN (?)`
		done = `UPDATE accounts SET resumed_at = NULL WHERE seq = $1 AND resumed_at = $2`
	)
	if s.Paused() != nil {
		return 0, nil
	}
	r := &s.resuming
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []resumedAccount
	if err := s.read.SelectContext(ctx, &all, next); err != nil || len(all) == 0 {
		return 0, s.wrap(err, "resumed accounts")
	}
	if a := all[0]; a != r.of {
		r.of, r.after = a, 0
	}
	var seqs []int64
	err := s.inTx(ctx, "release what was stopped", func(tx *sqlx.Tx) error {
		seqs = nil
		if err := tx.SelectContext(ctx, &seqs, found, r.of.Seq, r.after, resumedBatch); err != nil {
			return err
		}
		if len(seqs) == 0 {
			_, err := tx.ExecContext(ctx, done, r.of.Seq, r.of.ResumedAt)
			return err
		}
		now := NewTime(s.now())
		return execIn(ctx, tx, wake, now, now, seqs)
	})
	if err != nil {
		return 0, err
	}
	if len(seqs) == 0 {
		r.of = resumedAccount{}
		return 0, nil
	}
	r.after = seqs[len(seqs)-1]
	s.changed([]topic{{kind: topicQueue}}, 1)
	return len(seqs), nil
}

// Stops returns the scopes of an account that are stopped.
func (s *Store) Stops(ctx context.Context, accountID int64) ([]string, error) {
	var scopes []string
	err := s.read.SelectContext(ctx, &scopes, `SELECT scope FROM stops WHERE account_id = $1 ORDER BY scope`, accountID)
	return scopes, s.wrap(err, "stops")
}

// IsStopped reports whether the sender of a claimed message is stopped. The result is at most
// stopsEvery old.
func (s *Store) IsStopped(ctx context.Context, c Claimed) (bool, error) {
	all, err := s.knownStops(ctx)
	return slices.ContainsFunc(all, c.stoppedBy), err
}

// knownStops returns all stops, as they were at most stopsEvery ago.
func (s *Store) knownStops(ctx context.Context) ([]stop, error) {
	s.stops.mu.Lock()
	defer s.stops.mu.Unlock()
	if !s.stops.read.IsZero() && time.Since(s.stops.read) < stopsEvery {
		return s.stops.all, nil
	}
	began := time.Now()
	var all []stop
	if err := s.read.SelectContext(ctx, &all, stopsWhere("true")); err != nil {
		return nil, s.wrap(err, "stops")
	}
	s.stops.read, s.stops.all = began, all
	return all, nil
}

func (k *stops) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.read = time.Time{}
}

func (c *Claimed) stoppedBy(s stop) bool {
	return s.stops(c.Message.AccountID, c.SenderID, deref(c.Message.SentBy))
}

// stops reports whether the stop holds for what a key or person sends from an inbox.
func (s stop) stops(account int64, inbox, by string) bool {
	return s.AccountID == account && (s.Sender == StopAccount || s.Sender == inbox || s.Sender == by)
}

// leaveStopped makes the claimed recipients of stopped senders wait for Resume, and
// returns the others.
func (s *Store) leaveStopped(ctx context.Context, tx *sqlx.Tx, claimed []Claimed) ([]Claimed, error) {
	const wait = `UPDATE recipients SET stopped_due = ?, next_attempt_at = NULL, leased = false, attempts = attempts - 1 WHERE seq IN (?)`
	known, err := s.knownStops(ctx)
	if err != nil || len(known) == 0 {
		return claimed, err
	}
	accounts := each(claimed, func(c Claimed) int64 { return c.Message.AccountID })
	var all []stop
	if err := selectIn(ctx, tx, &all, stopsWhere("account_id IN (?)"+s.engine.KeepRow()), accounts); err != nil {
		return nil, errIn("stops", err)
	}
	var seqs []int64
	pass := claimed[:0]
	for i := range claimed {
		c := claimed[i]
		if slices.ContainsFunc(all, c.stoppedBy) {
			seqs = append(seqs, c.Seq)
		} else {
			pass = append(pass, c)
		}
	}
	if len(seqs) == 0 {
		return pass, nil
	}
	return pass, errIn("leave what is stopped", execIn(ctx, tx, wait, NewTime(s.now()), seqs))
}

// stoppedSender returns the error for a send of a stopped sender, or nil. stopped are
// the stops of its account.
func stoppedSender(stopped []stop, h *hotMessage, inbox *hotInbox) error {
	from, by := "", []Sender{{}}
	if inbox != nil {
		from = inbox.id
	}
	for _, sender := range append(by, h.senders...) {
		for _, s := range stopped {
			if s.stops(h.msg.AccountID, from, sender.ID) {
				return &StoppedError{s.Scope}
			}
		}
	}
	return nil
}

func (b *hotBatch) refuseStopped(w *hotWrite, all map[int64]*sender) error {
	for h, in := range b.sends(w.messages, w.emails) {
		if a := all[h.msg.AccountID]; a != nil {
			if err := stoppedSender(a.stops, h, in); err != nil {
				return err
			}
		}
	}
	return nil
}
