package work

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

const (
	// pollEvery is how often a dispatcher looks for work without a notification.
	pollEvery = time.Second
	// crowdedPause is how long it ignores notifications while a key has as many jobs
	// as it can take.
	crowdedPause = 50 * time.Millisecond
	// storeTimeout limits one claim or renewal.
	storeTimeout = 10 * time.Second
	// renewalsPerLease is how often leases are renewed while one lasts. Two renewals
	// may fail before another node may claim the work.
	renewalsPerLease = 4
	// shortFor is how long there must be no room for more work before the dispatcher
	// looks for that of other accounts. The searches take at most a tenth of the time.
	shortFor = time.Second
	// crowdedTime limits an attempt while accounts that have no place wait for one.
	crowdedTime = time.Minute
)

// DispatcherConfig configures a Dispatcher. All fields but Spare and Local are
// required.
type DispatcherConfig struct {
	Name string // of the work, for the log
	// Next returns when work that is not busy is due, or nil if there is none.
	Next func(ctx context.Context, busy *Busy) (*time.Time, error)
	// Claim claims up to limit rows of work that is due and not busy, and returns
	// their jobs.
	Claim func(ctx context.Context, limit int, busy *Busy) ([]*Job, error)
	// Renew renews leases, and returns those that are no more.
	Renew func(ctx context.Context, leases []Lease) (lost []Lease, err error)
	// Limit returns how many jobs of a key may run. bad says that the key may occupy
	// its places for long: bad keys use at most half of the places of an account.
	Limit func(key any) (limit int, bad bool)

	// Places is how many jobs of one account may run, and Spare how many more for
	// other accounts. Local is how many local jobs may run.
	Places, Spare, Local int
	// Claimed is how many rows may be claimed and wait, and Batch how many one claim
	// takes.
	Claimed, Batch int
	// Lease is how long a claim lasts; Run renews it. Grace is how long Run waits for
	// attempts after its end.
	Lease, Grace time.Duration
	Now          func() time.Time
	Log          *slog.Logger
}

// Dispatcher claims work and does it, each job in its own goroutine, within limits
// by key and by account. Among those that wait, the key and account that was
// served least recently comes first.
//
// An account whose jobs hang must not delay the jobs of other accounts, and an
// account alone must not be slowed down. So the jobs of one account use Places at
// most, and when that many are used by any accounts, there are Spare more. An
// account may take a spare one while it uses fewer places than are left. Each
// account thus leaves at least half of the spare places that it found to the next
// ones, rounded down. When all places are used, and an account that uses none
// waits, an attempt that lasts longer than crowdedTime ends as if it had timed out.
//
// Likewise, Claimed rows of any accounts are claimed, and half as many more of
// accounts that have fewer waiting than are left.
type Dispatcher struct {
	cfg   DispatcherConfig
	freed chan struct{} // receives when there may be room for more jobs

	mu        sync.Mutex
	lines     []*line // those that wait, the one served least recently first
	keys      map[any]*keyJobs
	accounts  map[int64]*accountJobs
	running   map[bool]int // by Job.Local
	waiting   int          // rows
	recording int          // jobs that released their place before their result is recorded
	held      map[*Job]struct{}
	short     time.Time // since when there has been too little room for more, or zero
	stopping  bool
	jobs      sync.WaitGroup
}

// line are the jobs of an account with one key that wait.
type line struct {
	key     any
	account int64
	jobs    []*Job
}

// keyJobs counts the jobs of a key, and accountJobs those of an account that are not
// local.
type (
	keyJobs     struct{ waiting, running int }
	accountJobs struct{ running, bad int }
)

// NewDispatcher returns a dispatcher that does nothing until Run or RunOnce.
func NewDispatcher(cfg DispatcherConfig) *Dispatcher {
	return &Dispatcher{
		cfg: cfg, freed: make(chan struct{}, 1),
		keys: map[any]*keyJobs{}, accounts: map[int64]*accountJobs{}, running: map[bool]int{}, held: map[*Job]struct{}{},
	}
}

// Run does work until ctx ends; it looks for it after each kick. It then claims
// nothing more, releases waiting jobs, lets attempts finish for at most Grace,
// cancels the rest, and returns when everything has stopped.
func (d *Dispatcher) Run(ctx context.Context, kick <-chan struct{}) {
	attempts, breakOff := context.WithCancel(context.WithoutCancel(ctx))
	var renewing sync.WaitGroup
	defer renewing.Wait()
	defer breakOff()
	// Short leases that are renewed let another node soon claim the work of a node
	// that died, however long an attempt may take.
	renewing.Go(func() { Every(attempts, d.cfg.Lease/renewalsPerLease, d.renew) })
	Due(ctx, func(ctx context.Context) time.Duration { return d.round(ctx, attempts) }, kick, d.freed)
	d.releaseWaiting(attempts)
	Drain(d.cfg.Grace, d.jobs.Wait, func() {
		d.cfg.Log.WarnContext(ctx, "attempts cancelled", "work", d.cfg.Name, "grace", d.cfg.Grace.String())
		breakOff()
	})
}

// RunOnce claims one batch of work and does it. It returns the number of rows when
// every result is recorded.
func (d *Dispatcher) RunOnce(ctx context.Context) (int, error) {
	n, _, err := d.claim(ctx, ctx)
	d.jobs.Wait()
	return n, err
}

// round claims once and returns when to claim again. While a key has enough jobs
// waiting, a kick does not start a round.
func (d *Dispatcher) round(ctx, attempts context.Context) time.Duration {
	n, pause, err := d.claim(ctx, attempts)
	switch {
	case err != nil && ctx.Err() == nil:
		d.cfg.Log.WarnContext(ctx, "cannot claim work", "work", d.cfg.Name, "error", err)
	case n > 0:
		return 0 // there may be more work
	}
	if d.busy() != nil {
		Pause(ctx, min(pause, crowdedPause), d.freed)
		return 0
	}
	return pause
}

// claim claims work that is due and starts it. pause is how long to wait before the
// next claim.
func (d *Dispatcher) claim(ctx, attempts context.Context) (n int, pause time.Duration, err error) {
	room, full := d.room()
	busy := d.busy()
	if len(full) > 0 {
		if busy == nil {
			busy = &Busy{}
		}
		busy.Accounts = full
		defer d.searched(time.Now())
	}
	due, err := d.cfg.Next(ctx, busy)
	if err != nil || due == nil || room <= 0 {
		return 0, pollEvery, err
	}
	now := d.cfg.Now()
	if wait := due.Sub(now); wait > 0 {
		return 0, min(wait, pollEvery), nil
	}
	// Do not use ctx: if it ended during the claim, the claimed rows would be unknown
	// and blocked until their lease expires.
	claiming, cancel := context.WithTimeout(attempts, storeTimeout)
	defer cancel()
	jobs, err := d.cfg.Claim(claiming, min(room, d.cfg.Batch), busy)
	for _, j := range jobs {
		j.hold(attempts, d.cfg.Now, d.leaseEnd(now))
		n += len(j.Leases)
	}
	d.add(jobs)
	return n, pollEvery, err
}

// add adds jobs and starts those that may run.
func (d *Dispatcher) add(jobs []*Job) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, j := range jobs {
		k := d.keys[j.Key]
		if k == nil {
			k = &keyJobs{}
			d.keys[j.Key] = k
		}
		k.waiting++
		d.waiting += len(j.Leases)
		d.held[j] = struct{}{}
		d.jobs.Add(1)
		i := slices.IndexFunc(d.lines, func(l *line) bool { return l.key == j.Key && l.account == j.Account })
		if i < 0 {
			i = len(d.lines)
			d.lines = append(d.lines, &line{key: j.Key, account: j.Account})
		}
		d.lines[i].jobs = append(d.lines[i].jobs, j)
	}
	d.start()
}

// start starts all jobs that may run, one of each line at a time. The caller holds the
// lock.
func (d *Dispatcher) start() {
	for started := true; started && !d.stopping; {
		started = false
		var served []*line
		left := d.lines[:0]
		for _, l := range d.lines {
			bad, may := d.mayRun(l.jobs[0])
			if !may {
				left = append(left, l)
				continue
			}
			started = true
			d.run(l.jobs[0], bad)
			if l.jobs = l.jobs[1:]; len(l.jobs) > 0 {
				served = append(served, l)
			}
		}
		n := len(d.lines)
		d.lines = append(left, served...)
		clear(d.lines[len(d.lines):n])
	}
}

// mayRun reports whether there is a place for a job. The caller holds the lock.
func (d *Dispatcher) mayRun(j *Job) (bad, may bool) {
	limit, bad := d.cfg.Limit(j.Key)
	if d.keys[j.Key].running >= limit {
		return bad, false
	}
	if j.Local {
		return false, d.running[true] < d.cfg.Local
	}
	a := d.account(j)
	if bad && a.bad >= max(1, d.cfg.Places/2) {
		return bad, false
	}
	return bad, d.running[false] < d.cfg.Places || a.running < d.left()
}

// account returns the counts of the job's account.
func (d *Dispatcher) account(j *Job) accountJobs {
	if a := d.accounts[j.Account]; a != nil {
		return *a
	}
	return accountJobs{}
}

// left returns how many places are left for all accounts together.
func (d *Dispatcher) left() int { return d.cfg.Places + d.cfg.Spare - d.running[false] }

// run starts a job that waits. The caller holds the lock.
func (d *Dispatcher) run(j *Job, bad bool) {
	k := d.keys[j.Key]
	if limit, _ := d.cfg.Limit(j.Key); k.waiting == limit {
		d.signal()
	}
	k.waiting--
	d.addWaiting(-len(j.Leases))
	d.occupy(j, bad, 1)
	j.started = d.cfg.Now()
	go func() {
		record := j.run()
		early := d.mayRecordLater()
		if early {
			d.vacate(j, bad)
		}
		record()
		if !early {
			d.vacate(j, bad)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if early {
			d.recording--
		}
		delete(d.held, j)
		d.jobs.Done()
	}()
}

// occupy adds n to the jobs that run. The caller holds the lock.
func (d *Dispatcher) occupy(j *Job, bad bool, n int) {
	d.keys[j.Key].running += n
	d.running[j.Local] += n
	if j.Local {
		return
	}
	a := d.accounts[j.Account]
	if a == nil {
		a = &accountJobs{}
		d.accounts[j.Account] = a
	}
	a.running += n
	if bad {
		a.bad += n
	}
	if *a == (accountJobs{}) {
		delete(d.accounts, j.Account)
	}
}

// mayRecordLater counts a job that frees its place before its result is recorded, so
// that another attempt runs while the database writes, and reports whether it may. At
// most Places jobs may, because unrecorded results are repeated after a crash.
func (d *Dispatcher) mayRecordLater() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.recording >= d.cfg.Places {
		return false
	}
	d.recording++
	return true
}

// vacate frees the place of a job.
func (d *Dispatcher) vacate(j *Job, bad bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.occupy(j, bad, -1)
	d.forgetKey(j.Key)
	d.start()
}

func (d *Dispatcher) forgetKey(key any) {
	if *d.keys[key] == (keyJobs{}) {
		delete(d.keys, key)
	}
}

// addWaiting adds n to the rows that wait.
func (d *Dispatcher) addWaiting(n int) {
	before := d.free()
	d.waiting += n
	if before < d.atLeast() && d.free() >= d.atLeast() {
		d.signal()
	}
}

func (d *Dispatcher) signal() {
	select {
	case d.freed <- struct{}{}:
	default:
	}
}

func (d *Dispatcher) free() int { return d.cfg.Claimed - d.waiting }

// atLeast returns for how many rows there must be room before more are claimed: a
// large claim costs little more than a small one.
func (d *Dispatcher) atLeast() int { return max(1, d.cfg.Claimed/10) }

// room returns how many more rows may be claimed, not counting those of the accounts
// in full. It also ends attempts that take too long.
func (d *Dispatcher) room() (n int, full []int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.cfg.Now()
	d.endSlow(now)
	if d.free() >= d.atLeast() {
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
	left := d.free() + d.cfg.Claimed/2
	waiting := map[int64]int{}
	for _, l := range d.lines {
		for _, j := range l.jobs {
			waiting[l.account] += len(j.Leases)
		}
	}
	for account, n := range waiting {
		if n >= left {
			full = append(full, account)
		}
	}
	slices.Sort(full)
	return left / 2, full
}

// searched records that a search in the spare room began then and is over.
func (d *Dispatcher) searched(began time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.short.IsZero() {
		d.short = d.short.Add(10 * time.Since(began))
	}
}

// busy returns the work whose keys have enough jobs waiting, nil if there is none.
// Other nodes should claim more of it.
func (d *Dispatcher) busy() *Busy {
	d.mu.Lock()
	defer d.mu.Unlock()
	var names []any
	seen := map[any]bool{}
	for _, l := range d.lines {
		if limit, _ := d.cfg.Limit(l.key); d.keys[l.key].waiting < limit {
			continue
		}
		for _, j := range l.jobs {
			for _, name := range j.Names {
				if !seen[name] {
					seen[name] = true
					names = append(names, name)
				}
			}
		}
	}
	if names == nil {
		return nil
	}
	return &Busy{Keys: names}
}

// endSlow ends the attempts that have taken their time. If an account waits for its
// first place, it also ends one that has taken crowdedTime, of the account with the
// most places, and no other before that one has left. The caller holds the lock.
func (d *Dispatcher) endSlow(now time.Time) {
	crowded := d.crowdedOut()
	var oldest *Job
	for j := range d.held {
		if j.started.IsZero() || j.Local {
			continue
		}
		took := now.Sub(j.started)
		if j.MaxTime > 0 && took >= j.MaxTime {
			j.end()
		}
		if !crowded || took < crowdedTime {
			continue
		}
		ended, may := j.mayEnd()
		crowded = !ended
		if may && (oldest == nil || d.endsBefore(j, oldest)) {
			oldest = j
		}
	}
	if crowded && oldest != nil {
		oldest.end()
	}
}

// endsBefore reports whether the attempt of a should end before that of b.
func (d *Dispatcher) endsBefore(a, b *Job) bool {
	return cmp.Or(cmp.Compare(d.account(b).running, d.account(a).running), a.started.Compare(b.started)) < 0
}

// crowdedOut reports whether an account without any place waits although its key has
// room.
func (d *Dispatcher) crowdedOut() bool {
	if d.left() > 0 {
		return false
	}
	return slices.ContainsFunc(d.lines, func(l *line) bool {
		limit, _ := d.cfg.Limit(l.key)
		return !l.jobs[0].Local && d.accounts[l.account] == nil && d.keys[l.key].running < limit
	})
}

// leaseEnd returns when a lease requested at now ends. The margin allows for clock
// differences and for the last bytes of an attempt.
func (d *Dispatcher) leaseEnd(now time.Time) time.Time { return now.Add(d.cfg.Lease * 9 / 10) }

// renew renews all leases once. If it fails, the leases expire, and no attempts begin
// until a renewal succeeds.
func (d *Dispatcher) renew(ctx context.Context) {
	d.mu.Lock()
	of := map[Lease]*Job{}
	var leases []Lease
	held := make([]*Job, 0, len(d.held))
	for j := range d.held {
		held = append(held, j)
		for _, l := range j.open() {
			of[l] = j
			leases = append(leases, l)
		}
	}
	d.mu.Unlock()
	if len(leases) == 0 {
		return
	}
	renewing, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	until := d.leaseEnd(d.cfg.Now())
	lost, err := d.cfg.Renew(renewing, leases)
	if err != nil {
		if ctx.Err() == nil {
			d.cfg.Log.WarnContext(ctx, "leases cannot be renewed", "work", d.cfg.Name, "leases", len(leases), "error", err)
		}
		return
	}
	for _, j := range held {
		j.extend(until)
	}
	for _, l := range lost {
		of[l].lose(l)
	}
}

// releaseWaiting releases the jobs that wait, and starts no more.
func (d *Dispatcher) releaseWaiting(ctx context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopping = true
	for _, l := range d.lines {
		for _, j := range l.jobs {
			d.keys[j.Key].waiting--
			d.waiting -= len(j.Leases)
			d.forgetKey(j.Key)
			go func() {
				defer d.jobs.Done()
				j.Release(ctx)
			}()
		}
	}
	d.lines = nil
}
