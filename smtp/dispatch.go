package smtp

import (
	"maps"
	"slices"
	"sync"
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
// than the limits allow: limits.dest for each destination and limits.network or
// limits.local over all. The others wait in the order in which they came; one
// whose destination is busy holds up nobody behind it.
type dispatcher struct {
	limits dispatchLimits

	mu      sync.Mutex
	waiting []*job
	dests   map[dest]*destState
	running map[bool]int // by dest.network
	claimed int          // recipients in waiting and running jobs
	jobs    sync.WaitGroup
	// freed receives when there may be room for jobs that there was none for.
	freed chan struct{}
}

type dispatchLimits struct {
	domain  int // jobs at a time to the servers of one domain
	relay   int // jobs at a time to the relay
	network int // jobs at a time that use the network
	local   int // jobs at a time that do not
	claimed int // recipients that wait or run
}

func (l dispatchLimits) of(d dest) int {
	switch d.kind {
	case toMX:
		return l.domain
	case toRelay:
		return l.relay
	}
	return l.local
}

// destState is what is going on with a destination that has jobs.
type destState struct {
	waiting, running int
	// failed is the last round of claims that was there when the destination
	// could not be reached, and response is why.
	failed   uint64
	response string
}

func newDispatcher(limits dispatchLimits) *dispatcher {
	return &dispatcher{
		limits:  limits,
		dests:   map[dest]*destState{},
		running: map[bool]int{},
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
		d.jobs.Add(1)
	}
	d.waiting = append(d.waiting, jobs...)
	d.start()
}

// start starts what may run. The caller holds the lock.
func (d *dispatcher) start() {
	left := d.waiting[:0]
	for _, j := range d.waiting {
		s, limit, network := d.dests[j.dest], d.limits.of(j.dest), j.dest.network()
		if s.running >= limit || d.running[network] >= d.slots(network) {
			left = append(left, j)
			continue
		}
		if s.waiting == limit {
			d.signal()
		}
		s.waiting--
		s.running++
		d.running[network]++
		go func() {
			j.start()
			d.finish(j)
		}()
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

func (d *dispatcher) finish(j *job) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.dests[j.dest]
	s.running--
	d.running[j.dest.network()]--
	d.forget(j)
	d.start()
}

// forget ends the account of a job. The caller holds the lock.
func (d *dispatcher) forget(j *job) {
	if s := d.dests[j.dest]; s.running == 0 && s.waiting == 0 {
		delete(d.dests, j.dest)
	}
	if d.claimed >= d.limits.claimed {
		d.signal()
	}
	d.claimed -= len(j.rcpts)
	d.jobs.Done()
}

func (d *dispatcher) signal() {
	select {
	case d.freed <- struct{}{}:
	default:
	}
}

// room is how many more recipients may be claimed.
func (d *dispatcher) room() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.limits.claimed - d.claimed
}

// busy are the domains whose destination has enough jobs waiting: what else is
// due for them is better left to a node that has nothing to do.
func (d *dispatcher) busy() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	domains := map[string]struct{}{}
	for _, j := range d.waiting {
		if d.dests[j.dest].waiting < d.limits.of(j.dest) {
			continue
		}
		for _, r := range j.rcpts {
			domains[r.Domain] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(domains))
}

// unreachable notes that a destination could not be reached, as of the last
// round of claims. Jobs of that round and earlier ones need not try as well.
func (d *dispatcher) unreachable(to dest, round uint64, response string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.dests[to]; s != nil {
		s.failed, s.response = max(s.failed, round), response
	}
}

// givenUp says whether a destination was found unreachable after the job was
// claimed, and why.
func (d *dispatcher) givenUp(j *job) (response string, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.dests[j.dest]
	return s.response, s.failed >= j.round
}

// drop gives back the jobs that wait; they will not be run.
func (d *dispatcher) drop() []*job {
	d.mu.Lock()
	defer d.mu.Unlock()
	jobs := d.waiting
	d.waiting = nil
	for _, j := range jobs {
		d.dests[j.dest].waiting--
		d.forget(j)
	}
	return jobs
}

// wait waits until no job waits or runs.
func (d *dispatcher) wait() { d.jobs.Wait() }
