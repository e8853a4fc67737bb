package queue

import (
	"math/rand/v2"
	"time"
)

// destState is the state of a destination with jobs, or of an unreachable one.
//
// A destination is unreachable (dead) when none of its servers responds. During a
// pause its jobs are deferred without an attempt, with the last error. After the
// pause, one job at a time tries again.
type destState struct {
	waiting, running int
	inside           int // running jobs that have a connection

	reached  uint64    // number of successful connections
	failures int       // consecutive pauses
	until    time.Time // end of the last pause
	response string    // the last error
}

func (s *destState) idle() bool { return s.running == 0 && s.waiting == 0 }

// held reports whether the destination is in a pause.
func (s *destState) held(now time.Time) bool { return s.failures > 0 && now.Before(s.until) }

// dead reports whether the pause is over and a job should try the destination
// again.
func (s *destState) dead(now time.Time) bool { return s.failures > 0 && !now.Before(s.until) }

// limit returns how many jobs may run; usual is the number for a healthy
// destination.
func (s *destState) limit(usual int, now time.Time) int {
	if s.dead(now) {
		return 1
	}
	return usual
}

// enter records that a job is connected to its destination, and leave that it has
// finished with the connection.
func (d *dispatcher) enter(j *job) { d.connected(j, 1) }
func (d *dispatcher) leave(j *job) { d.connected(j, -1) }

func (d *dispatcher) connected(j *job, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dests[j.dest].inside += n
}

// unreachable records that a job could not connect. The destination is not dead
// if another job is connected or has connected since: then it only accepts fewer
// connections than we opened.
func (d *dispatcher) unreachable(j *job, response string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.dests[j.dest]; s.inside == 0 {
		d.hold(s, j, response)
	}
}

// silent records that a server stopped responding during a transaction, which may
// affect the other connections too.
func (d *dispatcher) silent(j *job, response string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hold(d.dests[j.dest], j, response)
}

// hold begins a pause, unless one is in progress or another job has connected
// since j began. The caller holds the lock.
func (d *dispatcher) hold(s *destState, j *job, response string) {
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
	d.signal()
}

// reachable records that a server of the job's destination has responded.
func (d *dispatcher) reachable(j *job) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.dests[j.dest]
	s.reached++
	if s.failures > 0 {
		s.failures, s.until, s.response = 0, time.Time{}, ""
		d.signal()
	}
}

// givenUp reports whether the job's destination is in a pause, and its last
// error.
func (d *dispatcher) givenUp(j *job) (response string, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.dests[j.dest]
	return s.response, s.held(d.now())
}

// remember makes room for one more dead destination without jobs, and reports
// whether there is any. The caller holds the lock.
func (d *dispatcher) remember() bool {
	if len(d.dests) <= maxDead {
		return true
	}
	now := d.now()
	if now.Sub(d.swept) < firstBackoff {
		return false
	}
	d.swept = now
	for to, s := range d.dests {
		if s.idle() && now.Sub(s.until) > deadTTL {
			delete(d.dests, to)
		}
	}
	return len(d.dests) <= maxDead
}
