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
)

// An email is scheduled as long as it has a due_at, or a held_due instead (see
// Hold). The transaction that removes it, to cancel or to queue the email, owns it: the row
// is locked first, and everything else about the email is changed after it.

// CancelEmail ends an email that is scheduled: it is never sent. It returns
// ErrState if it is not scheduled any more.
func (s *Store) CancelEmail(ctx context.Context, accountID int64, id string) error {
	const (
		take   = `UPDATE emails SET due_at = NULL, held_due = NULL WHERE message_seq = $1 AND (due_at IS NOT NULL OR held_due IS NOT NULL)`
		cancel = `UPDATE messages SET status = 'cancelled', settled_at = $2 WHERE seq = $1 AND status = 'scheduled'`
	)
	err := s.inTx(ctx, "cancel email", func(tx *sqlx.Tx) error {
		m, err := s.takeScheduled(ctx, tx, accountID, id, take)
		if err != nil {
			return err
		}
		if err := oneRow("email "+id, ErrState)(tx.ExecContext(ctx, cancel, m.Seq, NewTime(s.now()))); err != nil {
			return err
		}
		return s.emailEvents(ctx, tx, EventEmailCancelled, EventData{Status: EmailCancelled}, m)
	})
	if err == nil {
		s.changed([]topic{{kind: topicEvents}, {kind: topicWebhooks}}, 1)
	}
	return err
}

// RescheduleEmail changes when a scheduled email is sent. A time that is not in
// the future sends it at once, if rules allow. It returns ErrState if the email
// is not scheduled any more or is held.
func (s *Store) RescheduleEmail(ctx context.Context, accountID int64, id string, at Time, rules DueRules) error {
	const (
		put = `UPDATE emails SET due_at = $2, scheduled_at = $2 WHERE message_seq = $1 AND due_at IS NOT NULL`
		now = `UPDATE emails SET due_at = NULL, scheduled_at = NULL WHERE message_seq = $1 AND due_at IS NOT NULL`
	)
	atOnce := !at.After(s.now())
	err := s.inTx(ctx, "reschedule email", func(tx *sqlx.Tx) error {
		if !atOnce {
			_, err := s.takeScheduled(ctx, tx, accountID, id, put, at)
			return err
		}
		m, err := s.takeScheduled(ctx, tx, accountID, id, now)
		if err != nil {
			return err
		}
		return s.release(ctx, tx, []int64{m.Seq}, rules, nil)
	})
	if err == nil && atOnce {
		s.changed([]topic{{kind: topicQueue}, {kind: topicEvents}, {kind: topicWebhooks}}, 1)
	}
	return err
}

// takeScheduled runs an update of a row of emails that must still be scheduled.
func (s *Store) takeScheduled(ctx context.Context, tx *sqlx.Tx, accountID int64, id, update string, args ...any) (Message, error) {
	const find = `SELECT m.seq, m.account_id, m.test_mode` + emailTables + ` WHERE m.account_id = $1 AND m.id = $2`
	var m Message
	err := tx.GetContext(ctx, &m, find, accountID, id)
	if errors.Is(err, sql.ErrNoRows) {
		return m, fmt.Errorf("email %s: %w", id, ErrNotFound)
	}
	if err != nil {
		return m, err
	}
	return m, oneRow("email "+id, ErrState)(tx.ExecContext(ctx, update, append([]any{m.Seq}, args...)...))
}

// ReleaseScheduled queues the scheduled emails whose time has come, up to a
// number, the earliest first, and returns how many it has taken up. Their time for
// retries begins now. Those that must not leave by rules fail, or become drafts.
func (s *Store) ReleaseScheduled(ctx context.Context, rules DueRules) (int, error) {
	const due = `SELECT message_seq FROM emails WHERE due_at <= $1 LIMIT 1`
	const q = `WITH due AS MATERIALIZED (SELECT message_seq FROM emails WHERE due_at <= $1 ORDER BY due_at LIMIT $2`
	const take = `) UPDATE emails SET due_at = NULL WHERE message_seq IN (SELECT message_seq FROM due) RETURNING message_seq`
	if s.Paused() != nil {
		return 0, nil
	}
	now := NewTime(s.now())
	var seqs []int64
	// Mostly there is none, which needs no transaction to see.
	if err := s.read.SelectContext(ctx, &seqs, due, now); err != nil || len(seqs) == 0 {
		return 0, s.wrap(err, "due emails")
	}
	drafts, err := s.prepareDrafts(ctx, rules, now)
	if err != nil {
		return 0, err
	}
	err = s.inTx(ctx, "queue scheduled emails", func(tx *sqlx.Tx) error {
		seqs = nil
		err := tx.SelectContext(ctx, &seqs, q+s.engine.SkipLocked()+take, now, releaseBatch)
		if err != nil || len(seqs) == 0 {
			return err
		}
		return s.release(ctx, tx, seqs, rules, drafts)
	})
	if err != nil || len(seqs) == 0 {
		return 0, err
	}
	s.changed([]topic{{kind: topicQueue}, {kind: topicEvents}, {kind: topicWebhooks}}, len(seqs))
	return len(seqs), nil
}

// release queues emails whose due_at was removed by the transaction, except those
// that must not leave.
func (s *Store) release(ctx context.Context, tx *sqlx.Tx, seqs []int64, rules DueRules, drafts map[int64]*preparedDraft) error {
	const (
		queue = `UPDATE messages SET status = 'queued' WHERE status = 'scheduled' AND seq IN (?) RETURNING seq, account_id, test_mode`
		begin = `UPDATE recipients SET next_attempt_at = ?, created_at = ? WHERE status = 'queued' AND message_seq IN (?)`
	)
	seqs, err := s.checkDue(ctx, tx, seqs, rules, drafts)
	if err != nil || len(seqs) == 0 {
		return err
	}
	var ms []Message
	if err := selectIn(ctx, tx, &ms, queue, seqs); err != nil {
		return err
	}
	if len(ms) != len(seqs) {
		return fmt.Errorf("%d of %d emails that were due are scheduled: %w", len(ms), len(seqs), ErrState)
	}
	now := NewTime(s.now())
	if err := execIn(ctx, tx, begin, now, now, seqs); err != nil {
		return err
	}
	return s.emailEvents(ctx, tx, EventEmailQueued, EventData{Status: MessageQueued}, ms...)
}

func (s *Store) emailEvents(ctx context.Context, tx *sqlx.Tx, typ EventType, data any, ms ...Message) error {
	return s.insertEvents(ctx, tx, each(ms, func(m Message) newEvent {
		return newEvent{notice{account: m.AccountID, message: m.Seq, typ: typ}, m.TestMode, data}
	}))
}

// A scheduled email was checked when it was accepted, which may be weeks ago. When it
// is due, what it needs is checked again in the transaction that queues it, with the
// rows that decide locked until the commit: no change to them can pass it by.

// DueRules are what the store needs to check a scheduled email that is due.
type DueRules struct {
	// MailDomain is the installation's own, which every account sends from.
	MailDomain string
	// Fold makes an address comparable, as FromEmail is.
	Fold func(email string) string
	// Draft returns the draft that an email becomes when its inbox has come to need
	// approval. Of what it returns, the store fills in AccountID, InboxID, Kind,
	// TestMode and CreatedBy. nil: an email that needs approval fails.
	Draft func(ctx context.Context, e Email) (NewDraft, error)
}

// dueEmail is a scheduled email whose time has come.
type dueEmail struct {
	Seq       int64    `db:"seq"`
	AccountID int64    `db:"account_id"`
	ID        string   `db:"id"`
	TestMode  bool     `db:"test_mode"`
	FromEmail string   `db:"from_email"`
	FromInbox *int64   `db:"from_inbox"`
	CreatedBy *string  `db:"created_by"`
	inbox     *Inbox   // whose address it is sent from
	to        []string // its recipients

	recipients []Recipient
}

const dueColumns = `SELECT m.seq, m.account_id, m.id, m.test_mode, m.from_email, e.from_inbox, e.created_by
	FROM messages m JOIN emails e ON e.message_seq = m.seq`

// domain is the domain that the email is sent from.
func (e *dueEmail) domain() string {
	return strings.ToLower(e.FromEmail[strings.LastIndexByte(e.FromEmail, '@')+1:])
}

// address is the address of the inbox that the email would be from: its own without
// a tag.
func (e *dueEmail) address() string {
	local, domain, _ := strings.Cut(e.FromEmail, "@")
	local, _, _ = strings.Cut(local, "+")
	return local + "@" + domain
}

// dueSenders is the state that decides whether due emails may be sent.
type dueSenders struct {
	ended   map[string]string // why a key or user may not send, by its id
	paused  map[int64]string  // why an account may not send
	lists   []ListEntry
	domains map[string]int64 // the account that a domain is verified for
}

// readDue reads emails, and locks until the commit what decides whether they may be
// sent: inboxes, then accounts, keys, users and domains.
func (s *Store) readDue(ctx context.Context, tx *sqlx.Tx, seqs []int64) (es []*dueEmail, by dueSenders, err error) {
	if err := selectIn(ctx, tx, &es, dueColumns+` WHERE m.seq IN (?) ORDER BY m.seq`, seqs); err != nil {
		return nil, by, errIn("due emails", err)
	}
	if err := s.readDueInboxes(ctx, tx, es); err != nil {
		return nil, by, err
	}
	var accounts []int64
	var ids, names []string
	for _, e := range es {
		if e.CreatedBy != nil {
			ids = append(ids, *e.CreatedBy)
		}
		accounts = append(accounts, e.AccountID)
		names = append(names, e.domain())
	}
	by = dueSenders{ended: map[string]string{}, paused: map[int64]string{}, domains: map[string]int64{}}
	if err := s.readDuePauses(ctx, tx, accounts, by.paused); err != nil {
		return nil, by, err
	}
	if by.lists, err = readLists(ctx, tx, accounts, ListOutbound); err != nil {
		return nil, by, err
	}
	if len(ids) > 0 {
		if err := s.readDueCreators(ctx, tx, ids, by.ended); err != nil {
			return nil, by, err
		}
	}
	var verified []struct {
		Domain    string `db:"domain"`
		AccountID int64  `db:"account_id"`
	}
	const q = `SELECT domain, account_id FROM domains WHERE status = 'verified' AND domain IN (?) ORDER BY seq`
	if err := selectIn(ctx, tx, &verified, q+s.engine.LockRow(), names); err != nil {
		return nil, by, errIn("domains of due emails", err)
	}
	for _, d := range verified {
		by.domains[d.Domain] = d.AccountID
	}
	return es, by, nil
}

// readDuePauses adds the accounts that are paused to paused.
func (s *Store) readDuePauses(ctx context.Context, tx *sqlx.Tx, accounts []int64, paused map[int64]string) error {
	const q = `SELECT seq, paused_at, pause_reason FROM accounts WHERE seq IN (?) ORDER BY seq`
	var rows []Account
	if err := selectIn(ctx, tx, &rows, q+s.engine.LockRow(), accounts); err != nil {
		return errIn("accounts of due emails", err)
	}
	for _, a := range rows {
		if a.PausedAt != nil {
			paused[a.Seq] = (&PausedError{deref(a.PauseReason)}).Error()
		}
	}
	return nil
}

// readDueCreators adds the keys that are revoked or have expired, and the users
// that were removed, to ended.
func (s *Store) readDueCreators(ctx context.Context, tx *sqlx.Tx, ids []string, ended map[string]string) error {
	const (
		keys  = `SELECT id, revoked_at, expires_at FROM api_keys WHERE id IN (?) ORDER BY seq`
		users = `SELECT id, removed_at FROM users WHERE id IN (?) ORDER BY seq`
	)
	var rows []Key
	if err := selectIn(ctx, tx, &rows, keys+s.engine.LockRow(), ids); err != nil {
		return errIn("keys that scheduled emails", err)
	}
	var people []struct {
		ID        string `db:"id"`
		RemovedAt *Time  `db:"removed_at"`
	}
	if err := selectIn(ctx, tx, &people, users+s.engine.LockRow(), ids); err != nil {
		return errIn("users who scheduled emails", err)
	}
	now := s.now()
	for _, k := range rows {
		switch {
		case k.RevokedAt != nil:
			ended[k.ID] = "the key that scheduled it was revoked"
		case k.ExpiresAt != nil && !k.ExpiresAt.After(now):
			ended[k.ID] = "the key that scheduled it has expired"
		}
	}
	for _, p := range people {
		if p.RemovedAt != nil {
			ended[p.ID] = "the person who scheduled it was removed"
		}
	}
	return nil
}

// readDueInboxes finds the inboxes that emails are sent from, also one that came to
// have the address since, and the recipients.
func (s *Store) readDueInboxes(ctx context.Context, tx *sqlx.Tx, es []*dueEmail) error {
	seqs, addresses := []int64{0}, []string{""}
	for _, e := range es {
		if e.FromInbox != nil {
			seqs = append(seqs, *e.FromInbox)
		}
		addresses = append(addresses, e.address())
	}
	var inboxes []Inbox
	const q = `SELECT ` + inboxColumns + ` FROM inboxes WHERE seq IN (?) OR address IN (?) ORDER BY seq`
	if err := selectIn(ctx, tx, &inboxes, q+s.engine.LockRow(), seqs, addresses); err != nil {
		return errIn("inboxes of due emails", err)
	}
	var from []int64
	for _, e := range es {
		from = append(from, e.Seq)
		for i := range inboxes {
			if in := &inboxes[i]; e.FromInbox != nil && in.Seq == *e.FromInbox || e.FromInbox == nil && in.Address == e.address() {
				e.inbox = in
			}
		}
	}
	if len(from) == 0 {
		return nil
	}
	var to []Recipient
	if err := selectIn(ctx, tx, &to, `SELECT message_seq, email, kind FROM recipients WHERE status = 'queued' AND message_seq IN (?) ORDER BY seq`, from); err != nil {
		return errIn("recipients of due emails", err)
	}
	for _, e := range es {
		for _, r := range to {
			if r.MessageSeq == e.Seq {
				e.to = append(e.to, r.Email)
				e.recipients = append(e.recipients, r)
			}
		}
	}
	return nil
}

// whyNot returns why an email must not be sent; empty when it may.
func (s *Store) whyNot(ctx context.Context, tx *sqlx.Tx, e *dueEmail, rules DueRules, by dueSenders) (string, error) {
	in, ended := e.inbox, by.ended[deref(e.CreatedBy)]
	switch {
	case ended != "":
		return ended, nil
	case by.paused[e.AccountID] != "" && !e.TestMode:
		return by.paused[e.AccountID], nil
	case e.domain() != rules.MailDomain && by.domains[e.domain()] != e.AccountID:
		return "the domain " + e.domain() + " is not verified for this account", nil
	case in == nil:
		return "", nil
	case in.AccountID != e.AccountID:
		return "the sender address belongs to another account", nil
	case in.Status == InboxDeleted:
		return "the inbox was deleted", nil
	case in.Status == InboxSuspended:
		return "the inbox is suspended", nil
	case in.Expired(NewTime(s.now())):
		return "the inbox has expired", nil
	case in.SendPolicy == PolicyReplyOnly:
		return s.whoHasNotWritten(ctx, tx, e, rules)
	}
	return "", nil
}

// whoHasNotWritten says which recipient an inbox that only replies may not write to.
func (s *Store) whoHasNotWritten(ctx context.Context, tx *sqlx.Tx, e *dueEmail, rules DueRules) (string, error) {
	fold := rules.Fold
	if fold == nil {
		fold = strings.ToLower
	}
	folded := each(e.to, fold)
	q, args := haveWritten(e.inbox.Seq, folded, e.TestMode)
	var written []string
	if err := tx.SelectContext(ctx, &written, q, args...); err != nil {
		return "", errIn("who has written to the inbox", err)
	}
	for i, to := range folded {
		if !slices.Contains(written, to) {
			return fmt.Sprintf("the inbox only replies, and %s has not written to it", e.to[i]), nil
		}
	}
	return "", nil
}

// preparedDraft is a draft that a due email becomes, with its files stored, or why there
// is none.
type preparedDraft struct {
	NewDraft
	files draftFiles
	err   error
}

// lost reports whether the content of the email is lost.
func (p *preparedDraft) lost() bool {
	return errors.Is(p.err, ErrDamaged) || errors.Is(p.err, ErrNotFound)
}

// draftRetry is how long an email waits whose draft could not be made.
const draftRetry = time.Minute

// prepareDrafts makes the drafts of those due emails that may need approval. It
// runs before the transaction, which checks again.
func (s *Store) prepareDrafts(ctx context.Context, rules DueRules, now Time) (map[int64]*preparedDraft, error) {
	const q = `SELECT m.seq, i.send_policy FROM emails e JOIN messages m ON m.seq = e.message_seq
		JOIN inboxes i ON i.seq = e.from_inbox WHERE e.due_at <= $1 AND (i.send_policy = 'approval'
			OR EXISTS (SELECT 1 FROM lists l WHERE l.account_id = e.account_id AND l.direction = 'outbound' AND l.action = 'approve'))
		ORDER BY e.due_at LIMIT $2`
	if rules.Draft == nil {
		return nil, nil
	}
	var due []struct {
		Seq    int64      `db:"seq"`
		Policy SendPolicy `db:"send_policy"`
	}
	if err := s.read.SelectContext(ctx, &due, q, now, releaseDrafts); err != nil || len(due) == 0 {
		return nil, s.wrap(err, "due emails to approve")
	}
	var seqs []int64
	for _, d := range due {
		seqs = append(seqs, d.Seq)
	}
	es, err := s.EmailsOf(ctx, seqs)
	if err != nil {
		return nil, err
	}
	out := make(map[int64]*preparedDraft, len(es))
	for _, d := range due {
		seq := d.Seq
		e, ok := es[seq]
		if !ok {
			continue
		}
		if d.Policy != PolicyApproval {
			all, err := readLists(ctx, s.read, []int64{e.AccountID}, ListOutbound)
			if err != nil {
				return nil, s.wrap(err, "due emails to approve")
			}
			if why := outboundListed(listFor(all, *e.FromInbox), e.Recipients); why == nil || !why.Approval {
				continue
			}
		}
		if e.Content == nil {
			out[seq] = &preparedDraft{}
			continue
		}
		p := &preparedDraft{}
		if p.NewDraft, p.err = rules.Draft(ctx, e); p.err == nil {
			p.files, p.err = s.keepDraftFiles(ctx, p.Files)
		}
		out[seq] = p
		if p.err == nil {
			continue
		}
		s.log.WarnContext(ctx, "a scheduled email cannot become a draft", "email_id", e.ID, "error", p.err)
		if !p.lost() { // each attempt may take long, so the others follow in the next rounds
			break
		}
	}
	return out, nil
}

// checkDue ends those of the emails that must not leave any more, and returns the
// others. Their due_at was taken away by the transaction.
func (s *Store) checkDue(ctx context.Context, tx *sqlx.Tx, seqs []int64, rules DueRules, drafts map[int64]*preparedDraft) ([]int64, error) {
	es, by, err := s.readDue(ctx, tx, seqs)
	if err != nil {
		return nil, err
	}
	var pass []int64
	for _, e := range es {
		why, err := s.whyNot(ctx, tx, e, rules, by)
		if err != nil {
			return nil, err
		}
		listed := by.listed(e)
		if why == "" && listed != nil && (!listed.Approval || e.inbox == nil) {
			why = listed.Error()
		}
		switch {
		case why == "" && (listed != nil || e.inbox != nil && e.inbox.SendPolicy == PolicyApproval):
			err = s.draftDue(ctx, tx, e, rules, drafts[e.Seq])
		case why != "":
			err = s.failDue(ctx, tx, e, "Not sent: "+why)
		default:
			pass = append(pass, e.Seq)
		}
		if err != nil {
			return nil, err
		}
	}
	return pass, nil
}

// listed returns what the lists say against an email, or nil.
func (by *dueSenders) listed(e *dueEmail) *ListError {
	if len(by.lists) == 0 {
		return nil
	}
	var inbox int64
	if e.inbox != nil {
		inbox = e.inbox.Seq
	}
	all := slices.DeleteFunc(slices.Clone(by.lists), func(l ListEntry) bool { return l.AccountID != e.AccountID })
	return outboundListed(listFor(all, inbox), e.recipients)
}

// failDue ends an email that must not leave: each of its recipients has failed.
func (s *Store) failDue(ctx context.Context, tx *sqlx.Tx, e *dueEmail, why string) error {
	const (
		end  = `UPDATE messages SET status = 'failed', settled_at = $2 WHERE seq = $1 AND status = 'scheduled'`
		fail = `UPDATE recipients SET status = 'failed', last_response = $2 WHERE message_seq = $1 AND status = 'queued' RETURNING email`
	)
	if err := oneRow("email "+e.ID, ErrState)(tx.ExecContext(ctx, end, e.Seq, NewTime(s.now()))); err != nil {
		return err
	}
	var to []string
	if err := tx.SelectContext(ctx, &to, fail, e.Seq, storable(why)); err != nil {
		return err
	}
	slices.Sort(to)
	for _, email := range to {
		data := EventData{Status: MessageFailed, Recipient: email, Response: why}
		if err := s.emailEvents(ctx, tx, EventEmailFailed, data, e.message()); err != nil {
			return err
		}
	}
	return nil
}

func (e *dueEmail) message() Message {
	return Message{Seq: e.Seq, AccountID: e.AccountID, ID: e.ID, TestMode: e.TestMode}
}

// draftDue makes a draft of an email whose inbox has come to need approval, and
// cancels the email. Without a draft, which is made before the transaction, the email
// waits.
func (s *Store) draftDue(ctx context.Context, tx *sqlx.Tx, e *dueEmail, rules DueRules, p *preparedDraft) error {
	const (
		wait   = `UPDATE emails SET due_at = $2 WHERE message_seq = $1`
		cancel = `UPDATE messages SET status = 'cancelled', settled_at = $2 WHERE seq = $1 AND status = 'scheduled'`
		say    = `UPDATE recipients SET last_response = $2 WHERE message_seq = $1 AND status = 'queued'`
	)
	now := NewTime(s.now())
	switch {
	case p != nil && p.lost():
		return s.failDue(ctx, tx, e, "Not sent: the email has come to need approval, and its content is damaged")
	case p != nil && p.err != nil:
		_, err := tx.ExecContext(ctx, wait, e.Seq, NewTime(now.Add(draftRetry)))
		return err
	case rules.Draft == nil, e.FromInbox == nil, p != nil && p.Content == nil:
		return s.failDue(ctx, tx, e, "Not sent: the email has come to need approval")
	case p == nil:
		_, err := tx.ExecContext(ctx, wait, e.Seq, now)
		return err
	}
	if err := oneRow("email "+e.ID, ErrState)(tx.ExecContext(ctx, cancel, e.Seq, now)); err != nil {
		return err
	}
	d := p.row(now)
	d.Kind, d.OnExpiry, d.ContentAt = DraftNew, ExpiryRejects, now
	d.AccountID, d.InboxSeq, d.InboxID, d.TestMode = e.AccountID, e.inbox.Seq, e.inbox.ID, e.TestMode
	d.EmailSeq, d.CreatedBy = &e.Seq, cmp.Or(deref(e.CreatedBy), "unknown")
	if err := insertDraft(ctx, tx, &d, p.files.row); err != nil {
		return errIn("insert the draft of an email", err)
	}
	if _, err := tx.ExecContext(ctx, say, e.Seq, "Held for approval as "+d.ID); err != nil {
		return err
	}
	if err := s.emailEvents(ctx, tx, EventEmailCancelled, EventData{Status: EmailCancelled}, e.message()); err != nil {
		return err
	}
	return s.draftEvents(ctx, tx, d, EventDraftCreated, EventDraftPending)
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
