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

// DefaultTimeout is how long the verdicts on one mail may take, all questions
// to the DNS together.
const DefaultTimeout = 10 * time.Second

// Checker judges mail. It is safe for use by many goroutines.
type Checker struct {
	resolver dns.Resolver
	cache    *Cache // resolver, when it is one
	timeout  time.Duration
	now      func() time.Time
}

// NewChecker returns a checker that asks r. timeout bounds each check, 0 is
// DefaultTimeout; now is the clock for the times in signatures, nil is
// time.Now.
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

// Envelope is what the SMTP transaction said.
type Envelope struct {
	Client   netip.Addr // who handed the mail over
	HELO     string     // what the client called itself
	MailFrom string     // reverse-path; "" is the null reverse-path
}

// Verdicts are all that is found out about one mail.
type Verdicts struct {
	SPF   SPF
	DKIM  []Signature // of the first signatures in the header
	Other int         // signatures beyond those, which were not looked at
	DMARC DMARC
	// Fault is a fault of our own, which made the verdicts temperror; nil
	// nearly always.
	Fault error
}

// Signed is the verdict on all the signatures together: Pass when one of them
// passes, and None when there is none, or what is nearest to a pass.
func (v Verdicts) Signed() Result {
	for _, r := range []Result{Pass, TempError, Fail, Policy, PermError} {
		for _, s := range v.DKIM {
			if s.Result == r {
				return r
			}
		}
	}
	return None
}

// Check is one mail being judged. Start begins it, Read gives it the mail, and
// Wait ends it. What needs the DNS is done meanwhile; what a Cache remembers is
// used at once, without a goroutine.
type Check struct {
	checker *Checker
	env     Envelope
	ctx     context.Context //nolint:containedctx // of the goroutines of this check alone, which Wait ends
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu       sync.Mutex
	verdicts Verdicts
	spf      chan struct{} // closed when verdicts.SPF is there; nil when it was at once
}

// Start begins to judge a mail by its envelope. The caller must call Wait, or
// Stop when the mail is not taken after all.
func (c *Checker) Start(ctx context.Context, env Envelope) *Check {
	k := &Check{checker: c, env: env, cancel: func() {}}
	k.verdicts.SPF = SPF{Result: TempError, Reason: "not finished"}
	k.verdicts.DMARC = DMARC{Result: TempError, Reason: "not finished"}
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

// recallSPF evaluates SPF by what is remembered; false when that is not enough.
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
	k.verdicts.SPF = spf
	k.mu.Unlock()
}

// Read reads the mail: its header, and its body when it is signed. It uses the
// processor and does not wait. It does not keep mail. The error is that of
// mail, or that the header is larger than lim allows; then there are no
// verdicts of DKIM and DMARC.
func (k *Check) Read(mail io.Reader, lim mail.Limits) error {
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
		s.judgeBody(k.checker.now())
	}
	k.verdicts.Other = other
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
		k.judge(k.ctx, k.checker.resolver, e)
	})
	return nil
}

// evidence is what Read has found in a mail.
type evidence struct {
	signed         []*dkimCheck
	domain, reason string // of From, or why there is none
}

// recallRest judges by what is remembered; false when that is not enough.
func (k *Check) recallRest(e evidence) bool {
	for _, s := range e.signed {
		if s.Result == "" {
			return false // its key is asked for beside the others
		}
	}
	r := &recall{cache: k.checker.cache}
	verdicts := k.verdicts
	k.judge(k.ctx, r, e)
	if r.missed {
		k.verdicts = verdicts
	}
	return !r.missed
}

// judge asks the DNS for what was signed, and gives DKIM and DMARC.
func (k *Check) judge(ctx context.Context, r dns.Resolver, e evidence) {
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
	spf := k.verdicts.SPF
	k.mu.Unlock()
	signatures := finished(e.signed)
	dmarc := DMARC{Result: None, Reason: e.reason}
	if e.domain != "" {
		dmarc = d.judge(ctx, spf, signatures)
	}
	k.mu.Lock()
	k.verdicts.DKIM, k.verdicts.DMARC = signatures, dmarc
	k.mu.Unlock()
}

// finished returns the verdicts on the signatures. One without is of a
// verification that ended in a panic.
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

// Wait returns the verdicts, at the latest when the time is over.
func (k *Check) Wait() Verdicts {
	k.running.Wait()
	k.cancel()
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.verdicts
}

// Stop ends a check whose verdicts nobody needs. It may be called after Wait.
func (k *Check) Stop() {
	k.cancel()
	k.running.Wait()
}

// recover turns a panic into verdicts that say nothing: a mail is not lost for
// what we cannot judge.
func (k *Check) recover() {
	if p := recover(); p != nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.verdicts.Fault = fmt.Errorf("panic while judging a mail: %v", p)
	}
}
