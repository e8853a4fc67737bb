package handlers_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom/handlers"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// A policy applies at once, even during a send: the test changes it at each
// point where the send reads the clock (O11).
func TestPolicyChangeDuringASendApplies(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		newPolicyRace(t, cfg).run(t, 3, (*server).sentFrom, func(s *server, in store.Inbox) (response, func(response)) {
			res := s.do(t, http.MethodPost, "/v1/inboxes/"+in.ID+"/messages", `{"to":"a@b.example","subject":"s","text":"t"}`)
			return res, func(late response) { late.want(t, http.StatusAccepted) }
		})
	})
}

// The same applies to emails from the address of an inbox: a message that needs
// approval does not leave as an email (O11).
func TestPolicyChangeDuringAnEmailApplies(t *testing.T) {
	t.Parallel()
	for path, rest := range map[string]string{
		"/v1/emails":       `"to":"a@b.example","subject":"s","text":"t"}`,
		"/v1/emails/batch": `"recipients":[{"to":"a@b.example"}],"subject":"s","text":"t"}`,
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
				newPolicyRace(t, cfg).run(t, 2, (*server).emailsFrom, func(s *server, in store.Inbox) (response, func(response)) {
					res := s.do(t, http.MethodPost, path, `{"from":"`+in.Address+`",`+rest)
					return res, func(late response) {
						if path == "/v1/emails" {
							late.want(t, http.StatusAccepted)
							return
						}
						late.want(t, http.StatusCreated).wantAt(t, "count", "0")
					}
				})
			})
		})
	}
}

// policyRace is a server that runs a function each time the clock is read.
type policyRace struct {
	*server
	atClock atomic.Value // func()
}

func newPolicyRace(t *testing.T, cfg store.Config) *policyRace {
	t.Helper()
	clock := storetest.NewClock(begin)
	cfg.Now = clock.Now
	r := &policyRace{}
	r.atClock.Store(func() {})
	r.server = newServer(t, storetest.OpenConfig(t, cfg), clock, func(cfg *handlers.Config) {
		cfg.Now = func() time.Time {
			r.atClock.Load().(func())() //nolint:forcetypeassert // nothing else is stored
			return clock.Now()
		}
	})
	return r
}

// run sends repeatedly, each time from a new inbox whose policy becomes
// approval one clock read later than before. Until the message is stored, this
// must stop it, at least the given number of times. send returns the response
// and the expected result if the policy came in time. sent counts the stored
// messages.
func (r *policyRace) run(
	t *testing.T, atLeast int, sent func(*server, *testing.T, store.Inbox) int,
	send func(*server, store.Inbox) (response, func(response)),
) {
	t.Helper()
	between := 0
	for moment := 1; ; moment++ {
		in := r.newInbox(t)
		looks, early := 0, false
		r.atClock.Store(func() {
			if looks++; looks != moment {
				return
			}
			early = sent(r.server, t, in) == 0
			if _, err := r.store.UpdateInbox(t.Context(), in.AccountID, in.ID, func(in *store.Inbox) error {
				in.SendPolicy = store.PolicyApproval
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
		res, wantLate := send(r.server, in)
		r.atClock.Store(func() {})
		if looks < moment {
			break
		}
		if !early {
			res.want(t, http.StatusCreated)
			continue
		}
		between++
		wantLate(res)
		if n := sent(r.server, t, in); n != 0 {
			t.Errorf("at look %d: %d sent", moment, n)
		}
	}
	if between < atLeast {
		t.Errorf("the policy changed only %d times before the message was stored", between)
	}
}

// emailsFrom counts the emails from the address of an inbox.
func (s *server) emailsFrom(t *testing.T, in store.Inbox) int {
	t.Helper()
	l, err := s.store.ListEmails(t.Context(), store.EmailFilter{AccountID: in.AccountID, InboxIDs: []string{in.ID}}, store.Page{Limit: 10})
	if err != nil {
		t.Error(err)
	}
	return len(l.Rows)
}

// sentFrom counts the messages that an inbox has sent.
func (s *server) sentFrom(t *testing.T, in store.Inbox) int {
	t.Helper()
	l, err := s.store.ListMessages(t.Context(), store.MessageFilter{
		AccountID: in.AccountID, InboxSeq: in.Seq, Direction: store.DirectionOut,
	}, store.Page{Limit: 10})
	if err != nil {
		t.Error(err)
	}
	return len(l.Rows)
}
