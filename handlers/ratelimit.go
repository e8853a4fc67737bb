package handlers

import (
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/store"
)

const (
	limitWindow  = 60 * time.Second
	limitCalls   = 600 // calls a key
	limitSends   = 60  // sending calls a key
	limitBadKeys = 60  // calls with a missing or bad key, and file links, an address
)

// sends are the operations that count against limitSends too.
var sends = map[gen.OperationName]bool{
	gen.SendMessageOperation: true, gen.ReplyToMessageOperation: true, gen.ForwardMessageOperation: true, gen.SendDraftOperation: true,
}

// limiter counts calls in windows that begin with the first counted call. It
// counts for this node alone.
type limiter struct {
	now     func() time.Time
	mu      sync.Mutex
	windows map[string]*window
	swept   time.Time
}

type window struct {
	ends time.Time
	n    int
}

func newLimiter(now func() time.Time) *limiter {
	return &limiter{now: now, windows: map[string]*window{}}
}

// budget is what is left of a limit after a call.
type budget struct {
	limit, left int
	reset       int // whole seconds to the end of the window
	refused     bool
}

// take counts one call of who against limit.
func (l *limiter) take(who string, limit int) budget {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweep(now)
	w := l.windows[who]
	if w == nil || !now.Before(w.ends) || w.ends.Sub(now) > limitWindow { // the clock may go back
		w = &window{ends: now.Add(limitWindow)}
		l.windows[who] = w
	}
	b := budget{limit: limit, reset: secondsUntil(w.ends, now), refused: w.n >= limit}
	if !b.refused {
		w.n++
	}
	b.left = limit - w.n
	return b
}

// sweep forgets the windows that have ended, once a window.
func (l *limiter) sweep(now time.Time) {
	if now.Sub(l.swept) < limitWindow && now.After(l.swept) {
		return
	}
	l.swept = now
	for who, w := range l.windows {
		if !now.Before(w.ends) {
			delete(l.windows, who)
		}
	}
}

// limitKey counts a call of k and writes what is left, of the tighter limit,
// into the answer's headers.
func (a *API) limitKey(info *requestInfo, k store.Key, op gen.OperationName) error {
	if !a.cfg.RateLimits {
		return nil
	}
	b := a.limits.take("key/"+k.ID, limitCalls)
	if !b.refused && sends[op] {
		if s := a.limits.take("send/"+k.ID, limitSends); s.refused || s.left < b.left {
			b = s
		}
	}
	if info.w != nil {
		writeBudget(info.w.Header(), b)
	}
	if b.refused {
		return errTooMany(b.limit, b.reset)
	}
	return nil
}

func writeBudget(h http.Header, b budget) {
	h.Set("RateLimit-Limit", strconv.Itoa(b.limit))
	h.Set("RateLimit-Remaining", strconv.Itoa(b.left))
	h.Set("RateLimit-Reset", strconv.Itoa(b.reset))
}

// limitAddress counts a call without a good key against the client's address.
func (a *API) limitAddress(info *requestInfo) *apiError {
	if !a.cfg.RateLimits {
		return nil
	}
	if b := a.limits.take("ip/"+client(info.ip), limitBadKeys); b.refused {
		return errTooMany(b.limit, b.reset)
	}
	return nil
}

// client is who an address belongs to: an IPv6 network of 64 bits is one
// client.
func client(ip netip.Addr) string {
	if ip.Is6() {
		if p, err := ip.Prefix(64); err == nil {
			return p.String()
		}
	}
	return ip.String()
}
