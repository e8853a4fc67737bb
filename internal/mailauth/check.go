package mailauth

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"time"

	"github.com/postroom/postroom/internal/dns"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/mime"
)

// DefaultTimeout limits one check, including all its DNS lookups.
const DefaultTimeout = 10 * time.Second

// Checker authenticates received mail. It is safe for concurrent use.
type Checker struct {
	resolver dns.Resolver
	cache    *Cache // resolver if it is a *Cache, else nil
	timeout  time.Duration
	now      func() time.Time
}

// NewChecker returns a Checker that uses r for DNS lookups. timeout limits each
// check; 0 means DefaultTimeout. now is the clock for the times in signatures;
// nil means time.Now.
func NewChecker(r dns.Resolver, timeout time.Duration, now func() time.Time) *Checker {
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	if now == nil {
		now = time.Now
	}
	cache, _ := r.(*Cache)
	return &Checker{resolver: r, cache: cache, timeout: timeout, now: now}
}

// Envelope holds the facts of the SMTP transaction.
type Envelope struct {
	Client   netip.Addr // address of the SMTP client
	HELO     string     // argument of HELO or EHLO
	MailFrom string     // reverse-path; "" is the null reverse-path
}

// Results holds the authentication results of one message.
type Results struct {
	SPF   SPF
	DKIM  []Signature // the first signatures in the header
	Other int         // number of further signatures, not verified
	DMARC DMARC
	// Fault is an internal error that made results temperror; usually nil.
	Fault error
}

// Signed returns one result for all signatures: the best of them, in the order
// Pass, TempError, Fail, Policy, PermError. It returns None if there are none.
func (v Results) Signed() Result {
	for _, r := range []Result{Pass, TempError, Fail, Policy, PermError} {
		for _, s := range v.DKIM {
			if s.Result == r {
				return r
			}
		}
	}
	return None
}

// Check is the authentication of one message. Start begins it, Read reads the
// message, and Wait returns the results. DNS lookups run in the background;
// cached results are used at once, without a goroutine. A nil Check checks
// nothing and has no results.
type Check struct {
	checker *Checker
	env     Envelope
	ctx     context.Context //nolint:containedctx // of the goroutines of this check alone, which Wait ends
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	results Results
	spf     chan struct{} // closed when results.SPF is set; nil if Start set it
}

// Start begins to authenticate a message by its envelope. The caller must call
// Wait, or Stop if it rejects the message.
func (c *Checker) Start(ctx context.Context, env Envelope) *Check {
	k := &Check{checker: c, env: env, cancel: func() {}}
	k.results.SPF = SPF{Result: TempError, Reason: "not finished"}
	k.results.DMARC = DMARC{Result: TempError, Reason: "not finished"}
	if c.cache == nil || !k.recallSPF(ctx) {
		k.ctx, k.cancel = context.WithTimeout(ctx, c.timeout)
		k.spf = make(chan struct{})
		k.running.Go(func() {
			defer close(k.spf)
			defer k.recover()
			k.setSPF(checkHost(k.ctx, c.resolver, c.now, env.Client, env.HELO, env.MailFrom))
		})
		return k
	}
	k.ctx = ctx
	return k
}

// Envelope returns the envelope of Start.
func (k *Check) Envelope() Envelope { return k.env }

// recallSPF evaluates SPF from cached lookups only. It returns false if one is
// missing.
func (k *Check) recallSPF(ctx context.Context) bool {
	defer k.recover()
	r := &recall{cache: k.checker.cache}
	spf := checkHost(ctx, r, k.checker.now, k.env.Client, k.env.HELO, k.env.MailFrom)
	if r.missed {
		return false
	}
	k.setSPF(spf)
	return true
}

func (k *Check) setSPF(spf SPF) {
	k.mu.Lock()
	k.results.SPF = spf
	k.mu.Unlock()
}

// Read reads the header of a message, and the body if it is signed. It does not
// wait for the DNS and does not retain mail. It returns an error if reading
// mail fails or if the header exceeds lim; then there are no DKIM and DMARC
// results.
func (k *Check) Read(mail io.Reader, lim mail.Limits) error {
	if k == nil {
		return nil
	}
	defer k.recover()
	fields, body, err := mime.ReadHeader(mail, lim)
	if err != nil {
		return fmt.Errorf("read the header: %w", err)
	}
	signed, other := scanSignatures(fields)
	if err := hashBody(body, signed); err != nil {
		return fmt.Errorf("read the body: %w", err)
	}
	for _, s := range signed {
		s.checkBody(k.checker.now())
	}
	k.results.Other = other
	domain, reason := author(fields)
	e := evidence{signed: signed, domain: domain, reason: reason}
	if k.spf == nil && k.recallRest(e) {
		return nil
	}
	if k.spf == nil {
		k.ctx, k.cancel = context.WithTimeout(k.ctx, k.checker.timeout)
	}
	k.running.Go(func() {
		defer k.recover()
		k.evaluate(k.ctx, k.checker.resolver, e)
	})
	return nil
}

// evidence is what Read found in a message.
type evidence struct {
	signed         []*dkimCheck
	domain, reason string // domain of From, or the reason why there is none
}

// recallRest evaluates DKIM and DMARC from cached lookups only. It returns
// false if one is missing.
func (k *Check) recallRest(e evidence) bool {
	for _, s := range e.signed {
		if s.Result == "" {
			return false // its key is looked up concurrently with the others
		}
	}
	r := &recall{cache: k.checker.cache}
	results := k.results
	k.evaluate(k.ctx, r, e)
	if r.missed {
		k.results = results
	}
	return !r.missed
}

// evaluate verifies the signatures and evaluates DMARC, using r for DNS lookups.
func (k *Check) evaluate(ctx context.Context, r dns.Resolver, e evidence) {
	var asking sync.WaitGroup
	for _, s := range e.signed {
		if s.Result != "" {
			continue
		}
		asking.Go(func() {
			defer k.recover()
			s.verify(ctx, r)
		})
	}
	d := dmarcCheck{walker: walker{resolver: r}, domain: e.domain}
	if e.domain != "" {
		d.discover(ctx)
	}
	asking.Wait()
	if k.spf != nil {
		<-k.spf
	}
	k.mu.Lock()
	spf := k.results.SPF
	k.mu.Unlock()
	signatures := finished(e.signed)
	dmarc := DMARC{Result: None, Reason: e.reason}
	if e.domain != "" {
		dmarc = d.evaluate(ctx, spf, signatures)
	}
	k.mu.Lock()
	k.results.DKIM, k.results.DMARC = signatures, dmarc
	k.mu.Unlock()
}

// finished returns the results of the signatures. A verification that panicked
// has no result and becomes TempError.
func finished(checks []*dkimCheck) []Signature {
	out := make([]Signature, len(checks))
	for i, c := range checks {
		out[i] = c.Signature
		if c.Result == "" {
			out[i].Result, out[i].Reason = TempError, "not finished"
		}
	}
	return out
}

// Wait returns the results. It blocks until the check ends or its timeout
// expires.
func (k *Check) Wait() Results {
	if k == nil {
		return Results{}
	}
	k.running.Wait()
	k.cancel()
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.results
}

// Stop cancels a check and discards its results. It may be called after Wait.
func (k *Check) Stop() {
	if k != nil {
		k.cancel()
		k.running.Wait()
	}
}

// recover records a panic in Fault, so that an internal fault does not lose the
// message.
func (k *Check) recover() {
	if p := recover(); p != nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.results.Fault = fmt.Errorf("panic while authenticating a message: %v", p)
	}
}
