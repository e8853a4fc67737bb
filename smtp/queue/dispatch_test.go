package queue

import (
	"testing"
	"time"

	"github.com/postroom/postroom/store"
)

// While outcomes are recorded the connections have work, but no more outcomes
// wait for that than there are connections: those of a process that dies are sent
// again.
func TestPlacesAreNotHeldWhileOutcomesAreRecorded(t *testing.T) {
	t.Parallel()
	const network = 3
	d := newDispatcher(dispatchLimits{relay: 1, network: network, claimed: 1000}, time.Now)
	attempted, recorded := make(chan struct{}), make(chan struct{})
	var jobs []*job
	for range 10 {
		jobs = append(jobs, &job{dest: dest{kind: toRelay}, rcpts: make([]store.Claimed, 1), attempt: func() outcome {
			attempted <- struct{}{}
			return outcome{}
		}, record: func(outcome) { <-recorded }})
	}
	d.add(jobs)
	for range network + 1 { // the last one keeps its place
		<-attempted
	}
	d.mu.Lock()
	if running, recording := d.running[true], d.recording; running > 1 || recording > network {
		t.Errorf("%d jobs run and %d are being recorded, want at most 1 and %d", running, recording, network)
	}
	d.mu.Unlock()
	select {
	case <-attempted:
		t.Errorf("an attempt is made while %d outcomes wait to be recorded", network+1)
	case recorded <- struct{}{}:
	}
	go func() {
		for range len(jobs) - 1 {
			recorded <- struct{}{}
		}
	}()
	for range len(jobs) - network - 1 {
		<-attempted
	}
	d.wait()
	if room, _ := d.room(); room != 1000 || len(d.dests) != 0 || d.recording != 0 {
		t.Errorf("room for %d, %d destinations and %d to record at the end", room, len(d.dests), d.recording)
	}
}
