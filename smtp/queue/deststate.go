package queue

import (
	"math/rand/v2"
	"sync"
	"time"
)

// destKind is the kind of a destination.
type destKind int

const (
	toMX       destKind = iota // the MX hosts of a domain
	toRelay                    // the relay
	toInbox                    // our own inboxes
	toTestMode                 // simulated
)

// dest is a destination. Jobs with the same destination share its connection
// limit.
type dest struct {
	kind   destKind
	domain string // of toMX
}

func (d dest) network() bool { return d.kind == toMX || d.kind == toRelay }

// destinations knows which destinations respond.
type destinations struct {
	now func() time.Time

	mu    sync.Mutex
	all   map[dest]*destState
	swept time.Time // last cleanup of unreachable destinations
}

// destState is the state of a destination with running jobs, or of an unreachable one.
//
// A destination is unreachable (dead) when none of its servers responds. During a
// pause its jobs are deferred without an attempt, with the last error. After the
// pause, one job at a time tries again.
type destState struct {
	running int
	inside  int // running jobs that have a connection

	reached  uint64    // number of successful connections
	failures int       // consecutive pauses
	until    time.Time // end of the last pause
	response string    // the last error
}

// held reports whether the destination is in a pause.
func (s *destState) held(now time.Time) bool { return s.failures > 0 && now.Before(s.until) }

// dead reports whether the pause of a destination is over and one job should try it
// again.
func (d *destinations) dead(to dest) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.all[to]
	return s != nil && s.failures > 0 && !d.now().Before(s.until)
}

// begin records that a job runs, and end that it has ended.
func (d *destinations) begin(j *job) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.all[j.dest]
	if s == nil {
		s = &destState{}
		d.all[j.dest] = s
	}
	s.running++
	j.reached = s.reached
}

func (d *destinations) end(j *job) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.all[j.dest]
	s.running--
	if s.running == 0 && (s.failures == 0 || !d.remember()) {
		delete(d.all, j.dest)
	}
}

// enter records that a job is connected to its destination, and leave that it has
// finished with the connection.
func (d *destinations) enter(j *job) { d.connected(j, 1) }
func (d *destinations) leave(j *job) { d.connected(j, -1) }

func (d *destinations) connected(j *job, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all[j.dest].inside += n
}

// unreachable records that a job could not connect. The destination is not dead
// if another job is connected or has connected since: then it only accepts fewer
// connections than we opened.
func (d *destinations) unreachable(j *job, response string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.all[j.dest]; s.inside == 0 {
		d.hold(s, j, response)
	}
}

// silent records that a server stopped responding during a transaction, which may
// affect the other connections too.
func (d *destinations) silent(j *job, response string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hold(d.all[j.dest], j, response)
}

// hold begins a pause, unless one is in progress or another job has connected
// since j began. The caller holds the lock.
func (d *destinations) hold(s *destState, j *job, response string) {
	now := d.now()
	if s.reached != j.reached || s.held(now) {
		return
	}
	pause := maxBackoff
	if s.failures < 10 {
		pause = min(firstBackoff<<s.failures, maxBackoff)
	}
	s.failures++
	s.until = now.Add(pause + time.Duration((2*rand.Float64()-1)*backoffJitter*float64(pause))) //nolint:gosec // no secret
	s.response = response
}

// reachable records that a server of the job's destination has responded.
func (d *destinations) reachable(j *job) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.all[j.dest]
	s.reached++
	s.failures, s.until, s.response = 0, time.Time{}, ""
}

// givenUp reports whether the job's destination is in a pause, and its last
// error.
func (d *destinations) givenUp(j *job) (response string, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.all[j.dest]
	return s.response, s.held(d.now())
}

// remember makes room for one more dead destination without jobs, and reports
// whether there is any. The caller holds the lock.
func (d *destinations) remember() bool {
	if len(d.all) <= maxDead {
		return true
	}
	now := d.now()
	if now.Sub(d.swept) < firstBackoff {
		return false
	}
	d.swept = now
	for to, s := range d.all {
		if s.running == 0 && now.Sub(s.until) > deadTTL {
			delete(d.all, to)
		}
	}
	return len(d.all) <= maxDead
}
