package queue

import (
	"cmp"
	"context"
	"net/url"
	"strings"
	"sync"

	"github.com/postroom/postroom/internal/feedback"
	"github.com/postroom/postroom/smtp/outbound"
	"github.com/postroom/postroom/store"
)

// Feedback is how those who get our mail can answer it.
type Feedback struct {
	// Signer makes the addresses.
	Signer *feedback.Signer
	// BaseURL is where links begin; nil means that mail gets none.
	BaseURL *url.URL
}

// apart runs a transaction for each recipient of the job, as each has a return
// path of their own, and records what came of one while the next is served: what
// is not recorded when the process dies is sent again. Those that the server did
// not get to are left for another connection.
func (q *Queue) apart(ctx context.Context, p *outbound.Peer, j *job) ([]verdict, *outbound.Fault) {
	verdicts := all(len(j.rcpts), verdictUntried)
	var recording sync.WaitGroup
	defer recording.Wait()
	for i := range j.rcpts {
		if i > 0 && (p.Broken || p.Mails >= p.MostMails(q.conns.Mails) || p.Reset() != nil) {
			break
		}
		one := *j
		one.rcpts = j.rcpts[i : i+1]
		v, f := q.together(ctx, p, &one)
		switch {
		case f != nil && i == 0:
			return nil, f
		case f != nil:
		case i == len(j.rcpts)-1 || v[0].recorded:
			verdicts[i] = v[0]
		default:
			// No lease is renewed any more of what is recorded: to do so would look
			// as if another process had claimed it.
			j.holding.settle(j.rcpts[i].Seq)
			came := unlessBrokenOff(ctx, v)[0]
			recording.Go(func() { q.recordOne(ctx, j, j.rcpts[i], came) })
			verdicts[i] = verdictLost
		}
	}
	return verdicts, nil
}

// reversePath is the envelope's sender: a return path for the one recipient, on
// the sender's own domain where that is set up for it, so that SPF is aligned
// with the From address (RFC 7489 section 3.1.2).
func (q *Queue) reversePath(ctx context.Context, j *job) string {
	if q.feedback == nil {
		return j.mail.from
	}
	c := j.rcpts[0]
	to := feedback.Sent{Account: c.AccountID, Message: c.MessageSeq, Recipient: c.Seq}
	return q.feedback.Signer.ReturnPath(to, q.returnDomain(ctx, j))
}

// returnDomain is the domain of the return path: the install's own when that of
// the sender has none, or nobody can tell.
func (q *Queue) returnDomain(ctx context.Context, j *job) string {
	_, domain, _ := strings.Cut(j.mail.message.FromEmail, "@")
	if domain == q.domain {
		return q.domain
	}
	host, err := q.store.ReturnHost(ctx, j.mail.message.AccountID, domain)
	if err != nil && !brokenOff(ctx) {
		q.log.WarnContext(ctx, "return path of a domain cannot be read", "message_id", j.mail.message.ID, "error", err)
	}
	return cmp.Or(host, q.domain)
}

// fieldsOf is what stands in the header of a mail for one recipient alone: how
// they unsubscribe from marketing mail. The same for every attempt.
func (q *Queue) fieldsOf(c store.Claimed) string {
	if q.feedback == nil || q.feedback.BaseURL == nil || c.Category != store.CategoryMarketing {
		return ""
	}
	return q.feedback.Signer.UnsubscribeFields(q.feedback.BaseURL, feedback.Subscription{
		Account: c.AccountID, Message: c.MessageSeq, Email: c.Email,
	})
}
