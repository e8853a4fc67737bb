package outbound

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Pool keeps connections that are in order for the next mail to the same
// server. It holds at most max of them; the one that has waited longest goes
// first. One that had as many mails as it may is left.
type Pool struct {
	Max   int
	Mails int

	mu      sync.Mutex
	idle    []*idlePeer // in the order in which they came back
	closed  bool
	leaving sync.WaitGroup // timers that may still close a connection
}

type idlePeer struct {
	*Peer
	timer *time.Timer
}

// Take returns an idle connection to at that still answers, lent to ctx, or
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

// pick removes the connection to at that came back last: the others may then
// grow old.
func (l *Pool) pick(at Endpoint) *Peer {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, p := range slices.Backward(l.idle) { // removing the i-th moves none before it
		if p.At == at && l.remove(i) {
			return p.Peer
		}
	}
	return nil
}

// remove takes the i-th connection out, unless its timer is about to.
func (l *Pool) remove(i int) bool {
	p := l.idle[i]
	l.idle = append(l.idle[:i], l.idle[i+1:]...)
	if !p.timer.Stop() {
		return false
	}
	l.leaving.Done()
	return true
}

// Put takes back a connection, or closes it when it is of no more use.
func (l *Pool) Put(p *Peer) {
	if p.Broken || p.Mails >= p.MostMails(l.Mails) || !p.detach() {
		p.quit()
		return
	}
	if old := l.keep(p); old != nil {
		old.quit()
	}
}

// keep stores p and returns what has to go for it, if anything.
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
	for i, p := range l.idle {
		if p == in {
			l.idle = append(l.idle[:i], l.idle[i+1:]...)
			return
		}
	}
}

// Close closes all idle connections, and those that come back from now on.
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
