package queue

import (
	"maps"
	"slices"
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

// dispatcher runs each job in its own goroutine, within limits per destination
// and in total (limits.network or limits.local). Other jobs wait in order. A job
// with a busy destination does not delay later jobs, and unreachable destinations
// use at most half of the network limit of an account: see share.go.
type dispatcher struct {
	limits dispatchLimits
	now    func() time.Time

	mu        sync.Mutex
	waiting   []*job
	dests     map[dest]*destState
	running   map[bool]int  // running jobs, by dest.network
	accounts  map[int64]int // running jobs on the network, by account
	probing   map[int64]int // those of unreachable destinations
	recording int           // jobs that have finished but are not recorded
	swept     time.Time     // last cleanup of unreachable destinations
	all       map[*job]struct{}
	claimed   int       // recipients in waiting jobs, and see weight
	short     time.Time // since when there has been too little room for more, or zero
	jobs      sync.WaitGroup
	// freed receives a value when there may be room for more jobs.
	freed chan struct{}
}

type dispatchLimits struct {
	domain  int // concurrent jobs per domain
	relay   int // concurrent jobs to the relay
	network int // concurrent jobs on the network of one account
	spare   int // further concurrent jobs on the network, for other accounts
	local   int // concurrent local jobs
	claimed int // claimed recipients
}

// atLeast returns for how many recipients there must be room before more are
// claimed.
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
		running: map[bool]int{}, accounts: map[int64]int{}, probing: map[int64]int{},
		all:   map[*job]struct{}{},
		freed: make(chan struct{}, 1),
	}
}

// add adds jobs and starts those that may run.
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

// start starts all jobs that may run. The caller holds the lock.
func (d *dispatcher) start() {
	now := d.now()
	left := d.waiting[:0]
	for _, j := range d.waiting {
		s, network := d.dests[j.dest], j.dest.network()
		limit := s.limit(d.limits.of(j.dest), now)
		probe := s.dead(now)
		if s.running >= limit || d.full(j) || probe && d.probing[j.account()] >= max(1, d.limits.network/2) {
			left = append(left, j)
			continue
		}
		if s.waiting == limit {
			d.signal()
		}
		s.waiting--
		s.running++
		d.running[network]++
		if network {
			d.accounts[j.account()]++
		}
		if probe {
			d.probing[j.account()]++
		}
		d.count(d.weight(j) - len(j.rcpts))
		j.reached, j.started = s.reached, now
		go d.run(j, probe)
	}
	clear(d.waiting[len(left):])
	d.waiting = left
}

// run performs the attempt of a job and records the result. It frees the job's
// slot before recording, so that connections are used while the database writes.
func (d *dispatcher) run(j *job, probe bool) {
	j.began = time.Now() // only to measure the duration
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

// mayRecordLater counts a job that frees its slot before its result is recorded,
// and reports whether it may. At most as many jobs as there are connections may,
// because unrecorded results are sent again after a crash.
func (d *dispatcher) mayRecordLater() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.recording >= d.limits.network {
		return false
	}
	d.recording++
	return true
}

// vacate frees the slot of a job.
func (d *dispatcher) vacate(j *job, probe bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dests[j.dest].running--
	d.running[j.dest.network()]--
	if j.dest.network() {
		subtract(d.accounts, j.account())
	}
	if probe {
		subtract(d.probing, j.account())
	}
	d.leaveAlone(j.dest)
	d.start()
}

// leaveAlone forgets a destination without jobs, unless it is unreachable. The
// caller holds the lock.
func (d *dispatcher) leaveAlone(to dest) {
	if s := d.dests[to]; s.idle() && (s.failures == 0 || !d.remember()) {
		delete(d.dests, to)
	}
}

// forget removes a job that is recorded or released. The caller holds the lock.
func (d *dispatcher) forget(j *job) {
	if j.started.IsZero() {
		d.count(-len(j.rcpts))
	} else {
		d.count(-d.weight(j))
	}
	delete(d.all, j)
	d.jobs.Done()
}

// count adds n to the claimed recipients.
func (d *dispatcher) count(n int) {
	before := d.free()
	d.claimed += n
	if before < d.limits.atLeast() && d.free() >= d.limits.atLeast() {
		d.signal()
	}
}

func (d *dispatcher) signal() {
	select {
	case d.freed <- struct{}{}:
	default:
	}
}

// room returns how many more recipients may be claimed, not counting those of the
// accounts in full. It returns 0 for small numbers, because a large claim costs
// little more than a small one. It also ends attempts that take too long.
func (d *dispatcher) room() (n int, full []int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	d.endSlow(now)
	if d.free() >= d.limits.atLeast() {
		d.short = time.Time{}
		return d.free(), nil
	}
	if d.short.IsZero() {
		d.short = now
	}
	if now.Sub(d.short) < shortFor {
		return 0, nil
	}
	d.short = now
	return d.spareRoom()
}

func (d *dispatcher) free() int { return d.limits.claimed - d.claimed }

// crowded reports whether a destination has enough waiting jobs.
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

// busy returns the domains whose destination has enough waiting jobs. Other nodes
// should claim further recipients of these domains.
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

// held returns the jobs that wait, run or are being recorded.
func (d *dispatcher) held() []*job {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Keys(d.all))
}

// drop removes and returns the waiting jobs.
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

// wait waits until all jobs are done.
func (d *dispatcher) wait() { d.jobs.Wait() }
