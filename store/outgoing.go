package store

import (
	"cmp"
	"context"
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
	{outScheduled, stepFail, outRefused, "Its time has come, and a rule refuses the email, or its content is deleted or lost."},
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
	s.told(err)
	return err
}

// cancelDue ends an email whose due_at was removed by the transaction.
func (s *Store) cancelDue(ctx context.Context, tx *sqlx.Tx, m Message) error {
	if err := s.moveEmail(ctx, tx, stepCancel, EmailCancelled, m.Seq); err != nil {
		return err
	}
	return s.insertEvents(ctx, tx, []newEvent{emailEvent(EventEmailCancelled, EventData{Status: EmailCancelled}, m)})
}

// moveEmail takes a step with a scheduled email, which then has a status. It returns
// ErrState if it is not scheduled.
func (s *Store) moveEmail(ctx context.Context, tx *sqlx.Tx, on step, status MessageStatus, seq int64) error {
	const q = `UPDATE messages SET status = $2, settled_at = $3 WHERE status = 'scheduled' AND seq = $1`
	if to, err := next(outScheduled, on); err != nil || emailStates[status] != to {
		return fmt.Errorf("an email becomes %s by %s: %w", status, on, ErrState)
	}
	var settled *Time
	if status != MessageQueued {
		now := NewTime(s.now())
		settled = &now
	}
	return oneRow("scheduled email", ErrState)(tx.ExecContext(ctx, q, seq, status, settled))
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
		if err == nil {
			_, err = s.release(ctx, tx, m.Seq, rules)
		}
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
	m, err := getOne[Message](ctx, tx, find, accountID, id)
	if err != nil {
		return m, s.wrap(err, "email "+id)
	}
	return m, oneRow("email "+id, ErrState)(tx.ExecContext(ctx, update, append([]any{m.Seq}, args...)...))
}

// ReleaseScheduled queues the scheduled emails whose time has come, up to a
// number, the earliest first, and returns how many it has taken up. Their time for
// retries begins now. Those that must not leave by rules fail, wait, or become drafts.
// Making a draft may take long, so after one fault all others that need a draft wait.
func (s *Store) ReleaseScheduled(ctx context.Context, rules DueRules) (n int, err error) {
	const due = `SELECT m.seq, m.account_id, m.id` + emailTables + ` WHERE e.due_at <= $1 ORDER BY e.due_at, e.message_seq LIMIT $2`
	const later = `UPDATE emails SET due_at = $2 WHERE message_seq = $1 AND due_at <= $3`
	if s.Paused() != nil {
		return 0, nil
	}
	found, err := readAll[Message](ctx, s, "due emails", due, NewTime(s.now()), releaseBatch)
	if err != nil {
		return 0, err
	}
	var errs []error
	slow := false
	for _, m := range found {
		held, err := s.releaseDue(ctx, m, rules)
		if err == nil {
			n++
		}
		if held {
			if err = nil; !slow {
				slow, err = s.holdDue(ctx, rules, m.Seq)
			}
			if slow {
				_, err = s.exec(ctx, "put an email off", later, m.Seq, NewTime(s.now().Add(draftRetry)), NewTime(s.now()))
			}
			if err != nil {
				n--
			}
		}
		if err != nil && !errors.Is(err, ErrState) { // else another node, or a client, has taken it
			errs = append(errs, err)
		}
		if errors.Is(err, ErrUnavailable) {
			break
		}
	}
	return n, errors.Join(errs...)
}

// releaseDue queues an email that is due, unless it is held: then it is to become a draft.
func (s *Store) releaseDue(ctx context.Context, m Message, rules DueRules) (held bool, err error) {
	const take = `UPDATE emails SET due_at = NULL WHERE message_seq = $1 AND due_at <= $2`
	err = s.inTx(ctx, "queue a scheduled email", func(tx *sqlx.Tx) error {
		err := oneRow("email "+m.ID, ErrState)(tx.ExecContext(ctx, take, m.Seq, NewTime(s.now())))
		if err == nil {
			held, err = s.release(ctx, tx, m.Seq, rules)
		}
		return err
	})
	if err == nil {
		s.changed([]topic{{kind: topicQueue}, {kind: topicEvents}, {kind: topicWebhooks}}, 1)
	}
	return held, err
}

// release queues an email whose due_at was removed by the transaction, unless it must not
// leave. One that is held is to become a draft, and due again.
func (s *Store) release(ctx context.Context, tx *sqlx.Tx, seq int64, rules DueRules) (held bool, err error) {
	const begin = `UPDATE recipients SET next_attempt_at = $2, created_at = $2 WHERE status = 'queued' AND message_seq = $1`
	e, err := s.decideDue(ctx, tx, seq, rules)
	refused, ok := errors.AsType[*Refused](err)
	now := NewTime(s.now())
	switch {
	case err != nil && !ok:
		return false, err
	case err == nil:
		if err := s.moveEmail(ctx, tx, stepDue, MessageQueued, seq); err != nil {
			return false, err
		}
		if _, err := tx.ExecContext(ctx, begin, seq, now); err != nil {
			return false, err
		}
		return false, s.insertEvents(ctx, tx, []newEvent{emailEvent(EventEmailQueued, EventData{Status: MessageQueued}, e.Message)})
	case refused.Waits():
		return false, waitUntil(ctx, tx, NewTime(refused.Retry), seq)
	case !refused.Hold:
		return false, s.failDue(ctx, tx, e.Message, refused.Text)
	case rules.Draft == nil || e.FromInbox == nil:
		return false, s.failDue(ctx, tx, e.Message, "the email has come to need approval")
	}
	return true, waitUntil(ctx, tx, now, seq)
}

// waitUntil makes a scheduled email due at a time.
func waitUntil(ctx context.Context, tx *sqlx.Tx, at Time, seq int64) error {
	const q = `UPDATE emails SET due_at = $2 WHERE message_seq = $1`
	_, err := tx.ExecContext(ctx, q, seq, at)
	return err
}

func emailEvent(typ EventType, data any, m Message) newEvent {
	return newEvent{notice{account: m.AccountID, message: m.Seq, typ: typ}, m.TestMode, data}
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

// decideDue decides about an email that is due, which may have been accepted weeks ago.
// What decides is locked until the commit, the account first: no change to it can pass the
// email by.
func (s *Store) decideDue(ctx context.Context, tx *sqlx.Tx, seq int64, rules DueRules) (Email, error) {
	const (
		email      = `SELECT ` + emailColumns + emailTables + ` WHERE m.seq = $1`
		text       = `SELECT body FROM contents WHERE message_seq = $1 AND body IS NOT NULL`
		recipients = `SELECT email, kind FROM recipients WHERE status = 'queued' AND message_seq = $1 ORDER BY seq`
		at         = `SELECT coalesce((SELECT seq FROM inboxes WHERE address = $1), 0)`
	)
	e, err := getOne[Email](ctx, tx, email, seq)
	if err != nil {
		return e, errIn("due email", err)
	}
	if e.Recipients, err = getAll[Recipient](ctx, tx, recipients, seq); err != nil {
		return e, errIn("recipients of a due email", err)
	}
	bodies, err := getAll[JSON[Body]](ctx, tx, text, seq)
	if err != nil {
		return e, errIn("text of a due email", err)
	}
	if err := s.lockAccount(ctx, tx, e.AccountID); err != nil {
		return e, err
	}
	m := &sending{isEmail: true, isDue: true, category: e.Category, preparedMessage: &preparedMessage{msg: e.Message}}
	if len(bodies) > 0 {
		m.text = bodies[0].V.Text
	}
	local, domain, _ := strings.Cut(e.FromEmail, "@")
	if domain != rules.MailDomain && !rules.AnySender {
		m.domain = domain
	}
	if e.CreatedBy != nil {
		by, ended, err := s.readSender(ctx, tx, *e.CreatedBy, s.engine.LockRow())
		if err != nil {
			return e, err
		}
		if ended != "" {
			return e, refuse(RuleEnded, "", "%s", ended)
		}
		m.senders = []Sender{by}
	}
	if e.FromInbox != nil {
		m.inboxSeq = *e.FromInbox
	} else { // an inbox may have come to have the address since
		name, _, _ := strings.Cut(local, "+")
		if m.inboxSeq, err = getOne[int64](ctx, tx, at, name+"@"+domain); err != nil {
			return e, errIn("inbox of a due email", err)
		}
	}
	return e, s.decide(ctx, tx, []*sending{m})
}

// draftRetry is how long an email waits whose draft could not be made.
const draftRetry = time.Minute

// holdDue makes a draft of a due email that needs approval. An email whose content is lost
// fails. slow reports another fault, after which the email is to wait.
func (s *Store) holdDue(ctx context.Context, rules DueRules, seq int64) (slow bool, err error) {
	es, err := s.EmailsOf(ctx, []int64{seq})
	e, ok := es[seq]
	if err != nil || !ok {
		return false, err
	}
	n, err := s.draftOf(ctx, rules, e)
	if err == nil {
		return false, s.holdEmail(ctx, e, &n)
	}
	s.log.WarnContext(ctx, "a scheduled email cannot become a draft", "email_id", e.ID, "error", err)
	if errors.Is(err, ErrDamaged) || errors.Is(err, ErrNotFound) {
		return false, s.holdEmail(ctx, e, nil)
	}
	return true, nil
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
	s.told(err)
	return err
}

// failDue ends an email that must not leave: each of its recipients has failed.
func (s *Store) failDue(ctx context.Context, tx *sqlx.Tx, m Message, why string) error {
	const fail = `UPDATE recipients SET status = 'failed', last_response = $2 WHERE message_seq = $1 AND status = 'queued' RETURNING email`
	if err := s.moveEmail(ctx, tx, stepFail, MessageFailed, m.Seq); err != nil {
		return err
	}
	why = "Not sent: " + why
	to, err := getAll[string](ctx, tx, fail, m.Seq, storable(why))
	if err != nil {
		return err
	}
	slices.Sort(to)
	return s.insertEvents(ctx, tx, each(to, func(email string) newEvent {
		return emailEvent(EventEmailFailed, EventData{Status: MessageFailed, Recipient: email, Response: why}, m)
	}))
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
