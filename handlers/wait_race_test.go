package handlers_test

import (
	"math/rand/v2"
	"net/http"
	"runtime"
	"sync"
	"testing"
)

// A wait and its mail begin together, a few microseconds apart in either
// order: whichever comes first, the mail is found (row H15). A wait that missed
// it would time out.
func TestArrivalRacesWithWait(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		const lanes = 16
		rounds := raceRounds / lanes
		var all sync.WaitGroup
		for lane := range lanes {
			all.Go(func() {
				random := rand.New(rand.NewPCG(uint64(lane), 1)) //nolint:gosec // to be repeatable
				in := s.newInbox(t)
				query := ""
				for round := range rounds {
					lead := random.IntN(400) - 200
					var got response
					var both sync.WaitGroup
					both.Go(func() {
						yield(lead)
						got = s.do(t, http.MethodGet, "/v1/inboxes/"+in.ID+"/messages/wait?timeout=30"+query, "")
					})
					yield(-lead)
					id := s.receive(t, in, "Subject: Hi").ID
					both.Wait()
					if got.status != http.StatusOK || got.at(t, "timed_out") != false || got.str(t, "message.id") != id {
						t.Errorf("mail %d of lane %d is lost: %d %s", round, lane, got.status, got.body)
						return
					}
					query = "&after=" + id
				}
			})
		}
		all.Wait()
	})
}

// yield lets others run n times, or not at all.
func yield(n int) {
	for range max(0, n) {
		runtime.Gosched()
	}
}
