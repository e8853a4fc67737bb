package queue

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/plaintext"
	"github.com/postroom/postroom/smtp"
	"github.com/postroom/postroom/store"
)

// record stores the results of a job in one transaction, and retries on errors,
// because an unrecorded message would be sent again. It leaves out the recipients
// that another process has claimed.
func (q *Queue) record(ctx context.Context, j *job, o outcome) {
	var attempts []*store.Attempt
	var of []int // the recipient of each
	for i, v := range o.results {
		if !v.recorded {
			attempts, of = append(attempts, q.attemptOf(j, j.rcpts[i], v)), append(of, i)
		}
	}
	if len(attempts) == 0 {
		return
	}
	var lost []*store.Attempt
	err := store.Persist(ctx, func(ctx context.Context) (err error) {
		lost, err = q.store.RecordAttempts(ctx, attempts...)
		return err
	})
	for n, a := range attempts {
		c := j.rcpts[of[n]]
		j.work.Settle(c.Seq)
		switch {
		case err != nil:
			q.log.ErrorContext(ctx, "outcome of a delivery not recorded", "message_id", j.mail.message.ID, "status", a.Status, "error", err)
		case slices.Contains(lost, a):
			q.logLost(ctx, j)
		case !a.Untried:
			q.logAttempt(ctx, j, c, a)
		}
	}
}

// attemptOf returns the database row of a result. A transient failure is deferred
// until the retries end; then it is a soft bounce with the server's last reply.
func (q *Queue) attemptOf(j *job, c store.Claimed, v result) *store.Attempt {
	a := &store.Attempt{
		RecipientSeq: c.Seq, MessageSeq: c.MessageSeq, Fence: c.Fence,
		Status: v.status, Response: v.response, Signature: j.mail.newSignature(),
	}
	if v.status == store.RecipientSent && j.dest.kind == toRelay {
		a.RelayedID = relayedID(v.response)
	}
	if v.status != store.RecipientQueued {
		a.Own = v.own
		if a.Suppress = suppressionOf(c, v); a.Suppress != "" {
			a.EmailFold, a.SuppressFor = mail.CanonicalAddress(c.Email), smtp.SuppressedMail(enhancedOf(v.response))
		}
		return a
	}
	now := q.now()
	if v.untried {
		next := store.NewTime(now)
		a.Next, a.Untried = &next, true
		if c.LastResponse != nil {
			a.Response = *c.LastResponse
		}
		return a
	}
	next, ok := nextAttempt(c.Attempts, retriesEnd(c), now, 2*rand.Float64()-1) //nolint:gosec // no secret
	if !ok {
		a.Status, a.Soft = store.RecipientBounced, true
		return a
	}
	at := store.NewTime(next)
	a.Next = &at
	return a
}

// relayedID returns the Message-ID that Amazon SES gives to a message in place of
// ours, from its reply "250 Ok 0100018f-1234". It returns "" for other replies.
func relayedID(response string) string {
	const longest = 128
	text, ok := strings.CutPrefix(response, "250 ")
	text = strings.TrimPrefix(text, "2.0.0 ")
	word, id, _ := strings.Cut(text, " ")
	if !ok || !strings.EqualFold(word, "ok") || len(id) > longest || strings.IndexByte(id, '-') <= 0 {
		return ""
	}
	for i := range len(id) {
		if id[i] != '-' && !plaintext.IsAlnum(id[i]) {
			return ""
		}
	}
	return mail.SESMessageID(id)
}

func (q *Queue) logAttempt(ctx context.Context, j *job, c store.Claimed, a *store.Attempt) {
	code, _, _ := strings.Cut(a.Response, " ")
	q.log.InfoContext(ctx, "delivery attempt", "message_id", j.mail.message.ID, "rcpt_domain", c.Domain,
		"attempt", c.Attempts, "status", a.Status, "smtp_code", code)
	if q.onAttempt != nil {
		q.onAttempt(AttemptReport{
			MessageID: j.mail.message.ID, Domain: c.Domain, Attempt: c.Attempts, Status: a.Status, Code: code, Began: j.began,
			Age: q.now().Sub(c.Message.CreatedAt.Time),
		})
	}
}

// logLost logs a claim that another process has taken over.
func (q *Queue) logLost(ctx context.Context, j *job) {
	q.log.WarnContext(ctx, "recipient claimed by another node", "message_id", j.mail.message.ID,
		"rcpt_domain", j.rcpts[0].Domain)
}
