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

// outgoing is the state of an outgoing message. A draft, an email and a sent message are
// views of it.
type outgoing string

const (
	outNew       outgoing = "new" // not stored yet
	outHeld      outgoing = "held"
	outScheduled outgoing = "scheduled"
	outQueued    outgoing = "queued"
	outDone      outgoing = "done"
	outRefused   outgoing = "refused"
)

// outgoingStates says what each state means, for docs/concepts.md.
var outgoingStates = []struct {
	state outgoing
	says  string
}{
	{outHeld, "A draft with the status `pending` waits for a decision."},
	{outScheduled, "An email, or a draft that a person approved, leaves when it is due; both have this status."},
	{outQueued, "The message is stored with its recipients, and attempts are made: a draft is `sent`, an email `queued` or `sending`."},
	{outDone, "Each recipient has a result. A message or email is `sent`, `delivered`, `bounced`, `complained` or `failed`, an email also `opened` or `clicked`."},
	{outRefused, "It never leaves: a draft is `rejected`, an email `cancelled` or `failed`."},
}

// step is what moves an outgoing message from one state to another.
type step string

const (
	stepAccept   step = "accept"
	stepHold     step = "hold"
	stepSchedule step = "schedule"
	stepEdit     step = "edit"
	stepApprove  step = "approve"
	stepReject   step = "reject"
	stepUndo     step = "undo"
	stepDelay    step = "delay"
	stepDue      step = "due"
	stepCancel   step = "cancel"
	stepFail     step = "fail"
	stepDeliver  step = "deliver"
)

// transition is one step that a state has.
type transition struct {
	from outgoing
	on   step
	to   outgoing
	says string // for docs/concepts.md
}

// transitions are all steps of an outgoing message. Whatever changes a draft or a scheduled
// email asks next.
var transitions = []transition{
	{outNew, stepAccept, outQueued, "A send that no rule refuses is stored with its recipients, which are due at once."},
	{outNew, stepSchedule, outScheduled, "An email with a time in the future is stored and waits for it."},
	{outNew, stepHold, outHeld, "A send that a rule holds becomes a draft."},
	{outHeld, stepEdit, outHeld, "An edit raises the version of the draft."},
	{outHeld, stepApprove, outQueued, "A key approves the version that it read, or the draft expires and is to be sent."},
	{outHeld, stepSchedule, outScheduled, "A person approves the version on the page: the message waits for `POSTROOM_UNDO`."},
	{outHeld, stepReject, outRefused, "A person or a key rejects the draft, or it expires."},
	{outScheduled, stepUndo, outHeld, "The approval is undone before its time: nothing has left, and nothing was counted."},
	{outScheduled, stepDelay, outScheduled, "A client chooses another time, or a limit has no room and the message waits until it fits."},
	{outScheduled, stepDue, outQueued, "Its time has come, and the rules, asked again, let it leave."},
	{outScheduled, stepHold, outHeld, "Its time has come, and a rule holds an email or refuses a draft that was approved."},
	{outScheduled, stepCancel, outRefused, "A client cancels the email, or a draft replaces it."},
	{outScheduled, stepFail, outRefused, "Its time has come, and a rule refuses the email, or its content is deleted."},
	{outQueued, stepDeliver, outDone, "The last recipient has a result: sent, delivered, bounced or failed."},
}

// next returns the state after a step, or ErrState if the state has no such step.
func next(from outgoing, on step) (outgoing, error) {
	for _, t := range transitions {
		if t.from == from && t.on == on {
			return t.to, nil
		}
	}
	return from, fmt.Errorf("%s: no step %s: %w", from, on, ErrState)
}

// draftStates and emailStates are the states by what is stored. A draft that was sent, or
// an email that is queued, is in the state of its message.
var (
	draftStates = map[DraftStatus]outgoing{DraftPending: outHeld, DraftScheduled: outScheduled, DraftSent: outQueued, DraftRejected: outRefused}
	emailStates = map[MessageStatus]outgoing{EmailScheduled: outScheduled, MessageQueued: outQueued, EmailCancelled: outRefused, MessageFailed: outRefused}
)

// NextOutgoing returns when the next draft or scheduled email becomes due, or nil if none
// will.
func (s *Store) NextOutgoing(ctx context.Context) (*Time, error) {
	const q = `SELECT at FROM (SELECT (SELECT due_at FROM emails WHERE due_at > $1 ORDER BY due_at LIMIT 1) AS at UNION ALL
		SELECT (SELECT ` + draftDue + ` FROM drafts d WHERE ` + draftWaits + ` AND ` + draftDue + ` > $1 ORDER BY ` + draftDue + ` LIMIT 1)) n
		WHERE at IS NOT NULL ORDER BY at LIMIT 1`
	found, err := readAll[Time](ctx, s, "what is due next", q, NewTime(s.now()))
	return first(found), err
}

// An email is scheduled as long as it has a due_at, or a held_due instead (see
// Hold). The transaction that removes it, to cancel or to queue the email, owns it: the row
// is locked first, and everything else about the email is changed after it.

// CancelEmail ends an email that is scheduled: it is never sent. It returns
// ErrState if it is not scheduled any more.
func (s *Store) CancelEmail(ctx context.Context, accountID int64, id string) error {
	const take = `UPDATE emails SET due_at = NULL, held_due = NULL WHERE message_seq = $1 AND (due_at IS NOT NULL OR held_due IS NOT NULL)`
	err := s.inTx(ctx, "cancel email", func(tx *sqlx.Tx) error {
		m, err := s.takeScheduled(ctx, tx, accountID, id, take)
		if err != nil {
			return err
		}
		return s.cancelDue(ctx, tx, m)
	})
	if err == nil {
		s.changed([]topic{{kind: topicEvents}, {kind: topicWebhooks}}, 1)
	}
	return err
}

// cancelDue ends an email whose due_at was removed by the transaction.
func (s *Store) cancelDue(ctx context.Context, tx *sqlx.Tx, m Message) error {
	if err := s.moveEmails(ctx, tx, stepCancel, EmailCancelled, m.Seq); err != nil {
		return err
	}
	return s.emailEvents(ctx, tx, EventEmailCancelled, EventData{Status: EmailCancelled}, m)
}

// moveEmails takes a step with scheduled emails, which then have a status. It returns
// ErrState if one is not scheduled.
func (s *Store) moveEmails(ctx context.Context, tx *sqlx.Tx, on step, status MessageStatus, seqs ...int64) error {
	const q = `UPDATE messages SET status = ?, settled_at = ? WHERE status = 'scheduled' AND seq IN (?)`
	if to, err := next(outScheduled, on); err != nil || emailStates[status] != to {
		return fmt.Errorf("an email becomes %s by %s: %w", status, on, ErrState)
	}
	var settled any
	if status != MessageQueued {
		settled = NewTime(s.now())
	}
	return execIn(ctx, tx, q, status, settled, seqs)
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
		_, err = s.release(ctx, tx, []int64{m.Seq}, rules)
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
		n, held, err := s.releaseDue(ctx, account, rules)
		total += n
		if err == nil {
			err = s.holdDue(ctx, rules, held)
		}
		if errs = append(errs, err); errors.Is(err, ErrUnavailable) {
			break
		}
	}
	return total, errors.Join(errs...)
}

// releaseDue queues emails of an account that are due. It returns how many it has taken
// up, and those that are to become drafts.
func (s *Store) releaseDue(ctx context.Context, account int64, rules DueRules) (n int, held []int64, err error) {
	const due = `SELECT message_seq FROM emails WHERE account_id = $1 AND due_at <= $2 ORDER BY due_at LIMIT $3`
	const take = `UPDATE emails SET due_at = NULL WHERE due_at <= ? AND message_seq IN (?) RETURNING message_seq`
	var seqs []int64
	err = s.inTx(ctx, "queue scheduled emails", func(tx *sqlx.Tx) error {
		now := NewTime(s.now())
		seqs, held = nil, nil
		var found []int64
		if err := tx.SelectContext(ctx, &found, due+s.engine.SkipLocked(), account, now, releaseBatch); err != nil || len(found) == 0 {
			return err
		}
		if err := selectIn(ctx, tx, &seqs, take, now, found); err != nil || len(seqs) == 0 {
			return err
		}
		held, err = s.release(ctx, tx, seqs, rules)
		return err
	})
	if err != nil || len(seqs) == 0 {
		return 0, nil, err
	}
	s.changed([]topic{{kind: topicQueue}, {kind: topicEvents}, {kind: topicWebhooks}}, len(seqs))
	return len(seqs), held, nil
}

// release queues emails whose due_at was removed by the transaction, except those
// that must not leave. held are those that are to become drafts: they are due again.
func (s *Store) release(ctx context.Context, tx *sqlx.Tx, seqs []int64, rules DueRules) (held []int64, err error) {
	const begin = `UPDATE recipients SET next_attempt_at = ?, created_at = ? WHERE status = 'queued' AND message_seq IN (?)`
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
		switch {
		case err == nil:
			pass, left = append(pass, e.Seq), append(left, e.Message)
		case !ok:
			return nil, err
		case refused.Waits():
			err = waitUntil(ctx, tx, NewTime(refused.Retry), e.Seq)
		case !refused.Hold:
			err = s.failDue(ctx, tx, e.Message, refused.Text)
		case rules.Draft != nil && e.FromInbox != nil:
			held = append(held, e.Seq)
			err = waitUntil(ctx, tx, now, e.Seq)
		default:
			err = s.failDue(ctx, tx, e.Message, "the email has come to need approval")
		}
		if err != nil {
			return nil, err
		}
	}
	if len(pass) == 0 {
		return held, nil
	}
	if err := s.moveEmails(ctx, tx, stepDue, MessageQueued, pass...); err != nil {
		return nil, err
	}
	if err := execIn(ctx, tx, begin, now, now, pass); err != nil {
		return nil, err
	}
	return held, s.emailEvents(ctx, tx, EventEmailQueued, EventData{Status: MessageQueued}, left...)
}

// waitUntil makes scheduled emails due at a time.
func waitUntil(ctx context.Context, tx *sqlx.Tx, at Time, seqs ...int64) error {
	return execIn(ctx, tx, `UPDATE emails SET due_at = ? WHERE message_seq IN (?)`, at, seqs)
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
	Email
	Body *JSON[Body] `db:"body"`
}

// readDue reads emails with their recipients.
func (s *Store) readDue(ctx context.Context, tx *sqlx.Tx, seqs []int64) (es []*dueEmail, err error) {
	const (
		emails = `SELECT ` + emailColumns + `, c.body` + emailTables + ` LEFT JOIN contents c ON c.message_seq = m.seq
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
		bySeq[r.MessageSeq].Recipients = append(bySeq[r.MessageSeq].Recipients, r)
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
	m := &sending{isEmail: true, isDue: true, category: e.Category, preparedMessage: &preparedMessage{msg: e.Message}}
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
	return s.decide(ctx, tx, []*sending{m})
}

// draftRetry is how long an email waits whose draft could not be made.
const draftRetry = time.Minute

// holdDue makes drafts of due emails that need approval, at most releaseDrafts. An email
// whose content is lost fails. Each other fault may take long, so the rest waits with it.
func (s *Store) holdDue(ctx context.Context, rules DueRules, held []int64) error {
	held = held[:min(len(held), releaseDrafts)]
	es, err := s.EmailsOf(ctx, held)
	if err != nil {
		return err
	}
	for i, seq := range held {
		e, ok := es[seq]
		if !ok {
			continue
		}
		n, err := s.draftOf(ctx, rules, e)
		if err == nil {
			err = s.holdEmail(ctx, e, &n)
		} else {
			s.log.WarnContext(ctx, "a scheduled email cannot become a draft", "email_id", e.ID, "error", err)
			if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNotFound) {
				return s.inTx(ctx, "put emails off", func(tx *sqlx.Tx) error {
					return execIn(ctx, tx, `UPDATE emails SET due_at = ? WHERE due_at <= ? AND message_seq IN (?)`,
						NewTime(s.now().Add(draftRetry)), NewTime(s.now()), held[i:])
				})
			}
			err = s.holdEmail(ctx, e, nil)
		}
		if err != nil && !errors.Is(err, ErrState) {
			return err
		}
	}
	return nil
}

// draftOf returns the draft that an email becomes, with its files stored.
func (s *Store) draftOf(ctx context.Context, rules DueRules, e Email) (n NewDraft, err error) {
	if e.Content == nil {
		return n, ErrNotFound
	}
	if n, err = rules.Draft(ctx, e); err == nil {
		n.kept, err = s.keepDraftFiles(ctx, n.Files)
	}
	return n, err
}

// holdEmail replaces an email that is due by a draft. Without a draft the email fails. The
// error is ErrState if it has been cancelled, held or put off meanwhile.
func (s *Store) holdEmail(ctx context.Context, e Email, n *NewDraft) error {
	const (
		take = `UPDATE emails SET due_at = NULL WHERE message_seq = $1 AND due_at <= $2`
		say  = `UPDATE recipients SET last_response = $2 WHERE message_seq = $1 AND status = 'queued'`
	)
	err := s.inTx(ctx, "hold email", func(tx *sqlx.Tx) error {
		now := NewTime(s.now())
		if _, err := s.takeScheduled(ctx, tx, e.AccountID, e.ID, take, now); err != nil {
			return err
		}
		if n == nil {
			return s.failDue(ctx, tx, e.Message, "the email has come to need approval, and its content is damaged or deleted")
		}
		n.Kind, n.OnExpiry, n.ContentAt = DraftNew, ExpiryRejects, now
		n.AccountID, n.InboxSeq, n.TestMode = e.AccountID, *e.FromInbox, e.TestMode
		n.Category, n.Tags, n.Metadata, n.CreatedBy = &e.Category, &e.Tags, &e.Metadata, cmp.Or(deref(e.CreatedBy), "unknown")
		d, err := s.insertDraft(ctx, tx, n, now)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, say, e.Seq, "Held for approval as "+d.ID); err != nil {
			return err
		}
		if err := s.cancelDue(ctx, tx, e.Message); err != nil {
			return err
		}
		return s.insertEvents(ctx, tx, newDraftEvents(d))
	})
	_, err = s.announced(Draft{}, err)
	return err
}

// failDue ends an email that must not leave: each of its recipients has failed.
func (s *Store) failDue(ctx context.Context, tx *sqlx.Tx, m Message, why string) error {
	const fail = `UPDATE recipients SET status = 'failed', last_response = $2 WHERE message_seq = $1 AND status = 'queued' RETURNING email`
	if err := s.moveEmails(ctx, tx, stepFail, MessageFailed, m.Seq); err != nil {
		return err
	}
	why = "Not sent: " + why
	var to []string
	if err := tx.SelectContext(ctx, &to, fail, m.Seq, storable(why)); err != nil {
		return err
	}
	slices.Sort(to)
	for _, email := range to {
		data := EventData{Status: MessageFailed, Recipient: email, Response: why}
		if err := s.emailEvents(ctx, tx, EventEmailFailed, data, m); err != nil {
			return err
		}
	}
	return nil
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
