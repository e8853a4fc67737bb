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

// endpointsFrom remembers where the pending deliveries of each webhook endpoint
// begin. Like the queue's, their index keeps the entries of finished deliveries
// while an old transaction may still read them.
type endpointsFrom struct {
	mu    sync.Mutex
	last  time.Time      // of the last search
	all   time.Time      // of the last search of all deliveries
	older map[int64]Time // the first due delivery of endpoints where that was due before last
}

// at returns the time to search from, and an earlier one for some endpoints. all
// reports that it is time to search all deliveries.
func (d *endpointsFrom) at(now time.Time) (from Time, older map[int64]Time, all bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if since := now.Sub(d.all); d.all.IsZero() || since < 0 || since >= lookAllEvery {
		return Time{}, nil, true
	}
	return NewTime(d.last.Add(-dueSlack)), d.older, false
}

// found records what a search found that began at now.
func (d *endpointsFrom) found(now time.Time, due []DueEndpoint, all bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = now
	if all {
		d.all = now
	}
	older := map[int64]Time{}
	for _, e := range due {
		if e.Due.Before(now.Add(-dueSlack)) {
			older[e.Seq] = e.Due
		}
	}
	d.older = older
}
