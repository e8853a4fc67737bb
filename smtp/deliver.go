package smtp

import (
	"context"
	"errors"

	gosmtp "github.com/emersion/go-smtp"

	"github.com/postroom/postroom/store"
)

// deliver makes the attempt of a job and records what came of it. When ctx is
// cancelled the attempt is broken off; its own end is a deadline.
func (q *Queue) deliver(ctx context.Context, j *job) {
	now := q.now()
	if now.After(j.late) {
		// It has waited too long for its turn. The lease runs out, and it is
		// claimed again.
		q.log.DebugContext(ctx, "claim left to lapse", "message_id", j.mail.message.ID, "rcpt_domain", j.rcpts[0].Domain)
		return
	}
	attempt, cancel := context.WithTimeout(ctx, j.until.Sub(now))
	defer cancel()
	q.record(ctx, j, q.attempt(attempt, j))
}

// brokenOff says whether an attempt ends because the queue does.
func brokenOff(attempt context.Context) bool { return errors.Is(attempt.Err(), context.Canceled) }

// attempt returns a verdict for each recipient of the job.
func (q *Queue) attempt(ctx context.Context, j *job) []verdict {
	switch j.dest.kind {
	case toNobody:
		return all(len(j.rcpts), simulate(j.rcpts[0].Recipient))
	case toInbox:
		return all(len(j.rcpts), q.deliverLocal(ctx, j))
	}
	if response, ok := q.jobs.givenUp(j); ok {
		return all(len(j.rcpts), verdict{status: store.RecipientQueued, response: response})
	}
	return q.deliverRemote(ctx, j)
}

// deliverLocal puts the mail into one of our own inboxes. The transaction that
// receives it also records the attempt, so that it cannot arrive twice.
func (q *Queue) deliverLocal(ctx context.Context, j *job) verdict {
	mail, err := q.open(ctx, j.mail)
	if err != nil {
		return q.cannotOpen(ctx, j, err)
	}
	defer func() { _ = mail.Close() }()
	c := j.rcpts[0]
	v := verdict{status: store.RecipientDelivered, response: "250 2.0.0 Delivered to the inbox"}
	env := Envelope{MailFrom: j.mail.from, RcptTo: []string{c.Email}, HELO: q.dialer.helo, UTF8: !isASCII(c.Email)}
	a := q.attemptOf(j, c, v)
	err = q.local.DeliverLocal(ctx, env, mail, mail.size, a)
	if err == nil {
		q.logAttempt(ctx, j, c, a)
		return verdictLost
	}
	return q.localFault(ctx, j, err)
}

// localFault is the verdict of an error of the receive path.
func (q *Queue) localFault(ctx context.Context, j *job, err error) verdict {
	if errors.Is(err, store.ErrState) {
		q.logLost(ctx, j)
		return verdictLost
	}
	if said, ok := errors.AsType[*gosmtp.SMTPError](err); ok {
		v := verdict{status: store.RecipientQueued, response: wireForm(said)}
		if !said.Temporary() {
			v.status = store.RecipientBounced
		}
		return v
	}
	if errors.Is(err, store.ErrNotFound) {
		return verdictNoInbox
	}
	if brokenOff(ctx) {
		return verdictUntried
	}
	q.log.ErrorContext(ctx, "mail to our own inbox not stored", "message_id", j.mail.message.ID, "error", err)
	return verdictLocal
}

// wireForm is an answer of our own server as others would see it.
func wireForm(e *gosmtp.SMTPError) string {
	r := response{code: e.Code, lines: []string{e.Message}}
	if c := e.EnhancedCode; c[0] > 0 {
		r.lines[0] = itoa(c[0]) + "." + itoa(c[1]) + "." + itoa(c[2]) + " " + e.Message
	}
	return r.String()
}

// cannotOpen is the verdict when the bytes of the mail are not to be had.
func (q *Queue) cannotOpen(ctx context.Context, j *job, err error) verdict {
	switch {
	case errors.Is(err, store.ErrNotFound):
		q.log.WarnContext(ctx, "content of a queued message is gone", "message_id", j.mail.message.ID)
		return verdictGone
	case brokenOff(ctx):
		return verdictUntried
	}
	q.log.ErrorContext(ctx, "queued message cannot be read", "message_id", j.mail.message.ID, "error", err)
	return verdictLocal
}
