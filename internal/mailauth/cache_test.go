package mailauth

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/dns"
)

// clock is a clock that a test sets.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

func newClock() *clock { return &clock{t: time.Unix(1_800_000_000, 0)} }

func TestCacheRemembers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		asked string
		life  time.Duration // TTL of the result
	}{
		{"a result", "txt.example.", time.Minute},
		{"that a name does not exist", "nothing.example.", time.Minute},
		{"a failure, for a short time", "trouble.example.", 5 * time.Second},
		{"no result that is too large", "large.example.", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			z := parseZone(t, "txt.example TXT hello\ntrouble.example FAIL\nlarge.example TXT "+strings.Repeat("x", maxResultBytes))
			clock := newClock()
			c := NewCache(z, clock.now)
			first, err := c.LookupTXT(t.Context(), tt.asked)
			again, err2 := c.LookupTXT(t.Context(), tt.asked)
			if fmt.Sprint(first, err) != fmt.Sprint(again, err2) {
				t.Errorf("%v %v, then %v %v", first, err, again, err2)
			}
			if tt.life == 0 {
				if len(z.asked) != 2 {
					t.Errorf("%d questions, want 2", len(z.asked))
				}
				return
			}
			clock.pass(tt.life - time.Second)
			_, _ = c.LookupTXT(t.Context(), tt.asked)
			if len(z.asked) != 1 {
				t.Errorf("%d questions before its time is over", len(z.asked))
			}
			clock.pass(time.Second)
			_, _ = c.LookupTXT(t.Context(), tt.asked)
			if len(z.asked) != 2 {
				t.Errorf("%d questions, want another after its time", len(z.asked))
			}
		})
	}
}

// Identical concurrent lookups are made once and continue after the first
// caller returns.
func TestCacheAsksOnce(t *testing.T) {
	t.Parallel()
	r := &held{entered: make(chan struct{}), release: make(chan struct{})}
	c := NewCache(r, nil)
	leaving, leave := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, err := c.LookupTXT(leaving, "a.example.")
		left <- err
	}()
	<-r.entered
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if got, err := c.LookupTXT(t.Context(), "a.example."); err != nil || len(got) != 1 {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("the cancelled call got %v", err)
	}
	close(r.release)
	all.Wait()
	if n := r.asked.Load(); n != 1 {
		t.Errorf("%d questions", n)
	}
}

// held is a resolver that returns TXT records once released.
type held struct {
	dns.Resolver
	asked            atomic.Int64
	entered, release chan struct{}
}

func (h *held) LookupTXT(ctx context.Context, _ string) ([]string, error) {
	if h.asked.Add(1) == 1 {
		close(h.entered)
	}
	select {
	case <-h.release:
		return []string{"hello"}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	c := NewCache(parseZone(t, "kept.example TXT hello"), newClock().now)
	for i := range 3 * maxResults {
		_, _ = c.LookupTXT(t.Context(), fmt.Sprintf("n%d.example.", i))
	}
	if n := len(c.results); n > maxResults {
		t.Errorf("%d results are cached", n)
	}
}

// When the DNS is down, messages do not wait long for it. Normal timeouts
// return when it is up again.
func TestCacheShortensTimeoutsOfADeadServer(t *testing.T) {
	t.Parallel()
	r := &deaf{dead: "."}
	c := NewCache(r, newClock().now)
	for i := range downAfter + 1 {
		_, _ = c.LookupTXT(t.Context(), fmt.Sprintf("n%d.example.", i))
	}
	if r.patience > downTimeout {
		t.Errorf("still waits for %s", r.patience)
	}
	r.dead = "slow"
	for _, name := range []string{"a.example.", "b.example."} {
		if got, err := c.LookupTXT(t.Context(), name); err != nil || len(got) != 1 {
			t.Errorf("%v, %v after recovery", got, err)
		}
	}
	if r.patience <= downTimeout {
		t.Errorf("waits for %s after recovery", r.patience)
	}
}

// A6: many names of one domain with slow servers do not stop lookups for other
// domains.
func TestSlowNamesDoNotSilenceOthers(t *testing.T) {
	t.Parallel()
	c := NewCache(&deaf{dead: "slow"}, newClock().now)
	for i := range 2 * downAfter {
		_, _ = c.LookupTXT(t.Context(), fmt.Sprintf("n%d.slow.example.", i))
	}
	if got, err := c.LookupTXT(t.Context(), "other.example."); err != nil || len(got) != 1 {
		t.Errorf("%v, %v", got, err)
	}
}

// deaf is a resolver that times out for names that contain "dead".
type deaf struct {
	dns.Resolver
	dead     string
	patience time.Duration // of the last lookup
}

func (d *deaf) LookupTXT(ctx context.Context, name string) ([]string, error) {
	until, _ := ctx.Deadline()
	d.patience = time.Until(until)
	if strings.Contains(name, d.dead) {
		return nil, &net.DNSError{Err: "i/o timeout", IsTimeout: true}
	}
	return []string{"hello"}, nil
}
