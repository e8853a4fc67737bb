package queue

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"syscall"

	"github.com/postroom/postroom/smtp"
	"github.com/postroom/postroom/store"
)

// deliver performs the attempt of a job. The dispatcher ends one that takes too long;
// the deadline leaves time for the reply to a whole message.
func (q *Queue) deliver(ctx context.Context, j *job) outcome {
	attempt, stop := context.WithTimeout(ctx, j.maxTime()+q.dialer.Timeouts.Done)
	defer stop()
	q.dests.begin(j)
	defer q.dests.end(j)
	return outcome{q.attempt(attempt, j)}
}

// brokenOff reports whether the attempt was cancelled, because the queue stops or
// the claim was lost. An attempt that took too long was not.
func brokenOff(attempt context.Context) bool {
	return errors.Is(context.Cause(attempt), context.Canceled)
}

func (q *Queue) attempt(ctx context.Context, j *job) []result {
	if j.dest.kind == toTestMode {
		return each(j, simulate)
	}
	if q.stopped(ctx, j) {
		return all(len(j.rcpts), resultUntried) // the next claim leaves it
	}
	if v, ok := q.mayLeave(ctx, j); !ok {
		return all(len(j.rcpts), v)
	}
	if j.dest.kind == toInbox || j.dest.kind == toMX && q.isOurs(ctx, j.dest.domain) {
		return q.deliverLocal(ctx, j)
	}
	if response, ok := q.dests.givenUp(j); ok {
		return all(len(j.rcpts), result{status: store.RecipientQueued, response: response})
	}
	return q.deliverRemote(ctx, j)
}

// stopped reports whether a person stopped the sender of the job. When that cannot be
// read, nothing leaves.
func (q *Queue) stopped(ctx context.Context, j *job) bool {
	is, err := q.store.IsStopped(ctx, j.rcpts[0])
	if err != nil && !brokenOff(ctx) {
		q.log.WarnContext(ctx, "stops cannot be read", "message_id", j.mail.message.ID, "error", err)
	}
	return is || err != nil
}

// mayLeave reports whether the sender may still use the From domain: the
// installation's own, or one verified for the account. Otherwise it returns the
// result.
func (q *Queue) mayLeave(ctx context.Context, j *job) (result, bool) {
	from := j.mail.message.FromEmail
	domain := strings.ToLower(from[strings.LastIndexByte(from, '@')+1:])
	if domain == q.domain || q.allLocal {
		return result{}, true
	}
	owner, err := q.store.DomainOwner(ctx, domain)
	switch {
	case errors.Is(err, store.ErrNotFound), err == nil && owner != j.mail.message.AccountID:
		return resultNotYours, false
	case err == nil:
		return result{}, true
	case brokenOff(ctx):
		return resultUntried, false
	}
	q.log.WarnContext(ctx, "owner of the sender's domain cannot be read", "message_id", j.mail.message.ID, "error", err)
	return resultLocal, false
}

// isOurs reports whether this host is the first MX host of a domain, as for
// account domains with inboxes here. Connecting to ourselves would be a loop, and
// is refused. If the lookup fails, isOurs returns false, and the delivery to the
// MX hosts fails.
func (q *Queue) isOurs(ctx context.Context, domain string) bool {
	hosts, err := q.dir.Hosts(ctx, domain)
	return err == nil && len(hosts) > 0 && strings.EqualFold(strings.TrimSuffix(hosts[0], "."), q.dialer.HELO)
}

func each(j *job, f func(store.Claimed) result) []result {
	results := make([]result, len(j.rcpts))
	for i, c := range j.rcpts {
		results[i] = f(c)
	}
	return results
}

// deliverLocal delivers to our own inboxes, once to each, whatever tags the
// recipients have.
func (q *Queue) deliverLocal(ctx context.Context, j *job) []result {
	results := make([]result, len(j.rcpts))
	for _, same := range byInbox(j.rcpts) {
		rcpts := make([]store.Claimed, len(same))
		for i, at := range same {
			rcpts[i] = j.rcpts[at]
		}
		v := q.deliverInto(ctx, j, rcpts)
		for _, at := range same {
			results[at] = v
		}
	}
	return results
}

// byInbox groups the indexes of the recipients by inbox.
func byInbox(rcpts []store.Claimed) [][]int {
	type inbox struct{ local, domain string }
	var groups [][]int
	group := map[inbox]int{}
	for at, c := range rcpts {
		local, _, domain := smtp.SplitAddress(c.Email)
		i, found := group[inbox{local, domain}]
		if !found {
			i = len(groups)
			group[inbox{local, domain}] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], at)
	}
	return groups
}

// deliverInto delivers to one of our own inboxes, which rcpts name. The
// transaction that stores the message also records the attempts, so that it
// cannot arrive twice.
func (q *Queue) deliverInto(ctx context.Context, j *job, rcpts []store.Claimed) result {
	if !j.work.Ours() {
		return resultLost
	}
	// Settle first: a renewal that finds a recorded recipient still open would
	// end the claim for the rest of the job. If the lease expires now, the
	// transaction detects it.
	for _, c := range rcpts {
		j.work.Settle(c.Seq)
	}
	for try := 1; ; try++ {
		attempts, err := q.receive(ctx, j, rcpts)
		if err == nil {
			for i, c := range rcpts {
				q.logAttempt(ctx, j, c, attempts[i])
			}
			return resultLost
		}
		v, ours := q.localFault(ctx, j, err)
		if !ours {
			return v
		}
		if try == localTries || ctx.Err() != nil {
			q.log.Log(ctx, faultLevel(err), "local delivery failed", "message_id", j.mail.message.ID, "error", err)
			return v
		}
	}
}

// errOpen means that the message could not be opened.
type errOpen struct{ error }

func (e errOpen) Unwrap() error { return e.error }

// receive passes the message to the receive path.
func (q *Queue) receive(ctx context.Context, j *job, rcpts []store.Claimed) ([]*store.Attempt, error) {
	mail, err := q.open(ctx, j.mail)
	if err != nil {
		return nil, errOpen{err}
	}
	defer func() { _ = mail.Close() }()
	env := smtp.Envelope{MailFrom: j.mail.from, HELO: q.dialer.HELO, Account: j.mail.message.AccountID}
	var attempts []*store.Attempt
	for _, c := range rcpts {
		env.RcptTo = append(env.RcptTo, c.Email)
		env.UTF8 = env.UTF8 || !smtp.IsASCII(c.Email)
		v := result{status: store.RecipientDelivered, response: "250 2.0.0 Delivered to the inbox"}
		attempts = append(attempts, q.attemptOf(j, c, v))
	}
	return attempts, q.local.DeliverLocal(ctx, env, mail, mail.size, attempts)
}

// localFault returns the result for an error of the receive path. ours reports
// that neither the message nor the recipient is at fault.
func (q *Queue) localFault(ctx context.Context, j *job, err error) (v result, ours bool) {
	if open, ok := errors.AsType[errOpen](err); ok {
		return q.cannotOpen(ctx, j, open.error), false
	}
	if errors.Is(err, store.ErrState) {
		q.logLost(ctx, j)
		return resultLost, false
	}
	if said, ok := errors.AsType[*smtp.Reply](err); ok {
		v := result{status: store.RecipientQueued, response: said.Error(), own: true}
		if !said.Temporary() {
			v.status = store.RecipientBounced
		}
		return v, false
	}
	if errors.Is(err, store.ErrNotFound) {
		return resultNoInbox, false
	}
	if brokenOff(ctx) {
		return resultUntried, false
	}
	return resultLocal, true
}

// cannotOpen returns the result for a message whose bytes cannot be read.
func (q *Queue) cannotOpen(ctx context.Context, j *job, err error) result {
	switch {
	case errors.Is(err, store.ErrNotFound):
		q.log.WarnContext(ctx, "content of a queued message is deleted", "message_id", j.mail.message.ID)
		return resultGone
	case brokenOff(ctx):
		return resultUntried
	}
	q.log.Log(ctx, faultLevel(err), "queued message cannot be read", "message_id", j.mail.message.ID, "error", err)
	return resultLocal
}

// faultLevel is the level of a log line about an error of this machine: a warning if the
// disk or the database caused it, and otherwise a fault of ours.
func faultLevel(err error) slog.Level {
	_, system := errors.AsType[syscall.Errno](err)
	if system || errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrFull) {
		return slog.LevelWarn
	}
	return slog.LevelError
}
