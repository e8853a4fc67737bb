package store

import (
	"sync"
	"time"
)

const (
	// dueSlack is by how much a row may become due earlier than one that was found
	// due before: clocks of nodes differ, and transactions take a while.
	dueSlack = 5 * time.Second
	// lookAllEvery is how often the queue is searched from its beginning, for rows
	// that came with an older time.
	lookAllEvery = 10 * time.Second
)

// dueFrom remembers where the queue begins. An index keeps the entries of rows
// that were sent for as long as a transaction may still want to see them, such
// as that of a backup; a look that began at the first entry would read them all.
type dueFrom struct {
	mu   sync.Mutex
	last time.Time // when the row was due that was found due last
	all  time.Time // when the queue was last searched from its beginning
}

// at returns from which time on to look, which is zero when it is time to search
// the whole queue.
func (d *dueFrom) at(now time.Time) Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	if since := now.Sub(d.all); d.last.IsZero() || since < 0 || since >= lookAllEvery {
		return Time{time.UnixMicro(0)}
	}
	return NewTime(d.last.Add(-dueSlack))
}

// found notes the first row that a look found, or nil, when no domain was left
// out. all says that the look began with the whole queue.
func (d *dueFrom) found(now time.Time, first *Time, all bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if all {
		d.all = now
	}
	if first != nil && (!first.After(now) || first.Before(d.last)) {
		d.last = first.Time
	}
}
