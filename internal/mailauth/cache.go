package mailauth

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/postroom/postroom/internal/dns"
)

const (
	// answerLife is how long an answer is used again, also that there is none.
	// net.Resolver does not tell what the zone allows.
	answerLife = time.Minute
	// troubleLife is how long a question that was not answered is not repeated.
	troubleLife = 5 * time.Second
	// maxAnswers is how many answers are kept, and maxAnswerBytes how large one
	// of them may be.
	maxAnswers     = 8192
	maxAnswerBytes = 4 << 10
	// questionTimeout is how long one question may take.
	questionTimeout = 5 * time.Second
	// maxQuestions is how many are under way at a time.
	maxQuestions = 256
	// downAfter is how many timeouts in a row mean that nobody may be answering at
	// all. Then mail does not wait long: for as long as troubleLife, or until there
	// is an answer, a question takes no more than downTimeout. They may also be of
	// somebody whose own servers are slow on purpose, so that nobody is judged:
	// what others have to say is still asked.
	downAfter   = 32
	downTimeout = 500 * time.Millisecond
)

var errPanic = errors.New("the resolver broke down")

// Cache is a Resolver that remembers what another one said, for a minute, within
// bounded memory. The same question asked many times at once is asked once.
// Trouble is remembered for five seconds, so that a DNS that is down delays
// some mail and not all of it.
type Cache struct {
	resolver dns.Resolver
	now      func() time.Time
	slots    chan struct{}

	mu       sync.Mutex
	answers  map[question]*answer
	timeouts int       // in a row
	downTill time.Time // nobody is waited for long before
}

var _ dns.Resolver = (*Cache)(nil)

type question struct{ kind, name string }

type answer struct {
	done  chan struct{} // closed when the rest is there
	value any
	err   error
	until time.Time // zero while it is being asked
}

// NewCache returns an empty cache. now is the clock; nil is time.Now.
func NewCache(r dns.Resolver, now func() time.Time) *Cache {
	if now == nil {
		now = time.Now
	}
	return &Cache{resolver: r, now: now, slots: make(chan struct{}, maxQuestions), answers: map[question]*answer{}}
}

// LookupTXT implements Resolver.
func (c *Cache) LookupTXT(ctx context.Context, name string) ([]string, error) {
	return lookup(ctx, c, question{"TXT", name}, func(ctx context.Context) ([]string, error) {
		return c.resolver.LookupTXT(ctx, name)
	})
}

// LookupMX implements Resolver.
func (c *Cache) LookupMX(ctx context.Context, name string) ([]*net.MX, error) {
	return lookup(ctx, c, question{"MX", name}, func(ctx context.Context) ([]*net.MX, error) {
		return c.resolver.LookupMX(ctx, name)
	})
}

// LookupNetIP implements Resolver.
func (c *Cache) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	return lookup(ctx, c, question{network, host}, func(ctx context.Context) ([]netip.Addr, error) {
		return c.resolver.LookupNetIP(ctx, network, host)
	})
}

// LookupAddr implements Resolver.
func (c *Cache) LookupAddr(ctx context.Context, addr string) ([]string, error) {
	return lookup(ctx, c, question{"PTR", addr}, func(ctx context.Context) ([]string, error) {
		return c.resolver.LookupAddr(ctx, addr)
	})
}

// lookup returns the answer to q: one that is remembered, one that somebody
// else is waiting for, or a new one. A question goes on when the one who asked
// it first goes away.
func lookup[T any](ctx context.Context, c *Cache, q question, ask func(context.Context) (T, error)) (T, error) {
	a, mine := c.find(q)
	if mine {
		go c.ask(context.WithoutCancel(ctx), q, a, func(ctx context.Context) (any, error) { return ask(ctx) })
	}
	select {
	case <-a.done:
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
	value, _ := a.value.(T) // nil beside an error
	return value, a.err
}

// find returns the answer to q, or one that the caller is to ask for.
func (c *Cache) find(q question) (a *answer, mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if a := c.answers[q]; a != nil && (a.until.IsZero() || now.Before(a.until)) {
		return a, false
	}
	if len(c.answers) >= maxAnswers {
		c.drop(now)
	}
	a = &answer{done: make(chan struct{})}
	c.answers[q] = a
	return a, true
}

// drop makes room: what is too old goes, and when that is not a quarter, any
// others too. What is being asked stays.
func (c *Cache) drop(now time.Time) {
	for q, a := range c.answers {
		if !a.until.IsZero() && !now.Before(a.until) {
			delete(c.answers, q)
		}
	}
	for q, a := range c.answers {
		if len(c.answers) <= maxAnswers*3/4 {
			return
		}
		if !a.until.IsZero() {
			delete(c.answers, q)
		}
	}
}

// patience is how long a question may take now.
func (c *Cache) patience() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now().Before(c.downTill) {
		return downTimeout
	}
	return questionTimeout
}

// ask asks, and keeps what it is told.
func (c *Cache) ask(ctx context.Context, q question, a *answer, ask func(context.Context) (any, error)) {
	ctx, cancel := context.WithTimeout(ctx, c.patience())
	defer cancel()
	var value any
	err := errPanic // unless something else is found out
	defer func() {
		if recover() != nil {
			value = nil
		}
		c.keep(q, a, value, err)
	}()
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
		value, err = ask(ctx)
	case <-ctx.Done():
		err = ctx.Err()
	}
}

func (c *Cache) keep(q question, a *answer, value any, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a.value, a.err = value, err
	now := c.now()
	life := answerLife
	if err != nil && !dns.IsNotFound(err) {
		life = troubleLife
	}
	a.until = now.Add(life)
	if isTimeout(err) {
		if c.timeouts++; c.timeouts >= downAfter {
			c.downTill = now.Add(troubleLife)
		}
	} else {
		c.timeouts, c.downTill = 0, time.Time{}
	}
	if bytesOf(value) > maxAnswerBytes {
		delete(c.answers, q)
	}
	close(a.done)
}

func isTimeout(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout()
}

// bytesOf is about how much memory an answer takes.
func bytesOf(value any) int {
	n := 0
	switch v := value.(type) {
	case []string:
		for _, s := range v {
			n += len(s) + 16
		}
	case []*net.MX:
		for _, mx := range v {
			n += len(mx.Host) + 32
		}
	case []netip.Addr:
		n = 24 * len(v)
	}
	return n
}
