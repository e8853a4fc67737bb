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

// Feedback creates the reverse-paths and unsubscribe links of outbound messages.
type Feedback struct {
	// Signer signs the addresses.
	Signer *feedback.Signer
	// BaseURL is the prefix of links; nil disables them.
	BaseURL *url.URL
}

// apart runs one transaction per recipient, because each has its own
// reverse-path. It records each result while the next transaction runs: what is
// not recorded when the process dies is sent again. Recipients that the server
// did not get to are left for another connection.
func (q *Queue) apart(ctx context.Context, p *outbound.Peer, j *job) ([]result, *outbound.Fault) {
	results := all(len(j.rcpts), resultUntried)
	var recording sync.WaitGroup
	defer recording.Wait()
	for i := range j.rcpts {
		if i > 0 && (p.Broken || p.Transactions >= p.MaxTransactions(q.conns.PerConn) || p.Reset() != nil) {
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
			results[i] = v[0]
		default:
			// Stop renewing the lease of a recorded recipient: the renewal would
			// fail and look like a lost claim.
			j.work.Settle(j.rcpts[i].Seq)
			came := unlessBrokenOff(ctx, v)[0]
			recording.Go(func() { q.record(ctx, &one, sameOutcome(&one, came)) })
			results[i] = resultLost
		}
	}
	return results, nil
}

// reversePath returns the reverse-path for the one recipient. It is on the
// sender's domain if that is configured for it, so that SPF is aligned with the
// From address (RFC 7489 section 3.1.2).
func (q *Queue) reversePath(ctx context.Context, j *job) string {
	if q.feedback == nil {
		return j.mail.from
	}
	c := j.rcpts[0]
	to := feedback.Sent{Account: c.AccountID, Message: c.MessageSeq, Recipient: c.Seq}
	return q.feedback.Signer.ReturnPath(to, q.returnDomain(ctx, j))
}

// returnDomain returns the domain of the reverse-path. It is the installation's
// own if the sender's domain has none or the lookup fails.
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

// fieldsOf returns the header fields for one recipient: the unsubscribe link of
// marketing mail. They are the same in every attempt.
func (q *Queue) fieldsOf(c store.Claimed) string {
	if q.feedback == nil || q.feedback.BaseURL == nil || c.Category != store.CategoryMarketing {
		return ""
	}
	return q.feedback.Signer.UnsubscribeFields(q.feedback.BaseURL, feedback.Subscription{
		Account: c.AccountID, Message: c.MessageSeq, Email: c.Email,
	})
}
