package queue

import (
	"math/rand/v2"
	"time"
)

// destState is what is going on with a destination. One that has jobs, or that
// was found dead, has a state.
//
// A destination is dead when none of its servers answers. For a while its mail is
// then put off without a call, with what the last call found out. After that one
// job at a time finds out whether it is back.
type destState struct {
	waiting, running int
	inside           int // of running: those that have a connection

	reached  uint64    // how often it was
	failures int       // pauses in a row
	until    time.Time // the end of the last one
	response string    // why
}

func (s *destState) idle() bool { return s.running == 0 && s.waiting == 0 }

// held says whether the destination is left alone.
func (s *destState) held(now time.Time) bool { return s.failures > 0 && now.Before(s.until) }

// dead says whether it is to be found out if the destination is back.
func (s *destState) dead(now time.Time) bool { return s.failures > 0 && !now.Before(s.until) }

// limit is how many jobs may run, of the usual number.
func (s *destState) limit(usual int, now time.Time) int {
	if s.dead(now) {
		return 1
	}
	return usual
}

// enter notes that a job is connected to its destination, and leave that it no
// longer uses that connection.
func (d *dispatcher) enter(j *job) { d.connected(j, 1) }
func (d *dispatcher) leave(j *job) { d.connected(j, -1) }

func (d *dispatcher) connected(j *job, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dests[j.dest].inside += n
}

// unreachable notes that a job could not reach its destination. It is not dead
// when another job is connected, or has reached it meanwhile: then it only takes
// fewer connections than we made.
func (d *dispatcher) unreachable(j *job, response string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.dests[j.dest]; s.inside == 0 {
		d.hold(s, j, response)
	}
}

// silent notes that a job was answered no more in the middle of a mail, as others
// that are connected may be too.
func (d *dispatcher) silent(j *job, response string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hold(d.dests[j.dest], j, response)
}

// hold begins a pause, unless there is one, or another job has reached the
// destination since j began. The caller holds the lock.
func (d *dispatcher) hold(s *destState, j *job, response string) {
	now := d.now()
	if s.reached != j.reached || s.held(now) {
		return
	}
	pause := mostHold
	if s.failures < 10 {
		pause = min(firstHold<<s.failures, mostHold)
	}
	s.failures++
	s.until = now.Add(pause + time.Duration((2*rand.Float64()-1)*holdJitter*float64(pause))) //nolint:gosec // no secret
	s.response = response
	d.signal()
}

// reachable notes that a server of the job's destination has answered.
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

// givenUp says whether the job's destination is left alone, and why.
func (d *dispatcher) givenUp(j *job) (response string, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.dests[j.dest]
	return s.response, s.held(d.now())
}

// remember makes room for one more dead destination without jobs, and says
// whether there is. The caller holds the lock.
func (d *dispatcher) remember() bool {
	if len(d.dests) <= maxDead {
		return true
	}
	now := d.now()
	if now.Sub(d.swept) < firstHold {
		return false
	}
	d.swept = now
	for to, s := range d.dests {
		if s.idle() && now.Sub(s.until) > deadLife {
			delete(d.dests, to)
		}
	}
	return len(d.dests) <= maxDead
}
