package outbound

import (
	"sync"
	"time"
)

// lookups caches results, for example of DNS queries, for a limited time. Errors
// are not cached.
type lookups[T any] struct {
	now  func() time.Time
	life time.Duration

	mu   sync.Mutex
	kept map[string]lookup[T]
}

type lookup[T any] struct {
	value T
	until time.Time
}

func newLookups[T any](now func() time.Time, life time.Duration) *lookups[T] {
	return &lookups[T]{now: now, life: life, kept: map[string]lookup[T]{}}
}

// get returns the cached value of key, or calls ask.
func (l *lookups[T]) get(key string, ask func() (T, error)) (T, error) {
	if v, ok := l.look(key); ok {
		return v, nil
	}
	v, err := ask()
	if err == nil {
		l.keep(key, v)
	}
	return v, err
}

func (l *lookups[T]) look(key string) (T, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	found, ok := l.kept[key]
	if !ok || !l.now().Before(found.until) {
		var none T
		return none, false
	}
	return found.value, true
}

func (l *lookups[T]) keep(key string, v T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.kept) >= maxLookups {
		l.drop()
	}
	l.kept[key] = lookup[T]{v, l.now().Add(l.life)}
}

// drop removes expired entries, or all if none has expired.
func (l *lookups[T]) drop() {
	before := len(l.kept)
	now := l.now()
	for key, found := range l.kept {
		if !now.Before(found.until) {
			delete(l.kept, key)
		}
	}
	if len(l.kept) == before {
		clear(l.kept)
	}
}
