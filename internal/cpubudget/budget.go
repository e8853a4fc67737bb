// Package cpubudget bounds the processor time of one piece of work, such as parsing one
// message. It counts the time of the thread that does the work, so that a busy machine does
// not use up a budget.
package cpubudget

import (
	"runtime"
	"time"
)

// Budget is the processor time that is left for one piece of work. Only one
// goroutine may use it at a time. A nil budget never runs out.
type Budget struct {
	limit, used time.Duration // used by the calls of Run that have returned
	spent       bool
	running     bool
	calls       uint
	began       time.Time     // when Run was called
	thread      time.Duration // what the thread had used by then
}

// New returns a budget of limit.
func New(limit time.Duration) *Budget { return &Budget{limit: limit} }

// Run calls work and counts its cost. Meanwhile it locks the goroutine to its thread.
func (b *Budget) Run(work func()) {
	if b == nil || b.running {
		work()
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	b.began, b.thread, b.running = time.Now(), ThreadTime(), true
	defer func() {
		b.used += ThreadTime() - b.thread
		b.spent = b.spent || b.used >= b.limit
		b.running = false
	}()
	work()
}

// lookEvery is how many calls of Spent share one reading of the clock.
const lookEvery = 64

// Spent reports whether the budget has run out. It is cheap enough for every
// line, word or element of a message.
func (b *Budget) Spent() bool {
	if b == nil || b.spent {
		return b != nil
	}
	b.calls++
	if b.running && b.calls%lookEvery == 0 {
		b.look()
	}
	return b.spent
}

// look reads the clocks. A thread never uses more than the time on the wall
// clock, which costs much less to read.
func (b *Budget) look() {
	if b.used+time.Since(b.began) < b.limit {
		return
	}
	b.spent = b.used+ThreadTime()-b.thread >= b.limit
}
