package mailauth

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"time"

	"github.com/postroom/postroom/internal/message"
)

// DefaultTimeout is how long the verdicts on one mail may take, all questions
// to the DNS together.
const DefaultTimeout = 10 * time.Second

// Checker judges mail. It is safe for use by many goroutines.
type Checker struct {
	resolver Resolver
	timeout  time.Duration
	now      func() time.Time
}

// NewChecker returns a checker that asks r. timeout bounds each check, 0 is
// DefaultTimeout; now is the clock for the times in signatures, nil is
// time.Now.
func NewChecker(r Resolver, timeout time.Duration, now func() time.Time) *Checker {
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	if now == nil {
		now = time.Now
	}
	return &Checker{resolver: r, timeout: timeout, now: now}
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
// Wait ends it. What needs the DNS is done meanwhile.
type Check struct {
	checker *Checker
	env     Envelope
	ctx     context.Context //nolint:containedctx // of the goroutines of this check alone, which Wait ends
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu       sync.Mutex
	verdicts Verdicts
	spf      chan struct{} // closed when verdicts.SPF is there
	signed   []*dkimCheck
}

// Start begins to judge a mail by its envelope. The caller must call Wait, or
// Stop when the mail is not taken after all.
func (c *Checker) Start(ctx context.Context, env Envelope) *Check {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	k := &Check{checker: c, env: env, ctx: ctx, cancel: cancel, spf: make(chan struct{})}
	k.verdicts = Verdicts{SPF: SPF{Result: TempError, Reason: "not finished"}, DMARC: DMARC{Result: TempError, Reason: "not finished"}}
	k.running.Go(func() {
		defer close(k.spf)
		defer k.recover()
		spf := checkHost(ctx, c.resolver, c.now, env.Client, env.HELO, env.MailFrom)
		k.mu.Lock()
		k.verdicts.SPF = spf
		k.mu.Unlock()
	})
	return k
}

// Read reads the mail: its header, and its body when it is signed. It uses the
// processor and does not wait. It does not keep mail. The error is that of
// mail, or that the header is larger than lim allows; then there are no
// verdicts of DKIM and DMARC.
func (k *Check) Read(mail io.Reader, lim message.Limits) (err error) {
	defer k.recover()
	fields, body, err := message.ReadHeader(mail, lim)
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
	domain, reason := author(fields)
	k.mu.Lock()
	k.signed, k.verdicts.Other = signed, other
	k.mu.Unlock()
	k.running.Go(func() {
		defer k.recover()
		k.ask(domain, reason)
	})
	return nil
}

// ask asks the DNS for what was signed, and judges the whole.
func (k *Check) ask(domain, reason string) {
	d := dmarcCheck{walker: walker{resolver: k.checker.resolver, asked: map[string]dmarcAnswer{}}, domain: domain}
	var asking sync.WaitGroup
	for _, s := range k.signed {
		if s.Result != "" {
			continue
		}
		asking.Go(func() {
			defer k.recover()
			s.verify(k.ctx, k.checker.resolver)
		})
	}
	if domain != "" {
		d.discover(k.ctx)
	}
	asking.Wait()
	<-k.spf

	signatures := make([]Signature, len(k.signed))
	for i, s := range k.signed {
		signatures[i] = s.Signature
		if s.Result == "" { // its verification ended in a panic
			signatures[i].Result, signatures[i].Reason = TempError, "not finished"
		}
	}
	dmarc := DMARC{Result: None, Reason: reason}
	if domain != "" {
		k.mu.Lock()
		spf := k.verdicts.SPF
		k.mu.Unlock()
		dmarc = d.judge(k.ctx, spf, signatures)
	}
	k.mu.Lock()
	k.verdicts.DKIM, k.verdicts.DMARC = signatures, dmarc
	k.mu.Unlock()
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
