package handlers_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// moments is the context of a wait. It counts how often the wait and the
// database driver check for the end, and runs a function at the n-th check.
type moments struct {
	context.Context
	asked atomic.Int64
	n     int64
	then  func()
}

// Done implements context.Context.
func (m *moments) Done() <-chan struct{} {
	if m.asked.Add(1) == m.n {
		arrived := make(chan struct{})
		go func() {
			defer close(arrived)
			m.then()
		}()
		select {
		case <-arrived:
		case <-time.After(100 * time.Millisecond): // database/sql checks some ends with a lock that the message needs too
		}
	}
	return m.Context.Done()
}

// watch gives the next waits a context that m watches.
func (s *server) watch(m *moments) {
	s.waitContext.Store(func(ctx context.Context) context.Context {
		m.Context = ctx
		return m
	})
}

// A message arrives at each point of a wait in turn: before it subscribes,
// between any two steps of its query, and while it sleeps. The wait returns at
// once, not only at its end (row H15).
func TestArrivalAtEachMomentOfAWait(t *testing.T) {
	s := serve(t)
	dry := &moments{}
	s.watch(dry)
	s.do(t, http.MethodGet, "/v1/inboxes/"+s.newInbox(t).ID+"/messages/wait?timeout=1", "").want(t, http.StatusOK)
	last := dry.asked.Load() // some of them after the timeout
	if last < 10 {
		t.Fatalf("a wait has only %d moments", last)
	}
	for n := range last {
		t.Run(fmt.Sprintf("moment %d", n+1), func(t *testing.T) { s.arriveAt(t, n+1) })
	}
}

// arriveAt stores a message at the n-th check of a wait or, if the wait sleeps
// before that, then.
func (s *server) arriveAt(t *testing.T, n int64) {
	t.Helper()
	in := s.newInbox(t)
	var id atomic.Value
	m := &moments{n: n, then: sync.OnceFunc(func() { id.Store(s.receive(t, in, "Subject: Hi").ID) })}
	s.watch(m)
	w := s.wait(t.Context(), t, in, "timeout=60")
	if m.sleeps(&id) {
		m.then()
	}
	got := w.response(t).str(t, "message.id")
	if m.then(); got != id.Load() {
		t.Errorf("got %s, want %v", got, id.Load())
	}
}

// sleeps reports whether the wait stopped checking before the message arrived.
func (m *moments) sleeps(id *atomic.Value) bool {
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for asked := int64(-1); id.Load() == nil; {
		now := m.asked.Load()
		if now == asked {
			return now < m.n
		}
		asked = now
		<-look.C
	}
	return false
}
