package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/internal/mail"
)

// Rule is a rule about sending. docs/agents.md lists them in the order in which decide
// asks them.
type Rule string

// The rules.
const (
	RuleEnded       Rule = "ended"     // the key or person who scheduled an email is gone
	RuleDomain      Rule = "domain"    // the sending domain is not verified for the account
	RuleSuspended   Rule = "suspended" // the inbox is suspended or deleted
	RuleExpired     Rule = "expired"   // the inbox has expired
	RuleLoop        Rule = "loop"      // an automatic reply to automated mail
	RuleReplyOnly   Rule = "reply_only"
	RuleSuppression Rule = "suppression"
	RulePause       Rule = "pause"   // by the operator, or because of bounces and complaints
	RuleMonth       Rule = "month"   // the recipients of a month that the plan has
	RuleDay         Rule = "day"     // the recipients of a day that the plan has
	RuleInboxes     Rule = "inboxes" // the inboxes that the plan has; not about sending
	RuleStop        Rule = "stop"    // by a person
	RuleList        Rule = "list"
	RuleApproval    Rule = "approval" // of the inbox
	RuleLimit       Rule = "limit"    // of a key, an inbox or the account
	RuleThread      Rule = "thread"   // more than MaxThreadSends
)

// Refused is why a message may not leave: the answer of one rule. Nothing of the message
// was counted.
type Refused struct {
	Rule Rule
	// Hold reports that the message is to become a draft instead.
	Hold bool
	// Param is the field or limit that the rule is about, such as "to[0]".
	Param string
	// Text says why.
	Text string
	// Retry is when the message fits if nothing else is sent; zero if waiting does not help.
	Retry time.Time
	// Never reports that the message alone is over the limit, so that it fits at no time.
	// Under a limit of 0, which stops sending for a while, it waits.
	Never bool
	// Of is whose limit or stop it is: the id of an inbox or key, or AccountScope.
	Of string
	// Email is the index of the email in its batch.
	Email int
	// Recipients are those that are suppressed.
	Recipients []Recipient
}

func (e *Refused) Error() string { return e.Text }

// Waits reports that the message fits later, at Retry.
func (e *Refused) Waits() bool { return !e.Retry.IsZero() && !e.Never }

// In returns the refusal with a field of place.
func (e *Refused) In(place string) *Refused {
	at := *e
	at.Param = place + e.Param
	if rest, ok := strings.CutPrefix(e.Text, e.Param); ok && e.Param != "" {
		at.Text = at.Param + rest
	}
	return &at
}

// NeedsApproval reports whether a send was refused that is to become a draft.
func NeedsApproval(err error) bool {
	e, ok := errors.AsType[*Refused](err)
	return ok && e.Hold
}

func refuse(rule Rule, param, format string, args ...any) *Refused {
	return &Refused{Rule: rule, Param: param, Text: fmt.Sprintf(format, args...)}
}

func overLimit(limit, of string, most int64, fits time.Time) *Refused {
	whose := "the account"
	switch {
	case strings.HasPrefix(of, "ibx_"):
		whose = "inbox " + of
	case strings.HasPrefix(of, "key_"):
		whose = "key " + of
	}
	e := refuse(RuleLimit, "limits."+limit, "this send is over the limit %s=%d of %s", limit, most, whose)
	e.Of, e.Retry = of, fits
	return e
}

// Sender is a key or person who sends, with the limits of a key.
type Sender struct {
	ID     string
	Limits *Limits
}

// SenderNotices is the ID of the Sender of notices of the installation itself. No limits
// apply to them.
const SenderNotices = "notices"

// sending is a message or email that wants to leave.
type sending struct {
	*preparedMessage
	isEmail  bool
	category Category  // empty for a message of an inbox
	inboxSeq int64     // 0: from an address that is not an inbox
	approval *Approval // of the draft that it comes from
	isDue    bool      // it was accepted before, to be sent now
	asks     bool      // it leaves later, and is counted then
	inBatch  bool      // with others, of which some may leave
	refused  *Refused
	counted  counted
	scopes   []*sendScope // to count it in
}

// sendingAccount is the state of an account that decides about what it sends.
type sendingAccount struct {
	Plan       *string `db:"plan"`
	PausedAt   *Time   `db:"paused_at"`
	Reason     string  `db:"reason"`
	Stopped    bool    `db:"stopped"`
	Listed     bool    `db:"listed"`
	Suppresses bool    `db:"suppresses"`
}

// decision is one call of decide.
type decision struct {
	s       *Store
	tx      *sqlx.Tx
	now     Time
	account int64
	is      sendingAccount
	plan    Plan
	lists   []ListEntry
	inboxes map[int64]*lockedInbox
	scopes  map[string]*sendScope
}

// decide decides whether the messages of one call may leave, all of one account, in the
// transaction that accepts them, or that sends a scheduled one. It asks the rules in
// their order. The error is a *Refused if none may leave; of a batch, those that may not
// leave, or are to become drafts, get refused. The recipients to skip become
// RecipientSuppressed; what leaves is counted.
//
// On PostgreSQL it locks the account first if anything is counted, so that counts are
// exact over all nodes, then the inboxes in the order of their numbers.
func (s *Store) decide(ctx context.Context, tx *sqlx.Tx, all []*sending) error {
	d := &decision{s: s, tx: tx, now: NewTime(s.now()), account: all[0].msg.AccountID, scopes: map[string]*sendScope{}}
	if err := d.read(ctx, all); err != nil {
		return err
	}
	left := make([]*sending, 0, len(all))
	for i, m := range all {
		refused, err := d.sender(ctx, m)
		if err != nil || refused != nil {
			return refusedAt(i, refused, err)
		}
		if m.refused = d.approval(m); m.refused == nil {
			left = append(left, m)
		}
	}
	if len(left) > 0 {
		if refused, err := d.suppressions(ctx, left); err != nil || refused != nil {
			return refusedAt(0, refused, err)
		}
		if refused, err := d.sending(ctx, left); err != nil || refused != nil {
			return refusedAt(0, refused, err)
		}
	}
	for _, m := range left {
		var err error
		if m.refused, err = d.message(ctx, m); err != nil {
			return err
		}
	}
	passed := 0
	for i, m := range all {
		if m.refused != nil {
			m.refused.Email = i
			m.refused.Hold = m.refused.Hold && m.inbox != nil
		}
		if m.refused == nil || m.refused.Hold && m.inBatch {
			passed++
		}
	}
	if passed == 0 {
		return all[0].refused
	}
	return d.countAccepted(ctx, all)
}

// refusedAt is a refusal as an error. A nil *Refused is none.
func refusedAt(email int, refused *Refused, err error) error {
	if err != nil || refused == nil {
		return err
	}
	refused.Email = email
	return refused
}

func (m *sending) isLive() bool { return !m.msg.TestMode }

// liveRecipients is how many recipients the message leaves for.
func (m *sending) liveRecipients() int64 {
	if m.refused != nil || !m.isLive() {
		return 0
	}
	return m.msg.toSend()
}

// read locks and reads what the rules need to know.
func (d *decision) read(ctx context.Context, all []*sending) error {
	const (
		account = `SELECT plan, paused_at, coalesce(pause_reason, '') AS reason,
			EXISTS (SELECT 1 FROM stops WHERE stops.account_id = accounts.seq) AS stopped,
			EXISTS (SELECT 1 FROM lists WHERE lists.account_id = accounts.seq AND direction = 'outbound') AS listed,
			EXISTS (SELECT 1 FROM suppressions WHERE suppressions.account_id = accounts.seq) AS suppresses
			FROM accounts WHERE seq = $1`
		limited = `SELECT limits IS NOT NULL FROM inboxes WHERE seq = $1`
	)
	p, lock := d.s.prepared, d.s.engine.LockRow()
	if err := p.Get(ctx, d.tx, &d.is, account, d.account); err != nil {
		return d.s.wrap(err, fmt.Sprintf("account %d", d.account))
	}
	d.plan = d.s.plans.of(d.is.Plan)
	counts := all[0].isDue || d.s.agentLimits != nil || d.plan.Daily+d.plan.Monthly > 0
	var seqs []int64
	for _, m := range all {
		counts = counts || slices.ContainsFunc(m.senders, func(s Sender) bool { return !s.Limits.None() })
		if m.inboxSeq != 0 && !slices.Contains(seqs, m.inboxSeq) {
			seqs = append(seqs, m.inboxSeq)
		}
	}
	slices.Sort(seqs)
	for _, seq := range seqs {
		if counts || lock == "" {
			break
		}
		if err := p.Get(ctx, d.tx, &counts, limited, seq); err != nil {
			return d.s.wrap(err, "limits of the inbox")
		}
	}
	if counts && lock != "" {
		if err := p.Get(ctx, d.tx, &d.is, account+lock, d.account); err != nil {
			return d.s.wrap(err, "lock the account")
		}
		d.plan = d.s.plans.of(d.is.Plan)
	}
	d.inboxes = make(map[int64]*lockedInbox, len(seqs))
	for _, seq := range seqs {
		in, err := d.s.lockForMessage(ctx, d.tx, seq, d.now)
		if err != nil {
			return err
		}
		if in == nil {
			return fmt.Errorf("inbox %d: %w", seq, ErrNotFound)
		}
		d.inboxes[seq] = in
	}
	for _, m := range all {
		if m.inbox = d.inboxes[m.inboxSeq]; m.inbox != nil && !m.isEmail {
			m.msg.InboxID, m.msg.AccountID = m.inbox.id, m.inbox.accountID
		}
	}
	if !d.is.Listed {
		return nil
	}
	var err error
	d.lists, err = readLists(ctx, d.tx, []int64{d.account}, ListOutbound)
	return err
}

func (d *decision) reads() txReader { return txReader{d.s.prepared, d.tx} }

// sender asks the rules about who sends a message to whom.
func (d *decision) sender(ctx context.Context, m *sending) (*Refused, error) {
	in := m.inbox
	if refused, err := d.domain(ctx, m); err != nil || refused != nil {
		return refused, err
	}
	switch {
	case in == nil:
	case in.accountID != d.account:
		return refuse(RuleDomain, "from", "the sender address belongs to another account"), nil
	case in.status == InboxDeleted && !m.isDue:
		return nil, fmt.Errorf("inbox %s is deleted: %w", in.id, ErrNotFound)
	case in.status == InboxDeleted:
		return refuse(RuleSuspended, "", "the inbox was deleted"), nil
	}
	if in != nil {
		if refused := inboxWorks(in.status, in.expiresAt, d.now); refused != nil {
			return refused, nil
		}
	}
	if m.autoReply {
		return refuse(RuleLoop, "", "this is an automatic reply to automated mail"), nil
	}
	if in == nil || in.policy != PolicyReplyOnly {
		return nil, nil
	}
	folded := each(m.msg.Recipients, func(r Recipient) string { return mail.FoldAddress(r.Email) })
	q, args := haveWritten(in.seq, folded, m.msg.TestMode)
	var written []string
	if err := d.tx.SelectContext(ctx, &written, q, args...); err != nil {
		return nil, errIn("who has written to the inbox", err)
	}
	for i, place := range places(m.msg.Recipients) {
		if !slices.Contains(written, folded[i]) {
			return refuse(RuleReplyOnly, place, "%s has not written to this inbox", place), nil
		}
	}
	return nil, nil
}

// inboxWorks refuses an inbox that is suspended or has expired.
func inboxWorks(status InboxStatus, expires *Time, now Time) *Refused {
	switch {
	case status == InboxSuspended:
		return refuse(RuleSuspended, "", "this inbox is suspended")
	case expires != nil && !expires.After(now.Time):
		return refuse(RuleExpired, "", "this inbox has expired")
	}
	return nil
}

// Works returns a *Refused if the inbox is suspended or has expired.
func (in Inbox) Works(now Time) error {
	return refusedAt(0, inboxWorks(in.Status, in.ExpiresAt, now), nil)
}

// places names recipients by their places, such as "to[0]".
func places(to []Recipient) []string {
	n := map[string]int{}
	return each(to, func(r Recipient) string {
		n[r.Kind]++
		return fmt.Sprintf("%s[%d]", r.Kind, n[r.Kind]-1)
	})
}

// domain refuses a domain that is not verified for the account.
func (d *decision) domain(ctx context.Context, m *sending) (*Refused, error) {
	const q = `SELECT account_id FROM domains WHERE status = 'verified' AND domain = $1`
	if m.domain == "" {
		return nil, nil
	}
	lock := ""
	if m.isDue {
		lock = d.s.engine.LockRow()
	}
	var owner int64
	err := d.s.prepared.Get(ctx, d.tx, &owner, q+lock, m.domain)
	switch {
	case err != nil && !errors.Is(err, sql.ErrNoRows):
		return nil, errIn("domain of the sender", err)
	case err == nil && owner == d.account:
		return nil, nil
	case m.isEmail:
		return refuse(RuleDomain, "from", "from %s must be on the mail domain of the installation or on a verified domain of this account",
			cmp.Or(m.msg.FromEmail, m.domain)), nil
	}
	return refuse(RuleDomain, "domain", "domain: use the mail domain of the installation or a verified domain of this account"), nil
}

// suppressions skips recipients that the account does not send to, and refuses the call
// if it has no others. Of a due email, the queue skips them before each attempt.
func (d *decision) suppressions(ctx context.Context, all []*sending) (*Refused, error) {
	if !d.is.Suppresses || all[0].isDue {
		return nil, nil
	}
	spellings := map[string][]string{} // of each folded address
	var asked []string
	for _, m := range all {
		for i := range m.msg.Recipients {
			if email := mail.FoldAddress(m.msg.Recipients[i].Email); spellings[email] == nil {
				spellings[email] = mail.AddressSpellings(email)
				asked = append(asked, spellings[email]...)
			}
		}
	}
	var found []string
	const q = `SELECT email_fold FROM suppressions WHERE account_id = ? AND email_fold IN (?) AND category IN (?)`
	if err := selectIn(ctx, d.tx, &found, q, d.account, asked, suppressing(all[0].category)); err != nil {
		return nil, errIn("who is suppressed", err)
	}
	skip := func(r Recipient) bool {
		return slices.ContainsFunc(spellings[mail.FoldAddress(r.Email)], func(s string) bool { return slices.Contains(found, s) })
	}
	var skipped []Recipient
	left := 0
	for _, m := range all {
		n := len(skipped)
		for i := range m.msg.Recipients {
			if r := &m.msg.Recipients[i]; skip(*r) {
				r.Status = RecipientSuppressed
				skipped = append(skipped, *r)
			}
		}
		if left += int(m.msg.toSend()); len(skipped) == n {
			continue
		}
		if err := m.noteSuppressed(); err != nil {
			return nil, err
		}
	}
	if len(skipped) == 0 || left > 0 {
		return nil, nil
	}
	refused := &Refused{Rule: RuleSuppression}
	var names []string
	for _, r := range skipped {
		if r.Email = mail.FoldAddress(r.Email); !slices.Contains(names, r.Email) {
			names, refused.Recipients = append(names, r.Email), append(refused.Recipients, r)
		}
	}
	const shown = 3
	who := strings.Join(names[:min(len(names), shown)], ", ")
	if more := len(names) - shown; more > 0 {
		who += fmt.Sprintf(" and %d more", more)
	}
	refused.Param = skipped[0].Kind
	refused.Text = "every recipient is suppressed: " + who + ". To send to an address again, call DELETE /v1/suppressions/{email}"
	return refused, nil
}

// sending asks the rules about the account and its senders. A due email was in the plan
// when it was accepted, and the queue keeps it while its sender is stopped.
func (d *decision) sending(ctx context.Context, all []*sending) (*Refused, error) {
	n, live := int64(0), false
	for _, m := range all {
		if m.isLive() {
			n, live = n+m.msg.toSend(), true
		}
	}
	switch {
	case !live:
		return nil, nil
	case d.is.PausedAt != nil:
		return refuse(RulePause, "", "sending is paused: %s", d.is.Reason), nil
	case all[0].isDue:
		return nil, nil
	}
	if d.plan.Daily+d.plan.Monthly > 0 {
		u, err := readAccepted(ctx, d.reads(), d.account, d.now.Time)
		if err != nil {
			return nil, err
		}
		if refused := d.plan.check(u, n, d.now.Time); refused != nil {
			return refused, nil
		}
	}
	if !d.is.Stopped {
		return nil, nil
	}
	var stopped []stop
	if err := d.tx.SelectContext(ctx, &stopped, stopsWhere("account_id = $1"), d.account); err != nil {
		return nil, errIn("stops", err)
	}
	for _, m := range all {
		if s := m.stoppedBy(stopped); s != nil && m.isLive() {
			refused := refuse(RuleStop, "", "sending is stopped for %s", s.Scope)
			if refused.Of = s.Scope; s.Scope == StopAccount {
				refused.Text = "sending is stopped for this account"
			}
			return refused, nil
		}
	}
	return nil, nil
}

// stoppedBy returns the stop that holds for the message, or nil.
func (m *sending) stoppedBy(stopped []stop) *stop {
	from := ""
	if m.inbox != nil {
		from = m.inbox.id
	}
	for _, by := range append([]Sender{{}}, m.senders...) {
		for i := range stopped {
			if stopped[i].stops(m.msg.AccountID, from, by.ID) {
				return &stopped[i]
			}
		}
	}
	return nil
}

// approval holds a message of an inbox that sends only what was approved, unless a list
// blocks it. Nothing leaves yet, so no other rule is asked.
func (d *decision) approval(m *sending) *Refused {
	if m.approval != nil || m.inbox == nil || m.inbox.policy != PolicyApproval {
		return nil
	}
	if refused := d.listed(m); refused != nil {
		return refused
	}
	refused := refuse(RuleApproval, "", "the inbox %s sends only what was approved", m.inbox.id)
	refused.Hold = true
	return refused
}

// message asks the rules about one message: lists and limits. It counts a message that
// may leave.
func (d *decision) message(ctx context.Context, m *sending) (*Refused, error) {
	if refused := d.listed(m); refused != nil {
		return refused, nil
	}
	return d.limits(ctx, m)
}

// listed returns what the lists say against a message. A person, or another key than
// the one that made it, may approve a draft.
func (d *decision) listed(m *sending) *Refused {
	if len(d.lists) == 0 {
		return nil
	}
	l := listFor(d.lists, m.inboxSeq)
	var strictest mail.ListAction
	var refused *Refused
	for i, place := range places(m.msg.Recipients) {
		action, by := l.Of(m.msg.Recipients[i].Email, true)
		if !action.Stricter(strictest) {
			continue
		}
		strictest = action
		switch {
		case action == mail.ListApprove:
			refused = refuse(RuleList, place, "%s needs the approval of a person or of another key (list entry %s)", place, by.ID)
			refused.Hold = true
		case by.ID == "":
			refused = refuse(RuleList, place, "%s is not on the allow list", place)
		default:
			refused = refuse(RuleList, place, "%s is blocked by list entry %s", place, by.ID)
		}
	}
	if a := m.approval; refused != nil && refused.Hold && a != nil {
		if a.By != a.CreatedBy || strings.HasPrefix(a.By, "usr_") {
			return nil
		}
		refused.Hold = false
	}
	return refused
}

// limits refuses a message by the limit that it would exceed for the longest time, or
// counts it. A person or another key may approve a draft beyond limits that ask for
// approval.
func (d *decision) limits(ctx context.Context, m *sending) (*Refused, error) {
	m.scopes = nil // of an earlier try
	if m.isDue {
		if err := uncount(ctx, d.tx, m.msg.Seq); err != nil {
			return nil, err
		}
	}
	scopes, err := d.scopesOf(ctx, m)
	if err != nil || len(scopes) == 0 || !m.isLive() {
		return nil, err
	}
	c := &m.counted
	*c = counted{}
	for i := range m.msg.Recipients {
		if r := &m.msg.Recipients[i]; r.Status != RecipientSuppressed {
			c.to = append(c.to, hashAddress(r.Email))
		}
	}
	if len(c.to) == 0 {
		return nil, nil
	}
	c.people = slices.Clone(c.to)
	slices.Sort(c.people)
	c.people = slices.Compact(c.people)
	if slices.ContainsFunc(scopes, func(u *sendScope) bool { return u.limits.SimilarPerHour != nil }) {
		c.text = textHash(&m.msg, m.text)
	}
	var worst *Refused
	mayHold := true
	a := m.approval
	for _, u := range scopes {
		over, err := u.overLimits(ctx, d.reads(), c)
		if err != nil {
			return nil, errIn("read the sends", err)
		}
		if over == nil || u.limits.OnLimit == LimitApproval && a != nil && a.By != a.CreatedBy {
			continue
		}
		mayHold = mayHold && u.limits.OnLimit == LimitApproval
		if worst == nil || over.Retry.After(worst.Retry) {
			worst = over
		}
	}
	if worst != nil {
		worst.Hold = mayHold && a == nil && !m.isDue
		return worst, nil
	}
	m.scopes = scopes
	if m.msg.Seq == 0 {
		return nil, nil
	}
	return nil, m.record(ctx, d.reads())
}

// record counts a message that may leave. It has a number.
func (m *sending) record(ctx context.Context, tx txReader) error {
	m.counted.message = m.msg.Seq
	for _, u := range m.scopes {
		if err := u.record(ctx, tx, &m.counted); err != nil {
			return err
		}
	}
	m.scopes = nil
	return nil
}

// scopesOf returns the scopes that a message counts in, in the order of their names.
func (d *decision) scopesOf(ctx context.Context, m *sending) (all []*sendScope, err error) {
	add := func(name string, l *Limits) {
		if l.None() || err != nil {
			return
		}
		u := d.scopes[name]
		if u == nil {
			u = &sendScope{account: d.account, name: name, limits: l}
			err = errIn("read the sends", readScope(ctx, d.reads(), u, d.now))
			d.scopes[name] = u
		}
		all = append(all, u)
	}
	for _, by := range m.senders {
		if by.ID == SenderNotices {
			return nil, nil
		}
		add(by.ID, by.Limits)
	}
	if m.inbox != nil {
		add(m.inbox.id, m.inbox.limits)
	}
	add(AccountScope, d.s.agentLimits)
	slices.SortFunc(all, func(a, b *sendScope) int { return strings.Compare(a.name, b.name) })
	return all, err
}

// countAccepted counts what leaves for the plan.
func (d *decision) countAccepted(ctx context.Context, all []*sending) error {
	n := int64(0)
	for _, m := range all {
		n += m.liveRecipients()
	}
	if n == 0 || all[0].isDue || all[0].asks {
		return nil
	}
	return d.s.insert(ctx, d.tx, countRow(d.account, d.now, countAccepted, d.s.shard(), n))
}
