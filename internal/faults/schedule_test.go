package faults_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/waittest"
	"github.com/postroom/postroom/smtp/smtptest"
)

// TestScheduledEmailsAreSentOnce makes many emails due in one second while the service
// runs, while it is down after a kill, and while each is cancelled. Every email is
// either sent once or cancelled, and is queued within two seconds of its time, or of
// the start. Row O13 of docs/testing.md.
func TestScheduledEmailsAreSentOnce(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, in *installation) {
		relay := smtptest.NewMX(t, smtptest.MXConfig{})
		in.settings = append(in.settings, "POSTROOM_RELAY=smtp://"+relay.Addr()+"?tls=maybe")
		in.start()
		s := &scheduling{in: in, relay: relay, emails: pick(40, 1000)}
		s.inOneSecond(t)
		s.acrossARestart(t)
		s.whileCancelled(t)
	})
}

// mostOverdue is how late a scheduled email may be queued.
const mostOverdue = 2 * time.Second

// scheduling is a number of emails that become due together.
type scheduling struct {
	in     *installation
	relay  *smtptest.MX
	emails int // in each part
	sent   int // emails that the relay must have received
}

// schedule creates emails that are due at the same time, each to its own address. It
// returns that time and the ids in order.
func (s *scheduling) schedule(t *testing.T, name string) (due time.Time, ids []string) {
	t.Helper()
	due = time.Now().Add(pick(4*time.Second, 30*time.Second)).Truncate(time.Second)
	ids = make([]string, s.emails)
	var posting sync.WaitGroup
	for worker := range clients {
		posting.Go(func() {
			c := s.in.current().caller()
			defer c.close()
			for i := worker; i < s.emails; i += clients {
				var e struct{ ID string }
				err := c.call(t.Context(), http.StatusCreated, &e, http.MethodPost, "/v1/emails", map[string]any{
					"from": "hello@" + mailDomain, "to": scheduledTo(name, i), "subject": name, "text": "t", "scheduledAt": due.Format(time.RFC3339),
				})
				if err != nil {
					t.Error(err)
				}
				ids[i] = e.ID
			}
		})
	}
	posting.Wait()
	if t.Failed() || time.Now().After(due) {
		t.Fatalf("%s: the emails were not scheduled in time for %v", name, due)
	}
	return due, ids
}

func scheduledTo(name string, i int) string { return fmt.Sprintf("%s%d@outside.example", name, i) }

// wait returns at that time.
func (s *scheduling) wait(t *testing.T, until time.Time) {
	t.Helper()
	select {
	case <-time.After(time.Until(until)):
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}

// wantSent waits until every one of these addresses, and no other, has got one email.
// The last email must be queued at most mostOverdue after since.
func (s *scheduling) wantSent(t *testing.T, name string, since time.Time, want map[string]int) {
	t.Helper()
	s.sent += len(want)
	waittest.Until(t, "no email is scheduled", func() bool { return s.in.count(`SELECT count(*) FROM emails WHERE due_at IS NOT NULL`) == 0 })
	s.in.settle()
	got := map[string]int{}
	messages := s.relay.Wait(t, s.sent)
	for _, m := range messages {
		for _, to := range m.To {
			if _, ours := want[to]; ours {
				got[to]++
			}
		}
	}
	if !maps.Equal(got, want) || len(messages) != s.sent {
		t.Errorf("%s: %d of %d addresses got mail, and the relay got %d messages, want %d", name, len(got), len(want), len(messages), s.sent)
	}
	queued := time.UnixMicro(int64(s.in.count(`SELECT coalesce(max(created_at), 0) FROM events WHERE type = 'email.queued'`)))
	if late := queued.Sub(since); late > mostOverdue && len(want) > 0 {
		t.Errorf("%s: the last email was queued %v late", name, late)
	} else {
		t.Logf("%s: %d emails were sent once, the last queued after %s", name, len(want), seconds(late))
	}
}

func (s *scheduling) allRecipients(name string) map[string]int {
	all := map[string]int{}
	for i := range s.emails {
		all[scheduledTo(name, i)] = 1
	}
	return all
}

func (s *scheduling) inOneSecond(t *testing.T) {
	t.Helper()
	due, _ := s.schedule(t, "second")
	s.wantSent(t, "second", due, s.allRecipients("second"))
}

// acrossARestart keeps the service down at the due time.
func (s *scheduling) acrossARestart(t *testing.T) {
	t.Helper()
	due, _ := s.schedule(t, "restart")
	s.in.crash()
	s.wait(t, due)
	s.in.start()
	s.wantSent(t, "restart", time.Now(), s.allRecipients("restart"))
}

// whileCancelled cancels each email at about the time when it is due.
func (s *scheduling) whileCancelled(t *testing.T) {
	t.Helper()
	due, ids := s.schedule(t, "race")
	s.wait(t, due.Add(-mostOverdue/8))
	left := s.allRecipients("race")
	pace := time.NewTicker(mostOverdue * 3 / 4 / time.Duration(s.emails))
	defer pace.Stop()
	var cancelling sync.WaitGroup
	var mu sync.Mutex
	for i, id := range ids {
		<-pace.C
		cancelling.Go(func() {
			gone, err := s.cancel(t.Context(), id)
			if err != nil {
				t.Error(err)
			}
			if gone {
				mu.Lock()
				defer mu.Unlock()
				delete(left, scheduledTo("race", i))
			}
		})
	}
	cancelling.Wait()
	s.wantSent(t, "race", due, left)
	if n := s.in.count(`SELECT count(*) FROM messages WHERE status = 'cancelled'`); n != s.emails-len(left) {
		t.Errorf("%d are cancelled, want %d", n, s.emails-len(left))
	}
	t.Logf("of %d, %d were cancelled and %d sent", s.emails, s.emails-len(left), len(left))
}

// cancel reports whether an email was cancelled. False means that the response was a
// conflict, because the email was already sent.
func (s *scheduling) cancel(ctx context.Context, id string) (bool, error) {
	c := s.in.current().caller()
	defer c.close()
	a, err := c.do(ctx, http.MethodDelete, "/v1/emails/"+id, nil)
	if err == nil && a.status != http.StatusOK && a.status != http.StatusConflict {
		err = &unwanted{"cancel", a}
	}
	return a.status == http.StatusOK, err
}
