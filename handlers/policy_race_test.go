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

// A policy counts from the moment that it is there, in the midst of a send too:
// at each moment at which the send looks at the clock, the policy is changed once
// (O11).
func TestPolicyThatComesDuringASend(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		clock := storetest.NewClock(begin)
		cfg.Now = clock.Now
		var atClock atomic.Value // func()
		atClock.Store(func() {})
		s := newServer(t, storetest.OpenConfig(t, cfg), clock, func(cfg *handlers.Config) {
			cfg.Now = func() time.Time {
				atClock.Load().(func())() //nolint:forcetypeassert // nothing else is stored
				return clock.Now()
			}
		})
		between := 0
		for moment := 1; ; moment++ {
			in := s.newInbox(t)
			looks, early := 0, false
			atClock.Store(func() {
				if looks++; looks != moment {
					return
				}
				early = len(s.sentFrom(t, in)) == 0
				if _, err := s.store.UpdateInbox(t.Context(), in.AccountID, in.ID, func(in *store.Inbox) error {
					in.SendPolicy = store.PolicyApproval
					return nil
				}); err != nil {
					t.Error(err)
				}
			})
			res := s.do(t, http.MethodPost, "/v1/inboxes/"+in.ID+"/messages", `{"to":"a@b.example","subject":"s","text":"t"}`)
			atClock.Store(func() {})
			if looks < moment {
				break
			}
			if !early {
				res.want(t, http.StatusCreated)
				continue
			}
			between++
			res.want(t, http.StatusAccepted)
			if n := len(s.sentFrom(t, in)); n != 0 {
				t.Errorf("at look %d: %d sent", moment, n)
			}
		}
		if between < 3 {
			t.Errorf("the policy came only %d times before the mail was stored", between)
		}
	})
}

// The same holds for emails that are from the address of an inbox: what only is
// to go out when somebody has approved it does not go out as an email (O11).
func TestPolicyThatComesDuringAnEmail(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		clock := storetest.NewClock(begin)
		cfg.Now = clock.Now
		var atClock atomic.Value // func()
		atClock.Store(func() {})
		s := newServer(t, storetest.OpenConfig(t, cfg), clock, func(cfg *handlers.Config) {
			cfg.Now = func() time.Time {
				atClock.Load().(func())() //nolint:forcetypeassert // nothing else is stored
				return clock.Now()
			}
		})
		for path, rest := range map[string]string{
			"/v1/emails":       `"to":"a@b.example","subject":"s","text":"t"}`,
			"/v1/emails/batch": `"recipients":[{"to":"a@b.example"}],"subject":"s","text":"t"}`,
		} {
			between := 0
			for moment := 1; ; moment++ {
				in := s.newInbox(t)
				looks, early := 0, false
				sent := func() int {
					l, err := s.store.ListEmails(t.Context(), store.EmailFilter{AccountID: in.AccountID, InboxIDs: []string{in.ID}}, store.Page{Limit: 10})
					if err != nil {
						t.Error(err)
					}
					return len(l.Rows)
				}
				atClock.Store(func() {
					if looks++; looks != moment {
						return
					}
					early = sent() == 0
					if _, err := s.store.UpdateInbox(t.Context(), in.AccountID, in.ID, func(in *store.Inbox) error {
						in.SendPolicy = store.PolicyApproval
						return nil
					}); err != nil {
						t.Error(err)
					}
				})
				res := s.do(t, http.MethodPost, path, `{"from":"`+in.Address+`",`+rest)
				atClock.Store(func() {})
				if looks < moment {
					break
				}
				if !early {
					res.want(t, http.StatusCreated)
					continue
				}
				between++
				res.wantError(t, http.StatusForbidden, "recipient_not_allowed from")
				if n := sent(); n != 0 {
					t.Errorf("%s at look %d: %d sent", path, moment, n)
				}
			}
			if between < 2 {
				t.Errorf("%s: the policy came only %d times before the email was stored", path, between)
			}
		}
	})
}

// sentFrom are the messages that an inbox has sent.
func (s *server) sentFrom(t *testing.T, in store.Inbox) []store.Message {
	t.Helper()
	l, err := s.store.ListMessages(t.Context(), store.MessageFilter{
		AccountID: in.AccountID, InboxSeq: in.Seq, Direction: store.DirectionOut,
	}, store.Page{Limit: 10})
	if err != nil {
		t.Error(err)
	}
	return l.Rows
}
