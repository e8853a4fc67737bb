package cpubudget_test

import (
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/cpubudget"
)

// burn works until the budget has run out, and for at most a minute.
func burn(b *cpubudget.Budget) (spent bool) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if b.Spent() {
			return true
		}
	}
	return false
}

func TestBudgetRunsOut(t *testing.T) {
	t.Parallel()
	b := cpubudget.New(20 * time.Millisecond)
	var spent bool
	b.Run(func() { spent = burn(b) })
	if !spent || !b.Spent() {
		t.Errorf("spent in the work: %t, after it: %t", spent, b.Spent())
	}
}

func TestBudgetAddsUpOverRuns(t *testing.T) {
	t.Parallel()
	b := cpubudget.New(30 * time.Millisecond)
	runs := 0
	for ; !b.Spent() && runs < 1000; runs++ {
		b.Run(func() {
			part := cpubudget.New(10 * time.Millisecond)
			part.Run(func() { burn(part) })
		})
	}
	if runs < 2 || runs > 4 {
		t.Errorf("30 ms were spent in %d runs of 10 ms", runs)
	}
}

// A waiting goroutine uses no processor time, whatever the others do.
func TestWaitingCostsNothing(t *testing.T) {
	t.Parallel()
	b := cpubudget.New(100 * time.Millisecond)
	other := cpubudget.New(200 * time.Millisecond)
	var working sync.WaitGroup
	b.Run(func() {
		working.Go(func() { other.Run(func() { burn(other) }) })
		working.Wait()
		for range 1000 {
			if b.Spent() {
				t.Error("waiting used up the budget")
				return
			}
		}
	})
}

func TestNoBudget(t *testing.T) {
	t.Parallel()
	var b *cpubudget.Budget
	ran := false
	b.Run(func() { ran = true })
	if !ran || b.Spent() {
		t.Errorf("without a budget: ran %t, spent %t", ran, b.Spent())
	}
}

func BenchmarkSpent(bench *testing.B) {
	b := cpubudget.New(time.Hour)
	b.Run(func() {
		for bench.Loop() {
			b.Spent()
		}
	})
}

func BenchmarkRun(bench *testing.B) {
	for bench.Loop() {
		cpubudget.New(time.Hour).Run(func() {})
	}
}
