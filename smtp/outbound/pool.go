package outbound

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Pool keeps idle connections for further messages to the same server. It holds
// at most max connections and closes the oldest first. It does not keep a
// connection that has reached its message limit.
type Pool struct {
	Max int
	// PerConn is the maximum number of transactions of a connection.
	PerConn int

	mu      sync.Mutex
	idle    []*idlePeer // oldest first
	closed  bool
	leaving sync.WaitGroup // timers that may still close a connection
}

type idlePeer struct {
	*Peer
	timer *time.Timer
}

// Take returns an idle connection to at that still responds, bound to ctx, or
// nil.
func (l *Pool) Take(ctx context.Context, at Endpoint) *Peer {
	for {
		p := l.pick(at)
		if p == nil {
			return nil
		}
		p.attach(ctx)
		if p.Reset() == nil {
			return p
		}
		p.quit()
	}
}

// pick removes the connection to at that was returned last, so that the others
// can expire.
func (l *Pool) pick(at Endpoint) *Peer {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, p := range slices.Backward(l.idle) { // removing element i does not move earlier ones
		if p.At == at && l.remove(i) {
			return p.Peer
		}
	}
	return nil
}

// remove removes connection i, unless its timer is about to.
func (l *Pool) remove(i int) bool {
	p := l.idle[i]
	l.idle = append(l.idle[:i], l.idle[i+1:]...)
	if !p.timer.Stop() {
		return false
	}
	l.leaving.Done()
	return true
}

// Put returns a connection to the pool, or closes it if it cannot be reused.
func (l *Pool) Put(p *Peer) {
	if p.Broken || p.Transactions >= p.MaxTransactions(l.PerConn) || !p.detach() {
		p.quit()
		return
	}
	if old := l.keep(p); old != nil {
		old.quit()
	}
}

// keep stores p and returns the connection to close in its place, if any.
func (l *Pool) keep(p *Peer) (old *Peer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.Max == 0 {
		return p
	}
	if len(l.idle) >= l.Max {
		if oldest := l.idle[0]; l.remove(0) {
			old = oldest.Peer
		}
	}
	in := &idlePeer{Peer: p}
	l.leaving.Add(1)
	in.timer = time.AfterFunc(maxIdle, func() {
		defer l.leaving.Done()
		l.forget(in)
		in.quit()
	})
	l.idle = append(l.idle, in)
	return old
}

func (l *Pool) forget(in *idlePeer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.idle = slices.DeleteFunc(l.idle, func(p *idlePeer) bool { return p == in })
}

// Close closes all idle connections, and those that are returned later.
func (l *Pool) Close() {
	l.mu.Lock()
	l.closed = true
	var left []*Peer
	for len(l.idle) > 0 {
		if p := l.idle[0]; l.remove(0) {
			left = append(left, p.Peer)
		}
	}
	l.mu.Unlock()
	var quitting sync.WaitGroup
	for _, p := range left {
		quitting.Go(p.quit)
	}
	quitting.Wait()
	l.leaving.Wait()
}
