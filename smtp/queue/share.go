package queue

import "time"

// An account whose servers hang must not delay the mail of other accounts, and an
// account that sends alone must not be slowed down. So the jobs of one account use
// limits.network places at most, and when that many are used by any accounts, there
// are limits.spare more. An account may take a spare one while it uses fewer places
// than are left. Each account thus leaves at least half of the spare places that
// it found to the next ones, rounded down.
//
// When all places are used, and an account that uses none waits, an attempt that
// lasts longer than crowdedTime ends as if its server had timed out.
//
// Likewise, limits.claimed recipients of any accounts are claimed, and half as many
// more of accounts that have fewer waiting than are left.

// full reports whether all places that a job may take are used. The caller holds the lock.
func (d *dispatcher) full(j *job) bool {
	if !j.dest.network() {
		return d.running[false] >= d.limits.local
	}
	return d.running[true] >= d.limits.network && d.accounts[j.account()] >= d.left()
}

// left returns how many places on the network are left for all accounts together.
func (d *dispatcher) left() int { return d.limits.network + d.limits.spare - d.running[true] }

// subtract subtracts one job of an account.
func subtract(jobs map[int64]int, account int64) {
	jobs[account]--
	if jobs[account] == 0 {
		delete(jobs, account)
	}
}

// weight returns as how many claimed recipients a running job counts. The jobs of one
// account count as half of limits.claimed at most, however many recipients they have.
func (d *dispatcher) weight(j *job) int {
	return min(len(j.rcpts), max(1, d.limits.claimed/max(1, 2*d.limits.network)))
}

// endSlow ends the attempts that have taken maxTime. If an account waits for its
// first place, it also ends one that has taken crowdedTime, of the account with the
// most places, and no other before that one has left. The caller holds the lock.
func (d *dispatcher) endSlow(now time.Time) {
	crowded := d.crowdedOut()
	var oldest *job
	for j := range d.all {
		if j.started.IsZero() || !j.dest.network() {
			continue
		}
		took := now.Sub(j.started)
		if took >= j.maxTime() {
			j.claim.end()
		}
		if !crowded || took < crowdedTime {
			continue
		}
		ended, may := j.claim.mayEnd()
		crowded = !ended
		if may && d.before(j, oldest) {
			oldest = j
		}
	}
	if crowded && oldest != nil {
		oldest.claim.end()
	}
}

// before reports whether the attempt of j should end before that of other, which may
// be nil.
func (d *dispatcher) before(j, other *job) bool {
	if other == nil {
		return true
	}
	if a, b := d.accounts[j.account()], d.accounts[other.account()]; a != b {
		return a > b
	}
	return j.started.Before(other.started)
}

// crowdedOut reports whether an account without any place waits although its
// destination has room.
func (d *dispatcher) crowdedOut() bool {
	if d.left() > 0 {
		return false
	}
	now := d.now()
	for _, j := range d.waiting {
		s := d.dests[j.dest]
		if j.dest.network() && d.accounts[j.account()] == 0 && s.running < s.limit(d.limits.of(j.dest), now) {
			return true
		}
	}
	return false
}

// spareRoom returns the room beyond limits.claimed: how many recipients may be claimed,
// but not of the accounts in full, which have at least as many waiting as are left. The
// caller holds the lock.
func (d *dispatcher) spareRoom() (n int, full []int64) {
	left := d.free() + d.limits.claimed/2
	waiting := map[int64]int{}
	for _, j := range d.waiting {
		waiting[j.account()] += len(j.rcpts)
	}
	for account, n := range waiting {
		if n >= left {
			full = append(full, account)
		}
	}
	return left / 2, full
}

// searched records how long a search in the spare room took.
func (d *dispatcher) searched(took time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.short.IsZero() {
		d.short = d.short.Add(10 * took)
	}
}
