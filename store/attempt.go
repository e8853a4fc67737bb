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

	"github.com/postroom/postroom/internal/crashpoint"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/work"
)

// Persist writes a result that must not be lost. It retries write until it
// succeeds, returns ErrState, or ctx ends; other errors than those of a database
// that is away end it after recordTries. The context of write ignores the end of
// ctx, so that a known result is stored during shutdown.
func Persist(ctx context.Context, write func(context.Context) error) error {
	once := func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
		defer cancel()
		return write(ctx)
	}
	wait := 50 * time.Millisecond
	for try := 1; ; try++ {
		err := once()
		away := errors.Is(err, ErrUnavailable) || errors.Is(err, ErrFull) || errors.Is(err, context.DeadlineExceeded)
		if err == nil || errors.Is(err, ErrState) || ctx.Err() != nil || try >= recordTries && !away {
			return err
		}
		work.Pause(ctx, wait, nil)
		wait = min(2*wait, 5*time.Second)
	}
}

// Attempt is the result of one delivery attempt for one recipient.
type Attempt struct {
	// RecipientSeq, MessageSeq and Fence are as claimed. When the recipient has
	// been claimed again since, the attempt is not recorded.
	RecipientSeq int64
	MessageSeq   int64
	Fence        int64
	// Status is the new status of the recipient. RecipientQueued means that there
	// will be another attempt.
	Status RecipientStatus
	// Soft marks a bounce without a permanent failure.
	Soft bool
	// Own marks a bounce that this installation decided, without the recipient's
	// server. It does not count towards pausing the account.
	Own bool
	// Next is the time of the next attempt for RecipientQueued, else nil.
	Next *Time
	// Untried reports that there was no attempt, so that none is counted. It
	// requires RecipientQueued.
	Untried bool
	// Response is the remote server's reply, or why it was not reached. It is
	// truncated.
	Response string
	// Signature, if not empty, is the signature put before the raw message. The
	// first one is stored, and every later attempt sends the same bytes.
	Signature string
	// RelayedID, if not empty, is the Message-ID that a relay gave to the message,
	// in the form of mail.SESMessageID. A message that refers to it joins the thread.
	RelayedID string
	// Suppress, if not empty, is the reason to suppress the recipient's address.
	// EmailFold is its case-folded form.
	Suppress SuppressionReason
	// SuppressFor limits the suppression to a category; empty means all mail.
	SuppressFor SuppressionCategory
	EmailFold   string
}

// RecordAttempt stores the result of an attempt, updates the message's status and
// writes the events. It returns ErrState if another claim has taken the recipient
// since.
func (s *Store) RecordAttempt(ctx context.Context, a Attempt) error {
	lost, err := s.RecordAttempts(ctx, &a)
	if err == nil && len(lost) > 0 {
		err = a.lost()
	}
	return err
}

// RecordAttempts records the results of attempts to deliver one message, in one
// transaction. It leaves out and returns those whose recipient another claim has
// taken since.
func (s *Store) RecordAttempts(ctx context.Context, attempts ...*Attempt) (lost []*Attempt, err error) {
	for _, a := range attempts {
		if err := a.check(); err != nil {
			return nil, errIn("record attempts", err)
		}
	}
	err = s.recordAll(ctx, "record attempts", func(r *recording) (err error) {
		lost, err = r.attempts(ctx, attempts)
		return err
	})
	return lost, err
}

// check refuses a result that would lose the recipient or retry it for ever.
func (a *Attempt) check() error {
	switch {
	case a.Status == RecipientQueued && a.Next == nil:
		return errors.New("an attempt that is to be repeated has no time for it")
	case a.Status != RecipientQueued && a.Next != nil:
		return fmt.Errorf("an attempt that ended as %s has a time for another", a.Status)
	}
	return nil
}

func (a *Attempt) lost() error {
	return fmt.Errorf("recipient %d at fence %d: %w", a.RecipientSeq, a.Fence, ErrState)
}

// attemptEvents maps a recipient's new status to events. A server that delivers a
// message directly has both accepted and delivered it.
var attemptEvents = map[RecipientStatus][]EventType{
	RecipientSent:      {EventMessageSent},
	RecipientDelivered: {EventMessageSent, EventMessageDelivered},
	RecipientOpened:    {EventMessageSent, EventMessageDelivered, EventEmailOpened},
	RecipientClicked:   {EventMessageSent, EventMessageDelivered, EventEmailOpened, EventEmailClicked},
	RecipientQueued:    {EventEmailDelayed}, // of the first attempt for an email
	RecipientBounced:   {EventMessageBounced},
	RecipientFailed:    {EventMessageFailed},
	// No other event reports that the message will not be sent.
	RecipientSuppressed: {EventMessageFailed},
	// A complaint implies delivery.
	RecipientComplained: {EventMessageSent, EventMessageDelivered, EventMessageComplained},
}

// statusOf returns the status of a message: the furthest that any recipient has
// reached. If all have failed, it is bounced if one bounced, else failed.
// Complained overrides all.
func statusOf(rs []RecipientStatus) MessageStatus {
	has := func(r RecipientStatus) bool { return slices.Contains(rs, r) }
	switch {
	case has(RecipientComplained):
		return MessageComplained
	case has(RecipientClicked):
		return EmailClicked
	case has(RecipientOpened):
		return EmailOpened
	case has(RecipientDelivered):
		return MessageDelivered
	case has(RecipientSent):
		return MessageSent
	case has(RecipientQueued):
		return MessageQueued
	case has(RecipientBounced):
		return MessageBounced
	}
	return MessageFailed
}

// recording is a transaction that records results of deliveries: attempts and
// reports. It locks a message before its recipients, and writes the counts last.
type recording struct {
	store  *Store
	tx     *sqlx.Tx
	now    Time
	topics []topic    // to wake after the commit
	events []newEvent // of the suppression list
	tried  []RecipientStatus
	paused []pause
}

func (s *Store) newRecording(tx *sqlx.Tx) *recording {
	return &recording{store: s, tx: tx, now: NewTime(s.now())}
}

// recordAll runs do with a recording of its own.
func (s *Store) recordAll(ctx context.Context, what string, do func(*recording) error) error {
	r, err := transact(ctx, s, what, func(tx *sqlx.Tx) (*recording, error) {
		r := s.newRecording(tx)
		return r, do(r)
	})
	if err == nil {
		r.done(ctx)
	}
	return err
}

// done wakes the waiters, and counts and logs what the transaction has committed.
func (r *recording) done(ctx context.Context) {
	r.store.changed(r.topics, max(1, len(r.tried)))
	r.store.totals.tried(r.tried)
	for _, p := range r.paused {
		p.log(ctx, r.store.log)
	}
}

// sentMessage is a message with the states of its recipients.
type sentMessage struct {
	Message
	rcpts []sentRecipient
}

type sentRecipient struct {
	Seq         int64           `db:"seq"`
	Email       string          `db:"email"`
	Status      RecipientStatus `db:"status"`
	Attempts    int             `db:"attempts"`
	Engagements int             `db:"engagements"`
}

// message locks a message and reads its recipients. It returns nil if there is no
// such message.
func (r *recording) message(ctx context.Context, seq int64) (*sentMessage, error) {
	lock := `SELECT seq, account_id, coalesce(inbox_seq, 0) AS inbox_seq, id, test_mode, status FROM messages WHERE seq = $1` + r.store.engine.LockRow()
	const rcpts = `SELECT seq, email, status, attempts, engagements FROM recipients WHERE message_seq = $1 ORDER BY seq`
	var m sentMessage
	if err := r.store.prepared.Get(ctx, r.tx, &m.Message, lock, seq); errors.Is(err, sql.ErrNoRows) {
		return nil, nil //nolint:nilnil // there is none
	} else if err != nil {
		return nil, errIn("lock the message", err)
	}
	return &m, errIn("read recipients", r.store.prepared.Select(ctx, r.tx, &m.rcpts, rcpts, seq))
}

// rcpt returns a recipient of the message, or nil.
func (m *sentMessage) rcpt(seq int64) *sentRecipient {
	for i := range m.rcpts {
		if m.rcpts[i].Seq == seq {
			return &m.rcpts[i]
		}
	}
	return nil
}

// state returns the status of the message and the states of its recipients.
func (m *sentMessage) state() (MessageStatus, []RecipientState) {
	statuses := each(m.rcpts, func(r sentRecipient) RecipientStatus { return r.Status })
	return statusOf(statuses), each(m.rcpts, func(r sentRecipient) RecipientState { return RecipientState{r.Status, r.Attempts} })
}

// outcome is what an attempt or a report says about a recipient.
type outcome struct {
	*Attempt
	rcpt   *sentRecipient
	events []EventType
	report *Report // nil for an attempt
}

// attempts records the results of attempts to deliver one message, and returns
// those whose claim has ended.
func (r *recording) attempts(ctx context.Context, attempts []*Attempt) (lost []*Attempt, err error) {
	if len(attempts) == 0 {
		return nil, nil
	}
	m, err := r.message(ctx, attempts[0].MessageSeq)
	if err != nil {
		return nil, err
	}
	var outcomes []outcome
	for _, a := range attempts {
		o, err := r.attempt(ctx, m, a)
		if err != nil {
			return nil, err
		}
		if o.rcpt == nil {
			lost = append(lost, a)
			continue
		}
		outcomes = append(outcomes, o)
	}
	return lost, r.settle(ctx, m, outcomes)
}

// attempt writes the result of one attempt. The outcome has no recipient if the
// claim has ended.
func (r *recording) attempt(ctx context.Context, m *sentMessage, a *Attempt) (outcome, error) {
	const own = `, last_response = $6, sent_at = coalesce(sent_at, $7), delivered_at = coalesce(delivered_at, $8), bounced_at = coalesce(bounced_at, $9)`
	var rcpt *sentRecipient
	if m != nil {
		rcpt = m.rcpt(a.RecipientSeq)
	}
	if rcpt == nil {
		return outcome{}, nil
	}
	sent, delivered := r.reached(a.Status)
	var bounced *Time
	if a.Status == RecipientBounced {
		bounced = &r.now
	}
	response := storable(a.Response[:min(len(a.Response), maxResponse)])
	end := leaseEnd{a.RecipientSeq, a.Fence, string(a.Status), a.Next, a.Untried}
	ours, err := r.store.endLease(ctx, r.tx, WorkRecipients, end, own, response, sent, delivered, bounced)
	if err != nil || !ours {
		return outcome{}, errIn("update the recipient", err)
	}
	if a.Untried {
		rcpt.Attempts--
	}
	r.tried = append(r.tried, a.Status)
	return outcome{Attempt: a, rcpt: rcpt, events: attemptEvents[a.Status]}, nil
}

// reached returns when a recipient or message with this status was sent and
// delivered, if it was not before: now or never.
func (r *recording) reached(status RecipientStatus) (sent, delivered *Time) {
	switch status {
	case RecipientDelivered, RecipientOpened, RecipientClicked, RecipientComplained:
		return &r.now, &r.now
	case RecipientSent:
		return &r.now, nil
	}
	return nil, nil
}

// settle writes what follows from the outcomes of a message: its status and what
// else is kept of it, suppressions, events and counts.
func (r *recording) settle(ctx context.Context, m *sentMessage, outcomes []outcome) error {
	for _, o := range outcomes {
		if err := r.keep(ctx, m, &o); err != nil {
			return err
		}
	}
	outcomes = slices.DeleteFunc(outcomes, func(o outcome) bool { return o.Status == RecipientQueued && (m.InboxSeq != 0 || !o.delays()) })
	if len(outcomes) == 0 {
		return nil
	}
	events := append(r.eventsOf(m, outcomes), r.events...)
	r.events = nil
	if err := r.move(ctx, m); err != nil {
		return errIn("update the message", err)
	}
	crashpoint.Reach(crashpoint.Mark)
	rows, err := r.store.eventRows(ctx, r.tx, r.now, events...)
	if err != nil {
		return err
	}
	r.wake(topic{kind: topicEvents})
	if len(rows) > len(events) {
		r.wake(topic{kind: topicWebhooks})
	}
	counts, watch := r.counts(m, outcomes)
	if err := r.store.insert(ctx, r.tx, append(rows, counts...)...); err != nil {
		return err
	}
	crashpoint.Reach(crashpoint.Event)
	if !watch {
		return nil
	}
	p, err := r.store.pauseSender(ctx, r.tx, m.AccountID, r.now)
	if p != nil {
		r.paused = append(r.paused, *p)
	}
	return err
}

func (r *recording) wake(t topic) {
	if !slices.Contains(r.topics, t) {
		r.topics = append(r.topics, t)
	}
}

// keep writes what an outcome says about its message and its address beside the status.
func (r *recording) keep(ctx context.Context, m *sentMessage, o *outcome) error {
	const (
		signature = `UPDATE contents SET signature = $2 WHERE message_seq = $1 AND signature IS NULL`
		relayed   = `
		INSERT INTO thread_references (inbox_seq, header_hash, header_id, thread_seq)
		SELECT inbox_seq, $2, $3, thread_seq FROM messages WHERE seq = $1 AND thread_seq IS NOT NULL
		ON CONFLICT DO NOTHING`
		open = `UPDATE emails SET opened_at = coalesce(opened_at, $2) WHERE message_seq = $1`
	)
	var all []statement
	if o.Signature != "" {
		all = append(all, statement{signature, []any{m.Seq, o.Signature}})
	}
	if o.RelayedID != "" {
		all = append(all, statement{relayed, []any{m.Seq, hash64(o.RelayedID), o.RelayedID}})
	}
	opened := o.Status == RecipientOpened || o.Status == RecipientClicked
	if o.report != nil {
		opened = o.report.engages() && !o.report.Bot
	}
	if opened { // also of an email with a complaint, which keeps its status
		all = append(all, statement{open, []any{m.Seq, r.now}})
	}
	for _, st := range all {
		if _, err := r.store.prepared.Exec(ctx, r.tx, st.q, st.args...); err != nil {
			return errIn("keep what an attempt says", err)
		}
	}
	if o.Suppress == "" || o.Status == RecipientQueued {
		return nil
	}
	_, events, err := r.store.suppress(ctx, r.tx, Suppression{
		AccountID: m.AccountID, Email: o.rcpt.Email, EmailFold: o.EmailFold, Reason: o.Suppress,
		Category: cmp.Or(o.SuppressFor, SuppressAll), Source: &m.ID,
	})
	r.events = append(r.events, events...)
	return errIn("suppress the address", err)
}

// delays reports that the first attempt for a recipient failed for now.
func (o *outcome) delays() bool {
	return o.Status == RecipientQueued && o.report == nil && !o.Untried && o.rcpt.Attempts == 1
}

// eventsOf returns the events of the outcomes, and brings the recipients of m up to
// them. Each event keeps the state at its moment: if an email is sent and delivered
// at once, email.sent has the status sent.
func (r *recording) eventsOf(m *sentMessage, outcomes []outcome) (events []newEvent) {
	for _, o := range outcomes {
		for i, typ := range o.events {
			step := slices.IndexFunc(progress, func(s RecipientStatus) bool { return stepEvents[s] == typ })
			switch {
			case i == len(o.events)-1:
				o.rcpt.Status = o.Status
			case step > slices.Index(progress, o.rcpt.Status):
				o.rcpt.Status = progress[step]
			}
			if email, ok := ofEmail[typ]; ok && m.InboxSeq == 0 {
				typ = email
			}
			if typ == EventEmailFailed && o.Status == RecipientSuppressed {
				typ = EventEmailSuppressed
			}
			n := notice{account: m.AccountID, inbox: m.InboxSeq, message: m.Seq, typ: typ}
			events = append(events, newEvent{notice: n, testMode: m.TestMode, data: o.eventData(m.state())})
		}
	}
	return events
}

func (o *outcome) eventData(status MessageStatus, rcpts []RecipientState) EventData {
	data := EventData{Status: status, Recipients: rcpts, Recipient: o.rcpt.Email, Response: o.Response[:min(len(o.Response), maxResponse)]}
	if r := o.report; r != nil {
		data.Soft, data.Code, data.Enhanced, data.Reason, data.Bot, data.Link = r.Soft, r.Code, r.Enhanced, r.Reason, r.Bot, r.Link
		return data
	}
	data.Soft = o.Status == RecipientBounced && (o.Soft || strings.HasPrefix(o.Response, "4"))
	return data
}

// move brings the status of the message up to its recipients'.
func (r *recording) move(ctx context.Context, m *sentMessage) error {
	const q = `UPDATE messages SET status = $2, sent_at = coalesce(sent_at, $3), delivered_at = coalesce(delivered_at, $4),
		settled_at = coalesce(settled_at, $5) WHERE seq = $1`
	status, _ := m.state()
	sent, delivered := r.reached(RecipientStatus(status))
	var settled *Time
	if !slices.ContainsFunc(m.rcpts, func(r sentRecipient) bool { return r.Status == RecipientQueued }) {
		settled = &r.now
	}
	if m.InboxSeq != 0 {
		r.wake(topic{topicInbox, m.InboxSeq})
	}
	_, err := r.store.prepared.Exec(ctx, r.tx, q, m.Seq, status, sent, delivered, settled)
	return err
}

// counts are the rows of what the outcomes count for the watch over the account. watch
// says that they may pause it. Nothing counts in test mode.
func (r *recording) counts(m *sentMessage, outcomes []outcome) (rows []newRow, watch bool) {
	if m.TestMode {
		return nil, false
	}
	counts := map[countKind]int64{}
	for _, o := range outcomes {
		for _, kind := range o.counts() {
			counts[kind]++
			watch = watch || kind != countTried
		}
	}
	shard := r.store.shard()
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		rows = append(rows, countRow(m.AccountID, r.now, kind, shard, counts[kind]))
	}
	return rows, watch && r.store.watch
}

// counts returns as what an outcome counts for the watch over the account. A server
// that refuses permanently, by a code that begins with 5, says that the mailbox does
// not exist or that it wants no mail from us. Our own refusals say nothing about the
// account.
func (o *outcome) counts() []countKind {
	if r := o.report; r != nil { // the recipient was counted when the mail was taken
		switch {
		case r.Status == RecipientBounced && !r.Soft:
			return []countKind{countHard}
		case r.Status == RecipientComplained && r.ComplaintOf != "":
			return []countKind{countKind(markedBy + storable(r.ComplaintOf))}
		}
		return nil
	}
	switch {
	case o.Status == RecipientQueued, o.Status == RecipientSuppressed, o.Status == RecipientBounced && o.Own:
		return nil
	case o.Status == RecipientBounced && strings.HasPrefix(o.Response, "5"):
		return []countKind{countHard, countTried}
	}
	return []countKind{countTried}
}

// Report is a result that arrives after delivery: a bounce, a complaint, an open
// or a click. It never moves the recipient's status back. A repeated report is
// recorded only if it adds something.
type Report struct {
	// RecipientSeq and MessageSeq identify the recipient.
	RecipientSeq int64
	MessageSeq   int64
	// Status is RecipientDelivered, RecipientBounced, RecipientComplained,
	// RecipientOpened or RecipientClicked, or, when what waits is abandoned,
	// RecipientFailed.
	Status RecipientStatus
	// Response is the remote server's reply. Code (0 for none), Enhanced and
	// Reason are its parts, if known. Soft means that the address may be valid.
	Response         string
	Code             int
	Enhanced, Reason string
	Soft             bool
	// Suppress, SuppressFor and EmailFold are as in Attempt.
	Suppress    SuppressionReason
	SuppressFor SuppressionCategory
	EmailFold   string
	// ComplaintOf is the registrable domain of the recipient if the complaint is
	// authenticated. Without it, a complaint does not count towards pausing the
	// account.
	ComplaintOf string
	// Bot reports that a machine opened or clicked, which does not change the
	// status. Link is the clicked link.
	Bot  bool
	Link string
}

// RecordReport stores a report, updates the status of the message and writes the
// events. A report that adds nothing, or whose recipient does not exist, changes
// nothing.
func (s *Store) RecordReport(ctx context.Context, report Report) error {
	return s.recordAll(ctx, "record report", func(r *recording) error { return r.report(ctx, &report) })
}

// report records a report, if it adds something.
func (r *recording) report(ctx context.Context, report *Report) error {
	const q = `
		UPDATE recipients
		   SET leased = false, next_attempt_at = NULL, held_due = NULL, stopped_due = NULL, status = $2, last_response = coalesce(cast($3 AS text), last_response),
		       sent_at = coalesce(sent_at, cast($4 AS bigint)), delivered_at = coalesce(delivered_at, cast($5 AS bigint)),
		       bounced_at = coalesce(bounced_at, cast($6 AS bigint)), engagements = engagements + $7
		 WHERE seq = $1`
	m, err := r.message(ctx, report.MessageSeq)
	if m == nil || err != nil {
		return err
	}
	rcpt := m.rcpt(report.RecipientSeq)
	if rcpt == nil {
		return nil
	}
	status, events := report.after(rcpt.Status)
	if len(events) == 0 || report.engages() && rcpt.Engagements >= MaxEngagements {
		return nil
	}
	response := storable(report.Response[:min(len(report.Response), maxResponse)])
	sent, delivered := r.reached(report.Status) // an open or a complaint implies delivery
	var said *string
	var bounced *Time
	engaged := 0
	if report.engages() {
		engaged = 1
	} else {
		said = &response
	}
	if report.Status == RecipientBounced {
		bounced = &r.now
	}
	if _, err := r.store.prepared.Exec(ctx, r.tx, q, rcpt.Seq, status, said, sent, delivered, bounced, engaged); err != nil {
		return errIn("update recipient", err)
	}
	a := &Attempt{Status: status, Response: response, Suppress: report.Suppress, SuppressFor: report.SuppressFor, EmailFold: report.EmailFold}
	return r.settle(ctx, m, []outcome{{Attempt: a, rcpt: rcpt, events: events, report: report}})
}

func (r *Report) engages() bool { return r.Status == RecipientOpened || r.Status == RecipientClicked }

// progress is how far a recipient comes when all goes well, with the events of
// each step.
var progress = []RecipientStatus{RecipientQueued, RecipientSent, RecipientDelivered, RecipientOpened, RecipientClicked}

// after returns the recipient's new status and the events to emit, none if the
// report adds nothing new. It includes the events of skipped steps.
func (r *Report) after(old RecipientStatus) (status RecipientStatus, told []EventType) {
	at, to := slices.Index(progress, old), slices.Index(progress, r.Status)
	passed := func(end RecipientStatus) (events []EventType) {
		for _, step := range progress[max(at, 0)+1:] {
			if slices.Index(progress, step) <= slices.Index(progress, end) {
				events = append(events, stepEvents[step])
			}
		}
		return events
	}
	event := stepEvents[r.Status]
	switch {
	case r.Status == RecipientComplained && old == RecipientBounced:
		return RecipientComplained, []EventType{EventMessageComplained}
	case r.engages() && !r.Bot && (old == RecipientComplained || old == RecipientBounced): // its time counts, not its rank
		return old, []EventType{event}
	case at < 0: // it has ended
		return old, nil
	case r.Status == RecipientBounced:
		return RecipientBounced, []EventType{EventMessageBounced}
	case r.Status == RecipientComplained:
		return RecipientComplained, append(passed(RecipientDelivered), EventMessageComplained)
	case r.Status == RecipientFailed:
		if old != RecipientQueued {
			return old, nil
		}
		return RecipientFailed, []EventType{EventMessageFailed}
	case old == RecipientQueued: // the mail is being handed over: whoever reads it is a machine on its way
		return old, nil
	case r.Status == RecipientDelivered:
		return progress[max(at, to)], passed(RecipientDelivered)
	}
	if r.Bot {
		return old, []EventType{event}
	}
	return progress[max(at, to)], append(passed(RecipientDelivered), event)
}

// SentTo is a recipient of a sent message, as reports need it.
type SentTo struct {
	AccountID    int64  `db:"account_id"`
	MessageSeq   int64  `db:"message_seq"`
	RecipientSeq int64  `db:"seq"`
	Email        string `db:"email"`
	// HandedOverAt is when a server accepted the message, nil if none has.
	HandedOverAt *Time `db:"handed_over_at"`
	// Engagements is the number of opens and clicks reported so far.
	Engagements int `db:"engagements"`
	// Inbox is where the mail was sent from. It is zero, and takes nothing, when that is none
	// or deleted.
	Inbox Mailbox `db:"inbox"`
}

const (
	sentColumns = `r.account_id, r.message_seq, r.seq, r.email, coalesce(r.delivered_at, r.sent_at) AS handed_over_at, r.engagements,
		coalesce(i.seq, 0) AS "inbox.seq", r.account_id AS "inbox.account_id", coalesce(i.id, '') AS "inbox.id",
		coalesce(i.status, '') AS "inbox.status", i.expires_at AS "inbox.expires_at"`
	sentTables = ` FROM recipients r JOIN messages m ON m.seq = r.message_seq LEFT JOIN emails e ON e.message_seq = m.seq
		LEFT JOIN inboxes i ON i.seq = coalesce(m.inbox_seq, e.from_inbox) AND i.status <> 'deleted'`
	sentTo    = `SELECT ` + sentColumns + sentTables + ` WHERE r.seq = $3 AND r.message_seq = $2 AND r.account_id = $1 AND NOT m.test_mode`
	sentEmail = `SELECT ` + sentColumns + sentTables + ` WHERE m.account_id = $1 AND m.id = $2 AND e.message_seq IS NOT NULL AND NOT m.test_mode`
	// Same conditions as the index messages_header, which covers emails without
	// an inbox.
	sentByHeader = `SELECT ` + sentColumns + sentTables + `
		WHERE m.account_id = $1 AND m.inbox_seq = $2 AND m.header_hash = $3 AND m.header_id = $4 AND m.direction = 'out' AND NOT m.test_mode
		UNION ALL
		SELECT ` + sentColumns + sentTables + `
		WHERE m.account_id = $1 AND m.inbox_seq IS NULL AND e.from_inbox = $2 AND m.header_hash = $3 AND m.header_id = $4 AND NOT m.test_mode`
)

// SentTo returns a recipient by all of its numbers, or ErrNotFound.
func (s *Store) SentTo(ctx context.Context, accountID, messageSeq, recipientSeq int64) (SentTo, error) {
	return s.sentOne(ctx, "recipient of a report", sentTo, accountID, messageSeq, recipientSeq)
}

// SentByHeader returns the recipients of the mail that was sent from an inbox
// with a header Message-ID, none when the mail does not exist.
func (s *Store) SentByHeader(ctx context.Context, in Mailbox, headerID string) ([]SentTo, error) {
	return readAll[SentTo](ctx, s, "recipients of a report", sentByHeader, in.AccountID, in.Seq, hash64(headerID), headerID)
}

// SentEmail returns the only recipient of an email. It returns ErrNotFound if the
// email does not exist or has several recipients.
func (s *Store) SentEmail(ctx context.Context, accountID int64, id string) (SentTo, error) {
	return s.sentOne(ctx, "tracked email", sentEmail, accountID, id)
}

// sentOne returns the only recipient that q finds, or ErrNotFound.
func (s *Store) sentOne(ctx context.Context, what, q string, args ...any) (SentTo, error) {
	all, err := readAll[SentTo](ctx, s, what, q, args...)
	if err == nil && len(all) != 1 {
		err = fmt.Errorf("%s: %w", what, ErrNotFound)
	}
	if err != nil {
		return SentTo{}, err
	}
	return all[0], nil
}

// Unsubscribe takes an address, folded in emailFold, off the account's marketing
// mail, because of the mail of that number, which may be deleted.
func (s *Store) Unsubscribe(ctx context.Context, accountID, messageSeq int64, email, emailFold string) error {
	const (
		sent    = `SELECT id FROM messages WHERE seq = $1 AND account_id = $2`
		contact = `SELECT id FROM contacts WHERE account_id = $1 AND email_fold = $2`
	)
	err := s.inTx(ctx, "unsubscribe", func(tx *sqlx.Tx) error {
		source, err := getAll[string](ctx, tx, sent, messageSeq, accountID)
		if err != nil {
			return err
		}
		contacts, err := getAll[string](ctx, tx, contact, accountID, mail.FoldAddress(email))
		if err != nil {
			return err
		}
		sup, events, err := s.suppress(ctx, tx, Suppression{
			AccountID: accountID, Email: email, EmailFold: emailFold, Reason: SuppressedUnsubscribe, Category: SuppressMarketing, Source: first(source),
		})
		if len(events) > 0 {
			e := sup.event(EventUnsubscribed)
			e.data = SuppressionEventData{Email: email, Source: first(source), ContactID: first(contacts), CreatedAt: sup.CreatedAt}
			events = append(events, e)
		}
		if err != nil {
			return err
		}
		return s.insertEvents(ctx, tx, events)
	})
	s.told(err)
	return err
}

// told wakes those who read events after a transaction that may have written some.
func (s *Store) told(err error) {
	if err == nil {
		s.changed([]topic{{kind: topicEvents}, {kind: topicWebhooks}}, 1)
	}
}

// first is the first of rows that may be none.
func first[T any](rows []T) *T {
	if len(rows) == 0 {
		return nil
	}
	return &rows[0]
}
