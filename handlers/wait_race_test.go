package handlers_test

import (
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/store"
)

// A wait and its mail come at one time, so that the mail is stored before,
// after, and just while the wait looks for it: it is always found (row H15). A
// wait that missed it would time out.
func TestArrivalRacesWithWait(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		const lanes = 8
		var all sync.WaitGroup
		for lane := range lanes {
			all.Go(func() {
				l := raceLane{in: s.newInbox(t), random: rand.New(rand.NewPCG(uint64(lane), 1)), took: time.Millisecond} //nolint:gosec // to be repeatable
				for round := range raceRounds / lanes {
					got, id := l.run(t, s)
					if got.status != http.StatusOK || got.at(t, "timed_out") != false || got.str(t, "message.id") != id {
						t.Errorf("mail %d of lane %d is lost: %d %s", round, lane, got.status, got.body)
						return
					}
				}
			})
		}
		all.Wait()
	})
}

// raceLane is one inbox with one mail and one wait at a time.
type raceLane struct {
	in     store.Inbox
	random *rand.Rand
	took   time.Duration // about how long a mail takes to be stored
	after  string        // the mail before
}

// run begins to store a mail, and a wait at some moment until a little after
// the mail is likely to be there.
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
