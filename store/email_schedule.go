package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/internal/mail"
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
		_, err = s.release(ctx, tx, []int64{m.Seq}, rules, nil)
		return err
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
// retries begins now. Those that must not leave by rules fail, wait, or become drafts.
func (s *Store) ReleaseScheduled(ctx context.Context, rules DueRules) (int, error) {
	const due = `SELECT DISTINCT account_id FROM (SELECT account_id FROM emails WHERE due_at <= $1 ORDER BY due_at LIMIT $2) e ORDER BY account_id`
	if s.Paused() != nil {
		return 0, nil
	}
	accounts, err := readAll[int64](ctx, s, "due emails", due, NewTime(s.now()), releaseBatch)
	if err != nil {
		return 0, err
	}
	total := 0
	var errs []error
	for _, account := range accounts { // one at a time: decide locks it first
		n, held, err := s.releaseDue(ctx, account, rules, nil)
		total += n
		var drafts map[int64]*preparedDraft
		if err == nil && len(held) > 0 {
			drafts, err = s.prepareDrafts(ctx, rules, held)
		}
		if err == nil && len(drafts) > 0 {
			_, _, err = s.releaseDue(ctx, account, rules, drafts)
		}
		if errs = append(errs, err); errors.Is(err, ErrUnavailable) {
			break
		}
	}
	return total, errors.Join(errs...)
}

// releaseDue queues emails of an account that are due: those that drafts has a draft for,
// or any if it is nil. It returns how many it has taken up, and those that wait for a draft.
func (s *Store) releaseDue(ctx context.Context, account int64, rules DueRules, drafts map[int64]*preparedDraft) (n int, held []int64, err error) {
	const due = `SELECT message_seq FROM emails WHERE account_id = $1 AND due_at <= $2 ORDER BY due_at LIMIT $3`
	// An email that a draft was made for may have been cancelled, held, or put off since.
	const take = `UPDATE emails SET due_at = NULL WHERE due_at <= ? AND message_seq IN (?) RETURNING message_seq`
	var seqs []int64
	err = s.inTx(ctx, "queue scheduled emails", func(tx *sqlx.Tx) error {
		now := NewTime(s.now())
		seqs, held = nil, nil
		found := slices.Sorted(maps.Keys(drafts))
		if drafts == nil {
			if err := tx.SelectContext(ctx, &found, due+s.engine.SkipLocked(), account, now, releaseBatch); err != nil {
				return err
			}
		}
		if len(found) == 0 {
			return nil
		}
		if err := selectIn(ctx, tx, &seqs, take, now, found); err != nil || len(seqs) == 0 {
			return err
		}
		held, err = s.release(ctx, tx, seqs, rules, drafts)
		return err
	})
	if err != nil || len(seqs) == 0 {
		return 0, nil, err
	}
	s.changed([]topic{{kind: topicQueue}, {kind: topicEvents}, {kind: topicWebhooks}}, len(seqs))
	return len(seqs), held, nil
}

// release queues emails whose due_at was removed by the transaction, except those
// that must not leave. held are those that need a draft which drafts does not have: they
// are due again.
func (s *Store) release(ctx context.Context, tx *sqlx.Tx, seqs []int64, rules DueRules, drafts map[int64]*preparedDraft) (held []int64, err error) {
	const (
		queue = `UPDATE messages SET status = 'queued' WHERE status = 'scheduled' AND seq IN (?)`
		begin = `UPDATE recipients SET next_attempt_at = ?, created_at = ? WHERE status = 'queued' AND message_seq IN (?)`
		wait  = `UPDATE emails SET due_at = $2 WHERE message_seq = $1`
	)
	es, err := s.readDue(ctx, tx, seqs)
	if err != nil {
		return nil, err
	}
	if err := s.lockDue(ctx, tx, es); err != nil {
		return nil, err
	}
	now := NewTime(s.now())
	var pass []int64
	var left []Message
	for _, e := range es {
		err := s.decideDue(ctx, tx, e, rules)
		refused, ok := errors.AsType[*Refused](err)
		p := drafts[e.Seq]
		switch {
		case err == nil:
			pass, left = append(pass, e.Seq), append(left, e.message())
		case !ok:
			return nil, err
		case !refused.Retry.IsZero():
			_, err = tx.ExecContext(ctx, wait, e.Seq, NewTime(refused.Retry))
		case !refused.Hold:
			err = s.failDue(ctx, tx, e, "Not sent: "+refused.Text)
		case p == nil && rules.Draft != nil && e.FromInbox != nil:
			held = append(held, e.Seq)
			_, err = tx.ExecContext(ctx, wait, e.Seq, now)
		case p != nil && p.err != nil && !p.lost():
			_, err = tx.ExecContext(ctx, wait, e.Seq, NewTime(now.Add(draftRetry)))
		default:
			err = s.draftDue(ctx, tx, e, p)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(pass) == 0 {
		return held, nil
	}
	if err := execIn(ctx, tx, queue, pass); err != nil {
		return nil, err
	}
	if err := execIn(ctx, tx, begin, now, now, pass); err != nil {
		return nil, err
	}
	return held, s.emailEvents(ctx, tx, EventEmailQueued, EventData{Status: MessageQueued}, left...)
}

func (s *Store) emailEvents(ctx context.Context, tx *sqlx.Tx, typ EventType, data any, ms ...Message) error {
	return s.insertEvents(ctx, tx, each(ms, func(m Message) newEvent {
		return newEvent{notice{account: m.AccountID, message: m.Seq, typ: typ}, m.TestMode, data}
	}))
}

// DueRules are what the store needs to decide about a scheduled email that is due.
type DueRules struct {
	// MailDomain is the installation's own, which every account sends from.
	MailDomain string
	// AnySender lets every account send from any domain. It is for development.
	AnySender bool
	// Draft returns the draft that an email becomes when it has come to need
	// approval. Of what it returns, the store fills in AccountID, InboxID, Kind,
	// TestMode and CreatedBy. nil: an email that needs approval fails.
	Draft func(ctx context.Context, e Email) (NewDraft, error)
}

// dueEmail is a scheduled email whose time has come.
type dueEmail struct {
	Seq       int64                `db:"seq"`
	AccountID int64                `db:"account_id"`
	ID        string               `db:"id"`
	TestMode  bool                 `db:"test_mode"`
	FromEmail string               `db:"from_email"`
	Addresses JSON[mail.Addresses] `db:"addresses"`
	Subject   string               `db:"subject"`
	FromInbox *int64               `db:"from_inbox"`
	CreatedBy *string              `db:"created_by"`
	Category  Category             `db:"category"`
	Body      *JSON[Body]          `db:"body"`
	inbox     *lockedInbox
	to        []Recipient
}

// readDue reads emails with their recipients.
func (s *Store) readDue(ctx context.Context, tx *sqlx.Tx, seqs []int64) (es []*dueEmail, err error) {
	const (
		emails = `SELECT m.seq, m.account_id, m.id, m.test_mode, m.from_email, m.addresses, m.subject, e.from_inbox, e.created_by, e.category, c.body
			FROM messages m JOIN emails e ON e.message_seq = m.seq LEFT JOIN contents c ON c.message_seq = m.seq
			WHERE m.seq IN (?) AND m.status = 'scheduled' ORDER BY m.seq`
		recipients = `SELECT message_seq, email, kind FROM recipients WHERE status = 'queued' AND message_seq IN (?) ORDER BY seq`
	)
	if err := selectIn(ctx, tx, &es, emails, seqs); err != nil {
		return nil, errIn("due emails", err)
	}
	if len(es) != len(seqs) {
		return nil, fmt.Errorf("%d of %d emails that were due are scheduled: %w", len(es), len(seqs), ErrState)
	}
	var to []Recipient
	if err := selectIn(ctx, tx, &to, recipients, seqs); err != nil {
		return nil, errIn("recipients of due emails", err)
	}
	bySeq := make(map[int64]*dueEmail, len(es))
	for _, e := range es {
		bySeq[e.Seq] = e
	}
	for _, r := range to {
		bySeq[r.MessageSeq].to = append(bySeq[r.MessageSeq].to, r)
	}
	return es, nil
}

// lockDue locks the account of due emails and then their inboxes, in the order in which
// all do: decide would lock a key before the account, and the inboxes in the order of the
// emails.
func (s *Store) lockDue(ctx context.Context, tx *sqlx.Tx, es []*dueEmail) error {
	lock := s.engine.LockRow()
	if lock == "" {
		return nil
	}
	var locked []int64
	if err := tx.SelectContext(ctx, &locked, `SELECT seq FROM accounts WHERE seq = $1`+lock, es[0].AccountID); err != nil {
		return errIn("lock the account", err)
	}
	var inboxes []int64
	for _, e := range es {
		if e.FromInbox != nil {
			inboxes = append(inboxes, *e.FromInbox)
		}
	}
	if len(inboxes) == 0 {
		return nil
	}
	return errIn("lock inboxes", selectIn(ctx, tx, &locked, `SELECT seq FROM inboxes WHERE seq IN (?) ORDER BY seq`+lock, inboxes))
}

// decideDue decides about an email that is due, which may have been accepted weeks ago.
// What decides is locked until the commit: no change to it can pass the email by.
func (s *Store) decideDue(ctx context.Context, tx *sqlx.Tx, e *dueEmail, rules DueRules) error {
	const at = `SELECT coalesce((SELECT seq FROM inboxes WHERE address = $1), 0)`
	m := &sending{isEmail: true, isDue: true, category: e.Category, preparedMessage: &preparedMessage{msg: e.message()}}
	m.msg.Recipients, m.msg.FromEmail, m.msg.Addresses, m.msg.Subject = e.to, e.FromEmail, e.Addresses, e.Subject
	if e.Body != nil {
		m.text = e.Body.V.Text
	}
	local, domain, _ := strings.Cut(e.FromEmail, "@")
	if domain != rules.MailDomain && !rules.AnySender {
		m.domain = domain
	}
	if e.CreatedBy != nil {
		by, ended, err := s.readSender(ctx, tx, *e.CreatedBy, s.engine.LockRow())
		if err != nil {
			return err
		}
		if ended != "" {
			return refuse(RuleEnded, "", "%s", ended)
		}
		m.senders = []Sender{by}
	}
	if e.FromInbox != nil {
		m.inboxSeq = *e.FromInbox
	} else { // an inbox may have come to have the address since
		name, _, _ := strings.Cut(local, "+")
		if err := tx.GetContext(ctx, &m.inboxSeq, at, name+"@"+domain); err != nil {
			return errIn("inbox of a due email", err)
		}
	}
	err := s.decide(ctx, tx, []*sending{m})
	e.inbox = m.inbox
	return err
}

// preparedDraft is a draft that an email becomes, with its files stored, or why there
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

// prepareDrafts makes drafts of due emails that need approval, at most releaseDrafts, with
// no transaction open.
func (s *Store) prepareDrafts(ctx context.Context, rules DueRules, held []int64) (map[int64]*preparedDraft, error) {
	held = held[:min(len(held), releaseDrafts)]
	es, err := s.EmailsOf(ctx, held)
	if err != nil {
		return nil, err
	}
	out := make(map[int64]*preparedDraft, len(es))
	for _, seq := range held {
		e, ok := es[seq]
		if !ok {
			continue
		}
		p := &preparedDraft{err: ErrNotFound}
		if e.Content != nil {
			if p.NewDraft, p.err = rules.Draft(ctx, e); p.err == nil {
				p.files, p.err = s.keepDraftFiles(ctx, p.Files)
			}
		}
		out[seq] = p
		if p.err == nil {
			continue
		}
		s.log.WarnContext(ctx, "a scheduled email cannot become a draft", "email_id", e.ID, "error", p.err)
		if !p.lost() { // each attempt may take long, so the others are tried later with it
			for _, rest := range held {
				if out[rest] == nil {
					out[rest] = &preparedDraft{err: p.err}
				}
			}
			break
		}
	}
	return out, nil
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

// draftDue makes a draft of an email that has come to need approval, and cancels the
// email. Without a draft it fails.
func (s *Store) draftDue(ctx context.Context, tx *sqlx.Tx, e *dueEmail, p *preparedDraft) error {
	const (
		cancel = `UPDATE messages SET status = 'cancelled', settled_at = $2 WHERE seq = $1 AND status = 'scheduled'`
		say    = `UPDATE recipients SET last_response = $2 WHERE message_seq = $1 AND status = 'queued'`
	)
	switch {
	case p == nil:
		return s.failDue(ctx, tx, e, "Not sent: the email has come to need approval")
	case p.err != nil:
		return s.failDue(ctx, tx, e, "Not sent: the email has come to need approval, and its content is damaged or deleted")
	}
	now := NewTime(s.now())
	if err := oneRow("email "+e.ID, ErrState)(tx.ExecContext(ctx, cancel, e.Seq, now)); err != nil {
		return err
	}
	d := p.row(now)
	d.Kind, d.OnExpiry, d.ContentAt = DraftNew, ExpiryRejects, now
	d.AccountID, d.InboxSeq, d.InboxID, d.TestMode = e.AccountID, e.inbox.seq, e.inbox.id, e.TestMode
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
