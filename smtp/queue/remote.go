package queue

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mtasts"
	"github.com/postroom/postroom/smtp"
	"github.com/postroom/postroom/smtp/outbound"
	"github.com/postroom/postroom/store"
)

// errLeaseOver means that another process may have claimed the recipient.
var errLeaseOver = errors.New("lease is over")

// errStopped means that a person stopped the sender.
var errStopped = errors.New("sending is stopped")

// deliverRemote sends the message to the first server of the destination that
// accepts the transaction, and returns its results.
func (q *Queue) deliverRemote(ctx context.Context, j *job) []result {
	n := len(j.rcpts)
	endpoints, policy, v := q.route(ctx, j.dest)
	if v != nil {
		return unlessBrokenOff(ctx, all(n, *v))
	}
	var faults []outbound.Fault
	responded := false
	for p, f := range q.peers(ctx, endpoints) {
		if p != nil {
			if policy.Mode == mtasts.Testing {
				if err := p.Unmet(policy, q.dialer.Roots); err != nil {
					q.noteUnmet(ctx, mtasts.Testing, p.At, err)
				}
			}
			var results []result
			q.dests.enter(j)
			results, f = q.transact(ctx, p, j)
			q.dests.leave(j)
			if f == nil {
				q.noteServer(ctx, j, p)
				return unlessBrokenOff(ctx, results)
			}
			responded = responded || !p.TimedOut && ctx.Err() == nil
		}
		faults = append(faults, *f)
	}
	overall := resultOf(faults)
	for _, f := range faults {
		q.log.InfoContext(ctx, "server not used", "message_id", j.mail.message.ID, "rcpt_domain", j.rcpts[0].Domain,
			"response", f.Response, "error", f.Err)
	}
	switch {
	case brokenOff(ctx):
	case responded:
		q.dests.reachable(j)
	case overall.status == store.RecipientQueued:
		q.dests.unreachable(j, overall.response)
	}
	return unlessBrokenOff(ctx, all(n, overall))
}

// noteServer records the state of the transaction's server. A server that stops
// responding during a transaction counts as unreachable, because it would delay
// all mail for its domain.
func (q *Queue) noteServer(ctx context.Context, j *job, p *outbound.Peer) {
	switch {
	case brokenOff(ctx):
	case p.TimedOut, ctx.Err() != nil:
		q.dests.silent(j, outbound.FaultOf(ctx, p.At, os.ErrDeadlineExceeded).Response)
	default:
		q.dests.reachable(j)
	}
}

// unlessBrokenOff marks the failures of a cancelled attempt as untried.
func unlessBrokenOff(ctx context.Context, results []result) []result {
	if !brokenOff(ctx) {
		return results
	}
	for i, v := range results {
		if v.status == store.RecipientQueued {
			results[i] = resultUntried
		}
	}
	return results
}

// transact sends the message to a server. A fault means that the server gave no
// reply about any recipient, so that another server can be tried.
func (q *Queue) transact(ctx context.Context, p *outbound.Peer, j *job) ([]result, *outbound.Fault) {
	defer q.conns.Put(p)
	if q.feedback != nil {
		return q.apart(ctx, p, j)
	}
	return q.together(ctx, p, j)
}

// together runs one transaction for all recipients of the job.
func (q *Queue) together(ctx context.Context, p *outbound.Peer, j *job) ([]result, *outbound.Fault) {
	mail, err := q.open(ctx, j.mail)
	if err != nil {
		return all(len(j.rcpts), q.cannotOpen(ctx, j, err)), nil
	}
	defer func() { _ = mail.Close() }()
	results, tx, left := newTransaction(p, j, q.reversePath(ctx, j), mail.size)
	if len(left) == 0 {
		return results, nil
	}
	taken := store.RecipientDelivered
	if j.dest.kind == toRelay {
		taken = store.RecipientSent
	}
	from, to, err := p.Envelope(tx)
	if err != nil && len(to) == 0 {
		return nil, outbound.FaultOf(ctx, p.At, err)
	}
	if !from.Positive() {
		if f := q.senderFault(ctx, p.At, from); f != nil {
			return nil, f
		}
		return fill(results, left, said(from, taken)), nil
	}
	var accepted []int
	for i, r := range to {
		if results[left[i]] = said(r, taken); r.Positive() {
			accepted = append(accepted, left[i])
		}
	}
	if err != nil {
		lost := result{status: store.RecipientQueued, response: outbound.FaultOf(ctx, p.At, err).Response}
		return fill(fill(results, accepted, lost), left[len(to):], lost), nil
	}
	if len(accepted) == 0 {
		return results, nil
	}
	return fill(results, accepted, q.hand(ctx, p, j, mail, taken)), nil
}

// senderFault returns the fault if a server's refusal of MAIL is not about the
// message, else nil. Examples are a relay that requires authentication, or a
// server that requires TLS after TLS failed (RFC 3207 section 4).
func (q *Queue) senderFault(ctx context.Context, e outbound.Endpoint, r outbound.Response) *outbound.Fault {
	var err error = &outbound.ResponseError{Response: r}
	switch {
	case e.Trusted && r.Code == 530:
		err = fmt.Errorf("%w: %s", outbound.ErrAuth, r)
		q.log.WarnContext(ctx, "relay cannot be used", "relay", e.String(), "error", err)
	case r.Code == 530:
		err = fmt.Errorf("%w: %s", outbound.ErrNoTLS, r)
	case r.Permanent():
		return nil
	}
	return outbound.FaultOf(ctx, e, err)
}

// hand sends the message data.
func (q *Queue) hand(ctx context.Context, p *outbound.Peer, j *job, mail *signedMail, taken store.RecipientStatus) result {
	r, err := p.Data(mail, func() error {
		if !j.work.Ours() {
			return errLeaseOver
		}
		if q.stopped(ctx, j) {
			return errStopped
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return j.work.Hand()
	})
	j.work.Handled()
	switch {
	case errors.Is(err, outbound.ErrBody):
		return q.cannotOpen(ctx, j, err)
	case errors.Is(err, errLeaseOver):
		return resultLost
	case errors.Is(err, errStopped):
		return resultUntried
	case errors.Is(err, outbound.ErrNoReply):
		q.tally.inDoubt.Add(1)
		q.log.WarnContext(ctx, "no reply after the message, which may arrive twice", "mx_host", p.At.Name(),
			"message_id", j.mail.message.ID, "error", err)
		return result{status: store.RecipientQueued, response: outbound.FaultOf(ctx, p.At, err).Response}
	case err != nil:
		q.log.InfoContext(ctx, "connection lost", "mx_host", p.At.Name(), "message_id", j.mail.message.ID, "error", err)
		return result{status: store.RecipientQueued, response: outbound.FaultOf(ctx, p.At, err).Response}
	}
	return said(r, taken)
}

// newTransaction returns the envelope for the recipients that p can accept; left
// are their indexes in the job. The others already have a result.
func newTransaction(p *outbound.Peer, j *job, from string, size int64) (results []result, tx outbound.Transaction, left []int) {
	results = make([]result, len(j.rcpts))
	tx = outbound.Transaction{From: from, Size: size, UTF8: !smtp.IsASCII(from), Notify: from != j.mail.from && j.dest.kind == toRelay}
	tx.UTF8 = tx.UTF8 || headerIsUTF8(j.mail.message.Addresses.V)
	for i, c := range j.rcpts {
		rcpt, ok := wireAddress(c.Email)
		switch {
		case !ok:
			results[i] = resultAddress
			continue
		case (tx.UTF8 || !smtp.IsASCII(rcpt)) && !p.Offers("SMTPUTF8"):
			results[i] = resultNoUTF8
			continue
		}
		tx.UTF8 = tx.UTF8 || !smtp.IsASCII(rcpt)
		tx.To = append(tx.To, rcpt)
		left = append(left, i)
	}
	return results, tx, left
}

// wireAddress returns an address for RCPT. The domain is in ASCII, so that
// SMTPUTF8 is needed only for a non-ASCII local part.
func wireAddress(email string) (string, bool) {
	if mail.ValidAddress(email) != nil || strings.ContainsAny(email, "\r\n\x00<>") {
		return "", false
	}
	at := strings.LastIndexByte(email, '@')
	domain, err := smtp.ASCIIDomain(email[at+1:])
	if at < 1 || err != nil {
		return "", false
	}
	return email[:at+1] + domain, true
}

// headerIsUTF8 reports whether the header contains a non-ASCII local part. The
// message then requires SMTPUTF8, whatever its recipients (RFC 6531 section 3.4).
func headerIsUTF8(as mail.Addresses) bool {
	named := slices.Concat(as.To, as.Cc, as.ReplyTo)
	if as.From != nil {
		named = append(named, *as.From)
	}
	return slices.ContainsFunc(named, func(a mail.Address) bool {
		return !smtp.IsASCII(a.Email[:strings.LastIndexByte(a.Email, '@')+1])
	})
}

// fill sets the results of the recipients at these indexes.
func fill(results []result, at []int, v result) []result {
	for _, i := range at {
		results[i] = v
	}
	return results
}
