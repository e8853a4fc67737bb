package queue

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/postroom/postroom/internal/work"
	"github.com/postroom/postroom/smtp/outbound"
	"github.com/postroom/postroom/store"
)

// Queue delivers accepted messages. Several queues, also on several nodes, can
// share one store.
//
// Each recipient has its own result:
//
//   - Delivered: the server of its domain, or our own inbox, accepted the message.
//     Sent: the relay accepted it.
//   - Bounced, without retry: a server replied 5yz, the domain does not exist or
//     accepts no mail, or all its servers have addresses that we do not send to.
//   - Deferred: anything else (4yz, no reply, DNS failure, our own faults). It is
//     retried on the schedule of nextAttempt for 24 hours, or 72 hours for
//     marketing, and then bounces with the last reply.
//   - Failed: the content of the message is gone, or its From domain is no longer
//     verified for the account.
//
// Before each round, due scheduled emails are queued, so that they are late by at
// most one poll interval.
//
// If a domain has an MTA-STS policy (RFC 8461), its mail is sent only to the
// servers in the policy, and only over TLS; otherwise it is deferred. DANE (RFC
// 7672) is not supported, because it needs a validating resolver.
//
// A message is sent at least once. It may be sent twice if the reply of the
// server is lost (RFC 1047), or if the process dies before it records the reply;
// both times with the same bytes and Message-ID.
type Queue struct {
	store     *store.Store
	local     LocalDelivery
	signer    *Signer
	feedback  *Feedback
	domain    string
	allLocal  bool
	due       store.DueRules
	relay     *outbound.Relay
	mxPort    uint16
	lease     time.Duration
	now       func() time.Time
	onAttempt func(AttemptReport)
	log       *slog.Logger

	dir      *outbound.Directory
	dialer   *outbound.Dialer
	policies *outbound.Policies
	conns    *outbound.Pool
	dests    *destinations
	jobs     *work.Dispatcher
	tally    queueTally
}

// New returns a queue that does nothing until Run or RunOnce. The caller must
// close it, unless it calls Run.
func New(cfg Config) (*Queue, error) {
	if cfg.Store == nil || cfg.Local == nil || cfg.Domain == "" || cfg.HELO == "" {
		return nil, errors.New("queue: store, local delivery, domain and HELO name are required")
	}
	cfg.setDefaults()
	q := &Queue{
		store:  cfg.Store,
		local:  cfg.Local,
		signer: cfg.Signer, feedback: cfg.Feedback,
		domain: cfg.Domain, allLocal: cfg.AllLocal,
		due:       store.DueRules{MailDomain: cfg.Domain, AnySender: cfg.AllLocal, Draft: cfg.DraftOf},
		relay:     cfg.Relay,
		mxPort:    cfg.MXPort,
		lease:     cfg.Lease,
		now:       cfg.Now,
		onAttempt: cfg.OnAttempt,
		log:       cfg.Log,
		dir:       outbound.NewDirectory(cfg.Resolver, cfg.Now),
		dialer:    &outbound.Dialer{HELO: cfg.HELO, Timeouts: cfg.Timeouts.OrDefault(), Guard: cfg.Guard, Roots: cfg.RootCAs},
		conns:     &outbound.Pool{Max: cfg.MaxConns, PerConn: cfg.MessagesPerConn},
	}
	q.policies = outbound.NewPolicies(q.store, q.dir, q.dialer, cfg.PolicyPort, cfg.Now, cfg.Log)
	q.dests = &destinations{now: cfg.Now, all: map[dest]*destState{}}
	perDomain, perRelay := min(cfg.MaxPerDomain, cfg.MaxConns), min(relayConns, cfg.MaxConns)
	q.jobs = work.NewDispatcher(work.DispatcherConfig{
		Name: "mail", Next: q.next, Claim: q.claim,
		Renew: func(ctx context.Context, leases []work.Lease) ([]work.Lease, error) {
			return q.store.RenewLeases(ctx, store.WorkRecipients, leases, cfg.Lease)
		},
		Limit: func(key any) (limit int, bad bool) {
			to, _ := key.(dest)
			switch {
			case q.dests.dead(to):
				return 1, true
			case to.kind == toMX:
				return perDomain, false
			case to.kind == toRelay:
				return perRelay, false
			}
			return localJobs, false
		},
		Places: cfg.MaxConns, Spare: (cfg.MaxConns + 1) / 2, Local: localJobs,
		Claimed: 20 * cfg.MaxConns, Batch: 2 * cfg.MaxConns,
		Lease: cfg.Lease, Grace: cfg.Grace, Now: cfg.Now, Log: cfg.Log,
	})
	return q, nil
}

// Run delivers due recipients until ctx ends. It then claims nothing more,
// releases waiting jobs, lets transactions finish for at most Grace, cancels the
// rest, and returns when everything has stopped.
func (q *Queue) Run(ctx context.Context) error {
	defer q.Close()
	wake := q.store.WakeQueue()
	defer wake.Stop()
	q.jobs.Run(ctx, wake.C)
	return nil
}

// RunOnce claims and delivers one batch of due recipients. It returns their
// number when every result is recorded.
func (q *Queue) RunOnce(ctx context.Context) (int, error) { return q.jobs.RunOnce(ctx) }

// Close closes the idle connections.
func (q *Queue) Close() { q.conns.Close() }

// next queues the scheduled mail that is due, and returns when a recipient is due.
func (q *Queue) next(ctx context.Context, busy *work.Busy) (*time.Time, error) {
	if n, err := q.store.ReleaseScheduled(ctx, q.due); err != nil && ctx.Err() == nil {
		q.log.WarnContext(ctx, "scheduled mail cannot be queued", "error", err)
	} else if n > 0 {
		q.log.InfoContext(ctx, "scheduled mail queued", "emails", n)
	}
	if _, err := q.store.ReleaseResumed(ctx); err != nil && ctx.Err() == nil {
		q.log.WarnContext(ctx, "mail of a resumed sender cannot be queued", "error", err)
	}
	due, err := q.store.NextDue(ctx, store.WorkRecipients, busy)
	if due == nil || err != nil {
		return nil, err
	}
	return &due.Time, nil
}

// claim claims due recipients.
func (q *Queue) claim(ctx context.Context, limit int, busy *work.Busy) ([]*work.Job, error) {
	claimed, err := q.store.ClaimRecipients(ctx, limit, q.lease, busy)
	if err != nil || len(claimed) == 0 {
		return nil, err
	}
	send, skip, err := q.splitSuppressed(ctx, claimed)
	ended := resultSuppressed
	if err != nil { // the suppressed recipients are unknown
		q.log.WarnContext(ctx, "suppressions cannot be read", "error", err)
		send, skip, ended = nil, claimed, resultLocal
	}
	jobs := q.work(q.jobsOf(send), q.deliver)
	return append(jobs, q.work(q.jobsOf(skip), func(_ context.Context, j *job) outcome { return sameOutcome(j, ended) })...), nil
}

// work returns the jobs as the dispatcher sees them.
func (q *Queue) work(jobs []*job, attempt func(context.Context, *job) outcome) []*work.Job {
	all := make([]*work.Job, len(jobs))
	for i, j := range jobs {
		j.work = &work.Job{Key: j.dest, Account: j.rcpts[0].AccountID, Local: !j.dest.network(), MaxTime: j.maxTime()}
		for _, r := range j.rcpts {
			j.work.Leases = append(j.work.Leases, work.Lease{Row: r.Seq, Fence: r.Fence})
			if !slices.Contains(j.work.Names, any(r.Domain)) {
				j.work.Names = append(j.work.Names, r.Domain)
			}
		}
		j.work.Attempt = func(ctx context.Context) func(context.Context) {
			j.began = time.Now() // only to measure the duration
			o := attempt(ctx, j)
			return func(ctx context.Context) { q.record(ctx, j, o) }
		}
		j.work.Release = func(ctx context.Context) { q.record(ctx, j, sameOutcome(j, resultUntried)) }
		all[i] = j.work
	}
	return all
}
