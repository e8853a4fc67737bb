package store

import (
	"context"
	"slices"

	"github.com/jmoiron/sqlx"
)

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
	var r *recording
	err := s.inTx(ctx, "record report", func(tx *sqlx.Tx) error {
		r = s.newRecording(tx)
		return r.report(ctx, &report)
	})
	if err == nil {
		r.done(ctx)
	}
	return err
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

var progressEvents = map[RecipientStatus]EventType{RecipientSent: EventMessageSent, RecipientDelivered: EventMessageDelivered}

// after returns the recipient's new status and the events to emit, none if the
// report adds nothing new. It includes the events of skipped steps.
func (r *Report) after(old RecipientStatus) (status RecipientStatus, told []EventType) {
	at, to := slices.Index(progress, old), slices.Index(progress, r.Status)
	passed := func(end RecipientStatus) (events []EventType) {
		for _, step := range progress[max(at, 0)+1:] {
			if typ, ok := progressEvents[step]; ok && slices.Index(progress, step) <= slices.Index(progress, end) {
				events = append(events, typ)
			}
		}
		return events
	}
	event := map[RecipientStatus]EventType{RecipientOpened: EventEmailOpened, RecipientClicked: EventEmailClicked}[r.Status]
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
	AccountID, MessageSeq, RecipientSeq int64
	Email                               string
	// HandedOverAt is when a server accepted the message, nil if none has.
	HandedOverAt *Time
	// Engagements is the number of opens and clicks reported so far.
	Engagements int
	// Inbox is where the mail was sent from, nil when that is none or deleted.
	Inbox *Mailbox
}

const (
	sentColumns = `r.account_id, r.message_seq, r.seq, r.email, coalesce(r.delivered_at, r.sent_at), r.engagements, i.seq, i.id, i.status, i.expires_at`
	sentTables  = ` FROM recipients r JOIN messages m ON m.seq = r.message_seq LEFT JOIN emails e ON e.message_seq = m.seq
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
	all, err := s.sent(ctx, sentByHeader, in.AccountID, in.Seq, hash64(headerID), headerID)
	return all, s.wrap(err, "recipients of a report")
}

// SentEmail returns the only recipient of an email. It returns ErrNotFound if the
// email does not exist or has several recipients.
func (s *Store) SentEmail(ctx context.Context, accountID int64, id string) (SentTo, error) {
	return s.sentOne(ctx, "tracked email", sentEmail, accountID, id)
}

// sentOne returns the only recipient that q finds, or ErrNotFound.
func (s *Store) sentOne(ctx context.Context, what, q string, args ...any) (SentTo, error) {
	all, err := s.sent(ctx, q, args...)
	if err == nil && len(all) != 1 {
		err = ErrNotFound
	}
	if err != nil {
		return SentTo{}, s.wrap(err, what)
	}
	return all[0], nil
}

func (s *Store) sent(ctx context.Context, q string, args ...any) (all []SentTo, err error) {
	rows, err := s.read.QueryContext(ctx, q, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var t SentTo
		var seq *int64
		var id *string
		var status *InboxStatus
		var expires *Time
		if err := rows.Scan(&t.AccountID, &t.MessageSeq, &t.RecipientSeq, &t.Email, &t.HandedOverAt, &t.Engagements, &seq, &id, &status, &expires); err != nil {
			return nil, err
		}
		if seq != nil {
			t.Inbox = &Mailbox{*seq, t.AccountID, *id, *status, expires}
		}
		all = append(all, t)
	}
	return all, rows.Err()
}

// Unsubscribe takes an address, folded in emailFold, off the account's marketing
// mail, because of the mail of that number, which may be deleted.
func (s *Store) Unsubscribe(ctx context.Context, accountID, messageSeq int64, email, emailFold string) error {
	const (
		mail = `SELECT id FROM messages WHERE seq = $1 AND account_id = $2`
		put  = `INSERT INTO suppressions (` + suppressionWritten + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)` + widen
	)
	now := s.now()
	return s.inTx(ctx, "unsubscribe", func(tx *sqlx.Tx) error {
		var source []string
		if err := tx.SelectContext(ctx, &source, mail, messageSeq, accountID); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, put, accountID, NewID("sup_", now), email, emailFold, SuppressedUnsubscribe, SuppressMarketing,
			first(source), NewTime(now))
		return err
	})
}

// first is the first of rows that may be none.
func first[T any](rows []T) *T {
	if len(rows) == 0 {
		return nil
	}
	return &rows[0]
}
