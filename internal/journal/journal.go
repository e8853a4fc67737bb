// Package journal records requests to the API and refused SMTP sessions, for the
// dashboard.
//
// Recording a request only appends to a buffer in memory; one write every few
// seconds stores the buffer. The number of rows is bounded: when requests come
// faster than Refill for long, only one of Sampled successful ones is recorded, and
// at last none. What a failed write or a crash loses is not recorded again.
package journal

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/postroom/postroom/internal/work"
	"github.com/postroom/postroom/store"
)

const (
	// Burst is how many rows of one kind a node records at once, and Refill how many
	// more each minute: about 300,000 in store.JournalTTL.
	Burst  = 1000
	Refill = 30
	// Sampled is one of how many successful requests is recorded once half of Burst is
	// used.
	Sampled = 20
	// Every is the interval between writes.
	Every = 2 * time.Second
	// longest is the most bytes that are kept of a path or a name.
	longest = 200
	// lastWrite limits the write at shutdown.
	lastWrite = 5 * time.Second
)

// Journal collects what is to be recorded. It is safe for concurrent use.
type Journal struct {
	store *store.Store
	now   func() time.Time
	log   *slog.Logger

	mu       sync.Mutex
	requests []store.APIRequest
	refusals []store.SMTPRefusal
	calls    allowance
	sessions allowance
	passed   int // successful requests since the last one that was recorded as a sample
}

// New returns a Journal. Call Run to write what it collects.
func New(s *store.Store, now func() time.Time, log *slog.Logger) *Journal {
	full := allowance{Burst, now()}
	return &Journal{store: s, now: now, log: log, calls: full, sessions: full}
}

// allowance is how many rows may still be recorded.
type allowance struct {
	left float64
	at   time.Time
}

func (a *allowance) refill(now time.Time) {
	a.left = min(Burst, a.left+max(0, now.Sub(a.at).Minutes())*Refill)
	a.at = now
}

// AddRequest records a request to the API, or leaves it out if there are many.
func (j *Journal) AddRequest(r store.APIRequest) {
	now := j.now()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.calls.refill(now)
	r.OneOf = 1
	if j.calls.left < Burst/2 && r.Status < 400 {
		if j.passed++; j.passed < Sampled {
			return
		}
		j.passed, r.OneOf = 0, Sampled
	}
	if j.calls.left < 1 {
		return
	}
	j.calls.left--
	r.Path, r.CreatedAt = shown(r.Path), store.NewTime(now)
	j.requests = append(j.requests, r)
}

// AddRefusal records an SMTP session, or leaves it out if there are many.
func (j *Journal) AddRefusal(r store.SMTPRefusal) {
	now := j.now()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.sessions.refill(now); j.sessions.left < 1 {
		return
	}
	j.sessions.left--
	r.HELO, r.From, r.To, r.CreatedAt = shown(r.HELO), shown(r.From), shown(r.To), store.NewTime(now)
	j.refusals = append(j.refusals, r)
}

// shown returns text as it may be stored: valid and not too long. A part of a path
// that has an address is left out.
func shown(text string) string {
	if strings.HasPrefix(text, "/") && strings.Contains(text, "@") {
		parts := strings.Split(text, "/")
		for i, part := range parts {
			if strings.Contains(part, "@") {
				parts[i] = "…"
			}
		}
		text = strings.Join(parts, "/")
	}
	return strings.ToValidUTF8(text[:min(len(text), longest)], "")
}

// Run writes what was collected every few seconds until ctx ends, and then once more.
func (j *Journal) Run(ctx context.Context) error {
	work.Every(ctx, Every, j.write)
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWrite)
	defer cancel()
	j.write(last)
	return nil
}

func (j *Journal) write(ctx context.Context) {
	if err := j.Flush(ctx); err != nil && ctx.Err() == nil {
		j.log.WarnContext(ctx, "some requests are not recorded", "error", err)
	}
}

// Flush writes what was collected.
func (j *Journal) Flush(ctx context.Context) error {
	j.mu.Lock()
	requests, refusals := j.requests, j.refusals
	j.requests, j.refusals = nil, nil
	j.mu.Unlock()
	if len(requests) == 0 && len(refusals) == 0 {
		return nil
	}
	return j.store.AddJournal(ctx, requests, refusals)
}
