// Package quota bounds the received mail that inboxes and accounts hold. It counts
// an owner's mail in the database when the owner first receives some, and from
// then on adds what this process stores. Counting runs in the background, so that
// receiving never waits for it: until the first count an owner is not full.
package quota

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// InAccount is how many times the bound of an inbox an account may hold.
	InAccount = 100
	// fullFor is how long an owner that was counted and is full stays so: mail may
	// have been deleted since.
	fullFor = 30 * time.Second
	// sharedFor is how long a count lasts if other nodes store mail too.
	sharedFor = 5 * time.Minute
	// share is the inverse of the share of time that counting one owner may take.
	share = 50
	// maxOwners bounds the owners in memory. Beyond it, all are counted anew.
	maxOwners = 100_000
	// maxAsked bounds the owners that wait to be counted.
	maxAsked = 1000
)

// Amount is an amount of mail. The zero Amount as a bound means none.
type Amount struct{ Bytes, Messages int64 }

// Owner is an inbox, or an account if Inbox is 0.
type Owner struct{ Account, Inbox int64 }

// Config configures a Counter.
type Config struct {
	// Inbox bounds each inbox.
	Inbox Amount
	// Alone means that no other process stores mail.
	Alone bool
	// Count counts the mail of an owner in the database. It may stop at most messages.
	Count func(ctx context.Context, o Owner, most int64) (Amount, error)
	// Now is the clock.
	Now func() time.Time
	// Log receives failures to count.
	Log *slog.Logger
}

// Counter knows how much mail the owners hold. It is safe for concurrent use.
type Counter struct {
	cfg  Config
	asks chan Owner

	mu   sync.Mutex
	held map[Owner]*holding
}

type holding struct {
	Amount
	since   Amount    // stored since the count began that is running
	counted time.Time // zero before the first count
	took    time.Duration
	asked   bool
}

// New returns a counter. It counts while Run runs.
func New(cfg Config) *Counter {
	return &Counter{cfg: cfg, asks: make(chan Owner, maxAsked), held: map[Owner]*holding{}}
}

// bound returns the bound of an owner.
func (c *Counter) bound(o Owner) Amount {
	if o.Inbox != 0 {
		return c.cfg.Inbox
	}
	return Amount{InAccount * c.cfg.Inbox.Bytes, InAccount * c.cfg.Inbox.Messages}
}

// Full reports whether an inbox or its account holds as much mail as it may.
func (c *Counter) Full(account, inbox int64) bool {
	if c.cfg.Inbox == (Amount{}) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	ofInbox, ofAccount := c.full(Owner{account, inbox}), c.full(Owner{Account: account})
	return ofInbox || ofAccount
}

// full reports whether an owner is full, and asks for a count if one is due.
func (c *Counter) full(o Owner) bool {
	h, bound := c.of(o), c.bound(o)
	full := h.Messages >= bound.Messages || h.Bytes >= bound.Bytes
	due := h.counted.IsZero()
	if full || !c.cfg.Alone {
		lasts := sharedFor
		if full {
			lasts = fullFor
		}
		due = due || c.cfg.Now().Sub(h.counted) >= max(lasts, share*h.took)
	}
	if due && !h.asked {
		select {
		case c.asks <- o:
			h.asked = true
		default: // a later message asks again
		}
	}
	return full
}

func (c *Counter) of(o Owner) *holding {
	h := c.held[o]
	if h == nil {
		if len(c.held) >= maxOwners {
			clear(c.held)
		}
		h = &holding{}
		c.held[o] = h
	}
	return h
}

// Add notes a message that was stored.
func (c *Counter) Add(account, inbox, size int64) {
	if c.cfg.Inbox == (Amount{}) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range []Owner{{account, inbox}, {Account: account}} {
		h := c.of(o)
		h.add(Amount{size, 1})
		h.since.add(Amount{size, 1})
	}
}

func (a *Amount) add(more Amount) { a.Bytes, a.Messages = a.Bytes+more.Bytes, a.Messages+more.Messages }

// Run counts owners until ctx ends.
func (c *Counter) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case o := <-c.asks:
			c.count(ctx, o)
		}
	}
}

func (c *Counter) count(ctx context.Context, o Owner) {
	c.mu.Lock()
	c.of(o).since = Amount{}
	c.mu.Unlock()
	begun := time.Now() // only to measure the duration
	found, err := c.cfg.Count(ctx, o, c.bound(o).Messages)
	if err != nil && ctx.Err() == nil {
		c.cfg.Log.WarnContext(ctx, "stored mail not counted", "account", o.Account, "inbox", o.Inbox, "error", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.of(o)
	h.asked = false
	if err != nil {
		return
	}
	// A message that was stored meanwhile may be counted twice, until the next count.
	h.Amount = found
	h.add(h.since)
	h.counted, h.took = c.cfg.Now(), time.Since(begun)
}
