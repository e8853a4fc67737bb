package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
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
	grace     time.Duration
	now       func() time.Time
	onAttempt func(AttemptReport)
	log       *slog.Logger

	dir      *outbound.Directory
	dialer   *outbound.Dialer
	policies *outbound.Policies
	conns    *outbound.Pool
	jobs     *dispatcher
	batch    int
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
		due:       store.DueRules{MailDomain: cfg.Domain, Draft: cfg.DraftOf},
		relay:     cfg.Relay,
		mxPort:    cfg.MXPort,
		lease:     cfg.Lease,
		grace:     cfg.Grace,
		now:       cfg.Now,
		onAttempt: cfg.OnAttempt,
		log:       cfg.Log,
		dir:       outbound.NewDirectory(cfg.Resolver, cfg.Now),
		dialer:    &outbound.Dialer{HELO: cfg.HELO, Timeouts: cfg.Timeouts.OrDefault(), Guard: cfg.Guard, Roots: cfg.RootCAs},
		conns:     &outbound.Pool{Max: cfg.MaxConns, PerConn: cfg.MessagesPerConn},
		batch:     2 * cfg.MaxConns,
	}
	q.policies = outbound.NewPolicies(q.store, q.dir, q.dialer, cfg.PolicyPort, cfg.Now, cfg.Log)
	q.jobs = newDispatcher(dispatchLimits{
		domain:  min(cfg.MaxPerDomain, cfg.MaxConns),
		relay:   min(relayConns, cfg.MaxConns),
		network: cfg.MaxConns,
		spare:   (cfg.MaxConns + 1) / 2,
		local:   localJobs,
		claimed: 20 * cfg.MaxConns,
	}, cfg.Now)
	return q, nil
}

// Run delivers due recipients until ctx ends. It then claims nothing more,
// releases waiting jobs, lets transactions finish for at most Grace, cancels the
// rest, and returns when everything has stopped.
func (q *Queue) Run(ctx context.Context) error {
	defer q.Close()
	wake := q.store.WakeQueue()
	defer wake.Stop()
	deliveries, breakOff := context.WithCancel(context.WithoutCancel(ctx))
	var keeping sync.WaitGroup
	defer keeping.Wait()
	defer breakOff()
	// Short leases that are renewed let another node soon claim the messages of a
	// node that died, however long a delivery may take.
	keeping.Go(func() { work.Every(deliveries, q.lease/renewalsPerLease, q.renewLeases) })
	work.Due(ctx, func(ctx context.Context) time.Duration { return q.round(ctx, deliveries) }, wake.C, q.jobs.freed)
	q.drain(deliveries, breakOff)
	return nil
}

// round claims once and returns when to claim again. While a destination has
// enough jobs waiting, new messages do not wake the queue.
func (q *Queue) round(ctx, deliveries context.Context) time.Duration {
	n, pause, err := q.claim(ctx, deliveries)
	if err != nil && ctx.Err() == nil {
		q.log.WarnContext(ctx, "queue cannot claim recipients", "error", err)
	}
	if err == nil && n > 0 {
		return 0 // there may be more work
	}
	if q.jobs.crowded() {
		work.Pause(ctx, min(pause, crowdedPause), q.jobs.freed)
		return 0
	}
	return pause
}

// RunOnce claims and delivers one batch of due recipients. It returns their
// number when every result is recorded.
func (q *Queue) RunOnce(ctx context.Context) (int, error) {
	n, _, err := q.claim(ctx, ctx)
	q.jobs.wait()
	return n, err
}

// Close closes the idle connections.
func (q *Queue) Close() { q.conns.Close() }

// claim claims due recipients and passes them to the dispatcher. work is the
// context of the deliveries. pause is how long to wait before the next claim.
func (q *Queue) claim(ctx, work context.Context) (n int, pause time.Duration, err error) {
	if n, err := q.store.ReleaseScheduled(work, q.due); err != nil {
		q.log.WarnContext(ctx, "scheduled mail cannot be queued", "error", err)
	} else if n > 0 {
		q.log.InfoContext(ctx, "scheduled mail queued", "emails", n)
	}
	if _, err := q.store.ReleaseResumed(work); err != nil {
		q.log.WarnContext(ctx, "mail of a resumed sender cannot be queued", "error", err)
	}
	room, full := q.jobs.room()
	if room <= 0 {
		return 0, pollEvery, nil
	}
	if len(full) > 0 {
		began := time.Now()
		defer func() { q.jobs.searched(time.Since(began)) }()
	}
	busy := q.jobs.busy()
	due, err := q.store.NextDue(ctx, busy, full...)
	if err != nil || due == nil {
		return 0, pollEvery, err
	}
	now := q.now()
	if wait := due.Sub(now); wait > 0 {
		return 0, min(wait, pollEvery), nil
	}
	// Do not use ctx: if it ended during the claim, the claimed recipients would
	// be unknown and blocked until their lease expires.
	claiming, cancel := context.WithTimeout(work, claimTimeout)
	defer cancel()
	claimed, err := q.store.ClaimRecipients(claiming, min(room, q.batch), q.lease, busy, full...)
	if err != nil || len(claimed) == 0 {
		return 0, pollEvery, err
	}
	send, skip, err := q.splitSuppressed(claiming, claimed)
	if err != nil {
		q.log.WarnContext(ctx, "suppressions cannot be read", "error", err)
		send, skip = nil, claimed
	}
	ended := resultSuppressed
	if err != nil { // the suppressed recipients are unknown
		ended = resultLocal
	}
	q.dispatch(work, q.jobsOf(send), now, func(j *job) outcome { return q.begin(ctx, work, j) })
	q.dispatch(work, q.jobsOf(skip), now, func(j *job) outcome { return sameOutcome(j, ended) })
	return len(claimed), 0, nil
}

// dispatch passes jobs to the dispatcher. claimed is when they were claimed.
func (q *Queue) dispatch(work context.Context, jobs []*job, claimed time.Time, attempt func(*job) outcome) {
	for _, j := range jobs {
		j.attempt = func() outcome { return attempt(j) }
		j.record = func(o outcome) { q.record(work, j, o) }
		j.claim = newClaim(j.rcpts, q.leaseEnd(claimed))
	}
	q.jobs.add(jobs)
}

// begin runs a job, unless ctx ended while the job waited.
func (q *Queue) begin(ctx, work context.Context, j *job) outcome {
	if ctx.Err() != nil {
		return sameOutcome(j, resultUntried)
	}
	return q.deliver(work, j)
}

func (q *Queue) drain(deliveries context.Context, breakOff context.CancelFunc) {
	var releasing sync.WaitGroup
	for _, j := range q.jobs.drop() {
		releasing.Go(func() { q.record(deliveries, j, sameOutcome(j, resultUntried)) })
	}
	work.Drain(q.grace, func() {
		releasing.Wait()
		q.jobs.wait()
	}, func() {
		q.log.WarnContext(deliveries, "deliveries cancelled", "grace", fmt.Sprint(q.grace))
		breakOff()
	})
}
