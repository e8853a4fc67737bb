// Package recent remembers rows that were looked up a moment ago, until something
// may have changed them.
package recent

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// ttl is how long a row is remembered, in case another process could not report
	// its changes.
	ttl = time.Second
	// maxRows bounds the rows of a kind.
	maxRows = 10000
)

// Changes counts what may have changed a row. It rises after the commit, so what
// was read under an earlier count may be outdated.
type Changes struct {
	count atomic.Int64
	// Off means that nothing is remembered, because other nodes write too.
	Off bool
	// Others returns a number that changes when another process may have changed a
	// row; nil means that none does.
	Others func() int64
}

// version is a state of the rows.
type version struct{ own, others int64 }

func (c *Changes) version() version {
	v := version{own: c.count.Load()}
	if c.Others != nil {
		v.others = c.Others()
	}
	return v
}

// Add says that rows may have changed.
func (c *Changes) Add() { c.count.Add(1) }

// Rows are the rows of one kind, by what they were looked up with.
type Rows[K comparable, V any] struct {
	mu   sync.RWMutex
	rows map[K]row[V]
}

type row[V any] struct {
	value V
	as    version   // before it was read
	at    time.Time // when it was read
}

// Get returns the row of a key: the one that is remembered, or else what read
// returns, which is then remembered. Callers must not change
// what a row points to.
func (r *Rows[K, V]) Get(c *Changes, key K, read func() (V, error)) (V, error) {
	if c.Off {
		return read()
	}
	now, as := time.Now(), c.version()
	if v, ok := r.find(key, as, now); ok {
		return v, nil
	}
	v, err := read()
	if err == nil {
		r.note(key, row[V]{v, as, now})
	}
	return v, err
}

// Find returns the row of a key if it is remembered at a time.
func (r *Rows[K, V]) Find(c *Changes, key K, at time.Time) (V, bool) {
	return r.find(key, c.version(), at)
}

func (r *Rows[K, V]) find(key K, as version, at time.Time) (V, bool) {
	r.mu.RLock()
	known, ok := r.rows[key]
	r.mu.RUnlock()
	return known.value, ok && known.as == as && at.Sub(known.at) < ttl
}

func (r *Rows[K, V]) note(key K, v row[V]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rows == nil || len(r.rows) >= maxRows {
		r.rows = map[K]row[V]{}
	}
	r.rows[key] = v
}
