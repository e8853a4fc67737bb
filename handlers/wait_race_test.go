package handlers_test

import (
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/store"
)

// A message arrives at the same time as the wait for it: before, during and
// after its query. The wait always finds it (row H15); otherwise it would time
// out.
func TestArrivalRacesWithWait(t *testing.T) {
	s := serve(t)
	const lanes = 8
	var all sync.WaitGroup
	for lane := range lanes {
		all.Go(func() {
			l := raceLane{in: s.newInbox(t), random: rand.New(rand.NewPCG(uint64(lane), 1)), took: time.Millisecond} //nolint:gosec // to be repeatable
			for round := range raceRounds / lanes {
				got, id := l.run(t, s)
				if got.status != http.StatusOK || got.at(t, "timed_out") != false || got.str(t, "message.id") != id {
					t.Errorf("message %d of lane %d is lost: %d %s", round, lane, got.status, got.body)
					return
				}
			}
		})
	}
	all.Wait()
}

// raceLane is an inbox with one message and one wait at a time.
type raceLane struct {
	in     store.Inbox
	random *rand.Rand
	took   time.Duration // approximate time to store a message
	after  string        // the previous message
}

// run starts to store a message and, at a random time until shortly after it is
// likely stored, a wait.
func (l *raceLane) run(t *testing.T, s *server) (got response, id string) {
	t.Helper()
	begun := time.Now()
	var wait sync.WaitGroup
	wait.Go(func() {
		<-time.After(time.Duration(l.random.Int64N(int64(l.took) * 3 / 2)))
		got = s.do(t, http.MethodGet, "/v1/inboxes/"+l.in.ID+"/messages/wait?timeout=15"+l.after, "")
	})
	id = s.receive(t, l.in, "Subject: Hi").ID
	took := time.Since(begun)
	wait.Wait()
	l.took = (7*l.took + took) / 8
	l.after = "&after=" + id
	return got, id
}
