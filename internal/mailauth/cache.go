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
	// resultTTL is the TTL of a cached result, including "not found".
	// net.Resolver does not report the TTL of a record.
	resultTTL = time.Minute
	// failureTTL is the TTL of a cached lookup failure.
	failureTTL = 5 * time.Second
	// maxResults is the maximum number of cached results, and maxResultBytes
	// the maximum size of one.
	maxResults     = 8192
	maxResultBytes = 4 << 10
	// questionTimeout limits one lookup.
	questionTimeout = 5 * time.Second
	// maxQuestions limits the concurrent lookups.
	maxQuestions = 256
	// downAfter is the number of consecutive timeouts after which the DNS may
	// be down. Each lookup is then limited to downTimeout until one succeeds or
	// failureTTL has passed. Lookups continue because the timeouts may come
	// from a sender whose own servers are slow on purpose.
	downAfter   = 32
	downTimeout = 500 * time.Millisecond
)

var errPanic = errors.New("the resolver broke down")

// Cache is a Resolver that caches the results of another Resolver for a minute,
// in bounded memory. Identical concurrent lookups are made once. Failures are
// cached for five seconds, so that a DNS outage delays some messages, not all
// of them.
type Cache struct {
	resolver dns.Resolver
	now      func() time.Time
	slots    chan struct{}

	mu       sync.Mutex
	results  map[question]*cached
	timeouts int       // consecutive
	downTill time.Time // lookups use downTimeout until then
}

var _ dns.Resolver = (*Cache)(nil)

type question struct{ kind, name string }

type cached struct {
	done  chan struct{} // closed when the other fields are set
	value any
	err   error
	until time.Time // zero during the lookup
}

// NewCache returns an empty cache for r. A nil now means time.Now.
func NewCache(r dns.Resolver, now func() time.Time) *Cache {
	if now == nil {
		now = time.Now
	}
	return &Cache{resolver: r, now: now, slots: make(chan struct{}, maxQuestions), results: map[question]*cached{}}
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

// lookup returns the result for q from the cache, from a lookup in progress or
// from a new lookup. A lookup continues even if the caller that started it
// returns early.
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

// find returns the entry for q. If mine is true, the entry is new and the
// caller must start the lookup.
func (c *Cache) find(q question) (a *cached, mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if a := c.results[q]; a != nil && (a.until.IsZero() || now.Before(a.until)) {
		return a, false
	}
	if len(c.results) >= maxResults {
		c.drop(now)
	}
	a = &cached{done: make(chan struct{})}
	c.results[q] = a
	return a, true
}

// drop removes expired entries. If the cache is still more than three quarters
// full, it removes other entries too. Lookups in progress stay.
func (c *Cache) drop(now time.Time) {
	for q, a := range c.results {
		if !a.until.IsZero() && !now.Before(a.until) {
			delete(c.results, q)
		}
	}
	for q, a := range c.results {
		if len(c.results) <= maxResults*3/4 {
			return
		}
		if !a.until.IsZero() {
			delete(c.results, q)
		}
	}
}

// patience returns the current timeout for one lookup.
func (c *Cache) patience() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now().Before(c.downTill) {
		return downTimeout
	}
	return questionTimeout
}

// ask calls ask with a timeout and stores its result in a.
func (c *Cache) ask(ctx context.Context, q question, a *cached, ask func(context.Context) (any, error)) {
	ctx, cancel := context.WithTimeout(ctx, c.patience())
	defer cancel()
	var value any
	err := errPanic // replaced unless ask panics
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

func (c *Cache) keep(q question, a *cached, value any, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a.value, a.err = value, err
	now := c.now()
	life := resultTTL
	if err != nil && !dns.IsNotFound(err) {
		life = failureTTL
	}
	a.until = now.Add(life)
	if isTimeout(err) {
		if c.timeouts++; c.timeouts >= downAfter {
			c.downTill = now.Add(failureTTL)
		}
	} else {
		c.timeouts, c.downTill = 0, time.Time{}
	}
	if bytesOf(value) > maxResultBytes {
		delete(c.results, q)
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

// bytesOf estimates the memory that a result takes, in bytes.
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
