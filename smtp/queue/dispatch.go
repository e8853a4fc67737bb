package queue

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// destKind is how mail gets to a destination.
type destKind int

const (
	toMX     destKind = iota // to the servers of a domain
	toRelay                  // all to one server
	toInbox                  // to our own inboxes
	toNobody                 // test mode
)

// dest is where jobs compete for the same connections.
type dest struct {
	kind   destKind
	domain string // of toMX
}

func (d dest) network() bool { return d.kind == toMX || d.kind == toRelay }

// dispatcher runs jobs, each in a goroutine of its own, and no more at a time
// than the limits allow: a number for each destination, and limits.network or
// limits.local over all. The others wait in the order in which they came; one
// whose destination is busy holds up nobody behind it, and destinations that
// were found dead never use more than half of the network's places.
type dispatcher struct {
	limits dispatchLimits
	now    func() time.Time

	mu        sync.Mutex
	waiting   []*job
	dests     map[dest]*destState
	running   map[bool]int // by dest.network
	probing   int          // running jobs of destinations that were found dead
	recording int          // jobs that are not running any more, and not recorded
	swept     time.Time    // when room was last made among the dead
	all       map[*job]struct{}
	claimed   int // recipients in jobs that wait, run or are being recorded
	jobs      sync.WaitGroup
	// freed receives when there may be room for jobs that there was none for.
	freed chan struct{}
}

type dispatchLimits struct {
	domain  int // jobs at a time to the servers of one domain
	relay   int // jobs at a time to the relay
	network int // jobs at a time that use the network
	local   int // jobs at a time that do not
	claimed int // recipients in hand
}

// atLeast is for how many recipients there must be room before more are claimed.
func (l dispatchLimits) atLeast() int { return max(1, l.claimed/10) }

func (l dispatchLimits) of(d dest) int {
	switch d.kind {
	case toMX:
		return l.domain
	case toRelay:
		return l.relay
	}
	return l.local
}

func newDispatcher(limits dispatchLimits, now func() time.Time) *dispatcher {
	return &dispatcher{
		limits:  limits,
		now:     now,
		dests:   map[dest]*destState{},
		running: map[bool]int{},
		all:     map[*job]struct{}{},
		freed:   make(chan struct{}, 1),
	}
}

// add takes jobs and starts those that may run.
func (d *dispatcher) add(jobs []*job) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, j := range jobs {
		if d.dests[j.dest] == nil {
			d.dests[j.dest] = &destState{}
		}
		d.dests[j.dest].waiting++
		d.claimed += len(j.rcpts)
		d.all[j] = struct{}{}
		d.jobs.Add(1)
	}
	d.waiting = append(d.waiting, jobs...)
	d.start()
}

// start starts what may run. The caller holds the lock.
func (d *dispatcher) start() {
	now := d.now()
	left := d.waiting[:0]
	for _, j := range d.waiting {
		s, network := d.dests[j.dest], j.dest.network()
		limit := s.limit(d.limits.of(j.dest), now)
		probe := s.dead(now)
		if s.running >= limit || d.running[network] >= d.slots(network) || probe && d.probing >= max(1, d.limits.network/2) {
			left = append(left, j)
			continue
		}
		if s.waiting == limit {
			d.signal()
		}
		s.waiting--
		s.running++
		d.running[network]++
		if probe {
			d.probing++
		}
		j.reached = s.reached
		go d.run(j, probe)
	}
	clear(d.waiting[len(left):])
	d.waiting = left
}

func (d *dispatcher) slots(network bool) int {
	if network {
		return d.limits.network
	}
	return d.limits.local
}

// run makes the attempt of a job and records the outcome. Its place is another's
// before that, so that connections have work while the database writes.
func (d *dispatcher) run(j *job, probe bool) {
	o := j.attempt()
	early := d.mayRecordLater()
	if early {
		d.vacate(j, probe)
	}
	j.record(o)
	if !early {
		d.vacate(j, probe)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if early {
		d.recording--
	}
	d.forget(j)
}

// mayRecordLater counts a job that gives up its place before its outcome is
// recorded. So may as many as there are connections: what is not recorded when
// the process dies is sent again.
func (d *dispatcher) mayRecordLater() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.recording >= d.limits.network {
		return false
	}
	d.recording++
	return true
}

// vacate gives the place of a job to another one.
func (d *dispatcher) vacate(j *job, probe bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dests[j.dest].running--
	d.running[j.dest.network()]--
	if probe {
		d.probing--
	}
	d.leaveAlone(j.dest)
	d.start()
}

// leaveAlone forgets a destination that has no more jobs, unless it is dead. The
// caller holds the lock.
func (d *dispatcher) leaveAlone(to dest) {
	if s := d.dests[to]; s.idle() && (s.failures == 0 || !d.remember()) {
		delete(d.dests, to)
	}
}

// forget ends the account of a job that is recorded, or given back. The caller
// holds the lock.
func (d *dispatcher) forget(j *job) {
	before := d.free()
	d.claimed -= len(j.rcpts)
	if before < d.limits.atLeast() && d.free() >= d.limits.atLeast() {
		d.signal()
	}
	delete(d.all, j)
	d.jobs.Done()
}

func (d *dispatcher) signal() {
	select {
	case d.freed <- struct{}{}:
	default:
	}
}

// room is how many more recipients may be claimed. It is 0 until there is room
// for a good number: a claim of many costs little more than one of few.
func (d *dispatcher) room() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.free() < d.limits.atLeast() {
		return 0
	}
	return d.free()
}

func (d *dispatcher) free() int { return d.limits.claimed - d.claimed }

// crowded says whether a destination has enough jobs waiting.
func (d *dispatcher) crowded() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	for to, s := range d.dests {
		if s.waiting > 0 && s.waiting >= s.limit(d.limits.of(to), now) {
			return true
		}
	}
	return false
}

// busy are the domains whose destination has enough jobs waiting: what else is
// due for them is better left to a node that has nothing to do.
func (d *dispatcher) busy() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	domains := map[string]struct{}{}
	for _, j := range d.waiting {
		if s := d.dests[j.dest]; s.waiting < s.limit(d.limits.of(j.dest), now) {
			continue
		}
		for _, r := range j.rcpts {
			domains[r.Domain] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(domains))
}

// held are the jobs that wait, run or are being recorded.
func (d *dispatcher) held() []*job {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Keys(d.all))
}

// drop gives back the jobs that wait; they will not be run.
func (d *dispatcher) drop() []*job {
	d.mu.Lock()
	defer d.mu.Unlock()
	jobs := d.waiting
	d.waiting = nil
	for _, j := range jobs {
		d.dests[j.dest].waiting--
		d.leaveAlone(j.dest)
		d.forget(j)
	}
	return jobs
}

// wait waits until no job is in hand.
func (d *dispatcher) wait() { d.jobs.Wait() }
