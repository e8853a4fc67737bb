package webhook_test

import (
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/waittest"
	"github.com/postroom/postroom/internal/webhook"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// orderly is a receiver that checks that every event of an email is posted only
// after it has accepted all earlier ones, and not again once it has accepted it.
type orderly struct {
	mu       sync.Mutex
	before   map[string][]string // the earlier events of the same email, by event
	accepted map[string]bool
	refused  map[string]int
	early    []string
	again    []string // events posted again after they were accepted
}

func (o *orderly) take(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get("webhook-id")
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.accepted[id] {
		o.again = append(o.again, id)
	}
	for _, earlier := range o.before[id] {
		if !o.accepted[earlier] {
			o.early = append(o.early, id)
		}
	}
	if o.refused[id] < 3 && rand.Float64() < 0.4 {
		o.refused[id]++
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	o.accepted[id] = true
}

// The events of one email reach an endpoint in order and once, across retries and
// nodes: email.sent before email.delivered.
func TestEventsOfOneEmailComeInOrder(t *testing.T) {
	t.Parallel()
	storetest.RunNodes(t, func(t *testing.T, cfg store.Config) {
		const emails, perEmail = 15, 5
		s := storetest.OpenConfig(t, cfg)
		nodes := []*store.Store{s, s}
		if s.Engine() == "postgresql" {
			nodes[1] = storetest.OpenConfig(t, cfg)
		}
		o := &orderly{before: map[string][]string{}, accepted: map[string]bool{}, refused: map[string]int{}}
		r := newReceiver(t)
		r.respond(o.take)
		account := storetest.Account(t, s)
		w, _ := newEndpoint(t, s, account.Seq, r.URL)
		for range emails {
			clickedEmail(t, s, account)
		}
		events, err := s.EventsOf(t.Context(), account.Seq, 0, 1<<60, 1000)
		if err != nil || len(events) != emails*perEmail {
			t.Fatalf("%d events, %v", len(events), err)
		}
		of := map[int64][]string{}
		for _, e := range events {
			o.before[e.ID] = of[*e.MessageSeq]
			of[*e.MessageSeq] = append(of[*e.MessageSeq][:len(of[*e.MessageSeq]):len(of[*e.MessageSeq])], e.ID)
		}
		for _, node := range nodes {
			start(t, newDispatcher(t, node, time.Now, func(c *webhook.Config) {
				c.Jitter = func() float64 { return -9.999 } // 5 s become 500 µs, and so on
			}))
		}
		waittest.Until(t, "all is delivered", func() bool {
			l, err := s.ListDeliveries(t.Context(), w, store.DeliveryFilter{Status: store.DeliveryPending}, store.Page{Limit: 1})
			if err != nil {
				t.Fatal(err)
			}
			return len(l.Rows) == 0 && l.Cursor == ""
		})
		o.mu.Lock()
		defer o.mu.Unlock()
		if len(o.again) > 0 {
			t.Errorf("%d events were posted again after they were accepted: %v", len(o.again), o.again)
		}
		if len(o.early) > 0 || len(o.accepted) != len(events) {
			t.Errorf("%d of %d events accepted; %d posts came before an earlier event of the same email", len(o.accepted), len(events), len(o.early))
		}
	})
}

// clickedEmail sends an email and records its delivery, open and click.
func clickedEmail(t *testing.T, s *store.Store, account store.Account) {
	t.Helper()
	storetest.Email(t, s, account.Seq, []string{"a@out.example"})
	claimed, err := s.ClaimRecipients(t.Context(), 1, time.Minute, nil)
	if err != nil || len(claimed) != 1 {
		t.Fatalf("claimed %d recipients: %v", len(claimed), err)
	}
	c := claimed[0]
	err = s.RecordAttempt(t.Context(), store.Attempt{
		RecipientSeq: c.Seq, MessageSeq: c.MessageSeq, Fence: c.Fence, Status: store.RecipientClicked, Response: "250 OK",
	})
	if err != nil {
		t.Fatal(err)
	}
}
