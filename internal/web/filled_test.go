package web_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// send has the user send an email.
func (s *site) send(t *testing.T, to, subject string, edits ...func(*gen.EmailSend)) string {
	t.Helper()
	req := gen.EmailSend{
		From: gen.NewMailboxAddress("Corner Shop <shop@" + storetest.Domain + ">"), To: gen.NewMailboxRecipients(gen.Mailbox(to)), Subject: gen.NewOptString(subject),
		Text: gen.NewOptNilString("Hello,\n\nyour order 4821 left our house this morning. It should be with you on Thursday.\n\nThe Corner Shop"),
	}
	for _, edit := range edits {
		edit(&req)
	}
	made, err := s.api.SendEmail(s.asUser(t), &req, gen.SendEmailParams{})
	must(t, err)
	return made.(*gen.EmailCreated).ID
}

// outcomes are what servers said about those who were written to.
var outcomes = map[string]store.Attempt{
	"gone@": {Status: store.RecipientBounced, Response: "550 5.1.1 The email account that you tried to reach does not exist"},
	"slow@": {Status: store.RecipientQueued, Response: "451 4.7.1 Greylisting in action, please come back later"},
	"":      {Status: store.RecipientDelivered, Response: "250 2.0.0 Ok: queued as 4F2B81C03A"},
}

// handOver delivers what is due, to servers that reply with outcomes.
func (s *site) handOver(t *testing.T) {
	t.Helper()
	claimed, err := s.store.ClaimRecipients(t.Context(), 100, time.Minute, nil)
	must(t, err)
	for _, c := range claimed {
		local, _, _ := strings.Cut(c.Email, "@")
		a, known := outcomes[local+"@"]
		if !known {
			a = outcomes[""]
		}
		a.RecipientSeq, a.MessageSeq, a.Fence = c.Seq, c.MessageSeq, c.Fence
		if a.Status == store.RecipientQueued {
			next := store.NewTime(s.clock.Now().Add(time.Hour))
			a.Next = &next
		}
		must(t, s.store.RecordAttempt(t.Context(), a))
	}
}

// sendSome sends messages on several days. Some of them bounce.
func (s *site) sendSome(t *testing.T) {
	t.Helper()
	in := storetest.Inbox(t, s.store, func(in *store.Inbox) { in.AccountID = s.account })
	s.clock.Add(-12 * 24 * time.Hour)
	for day := range 12 {
		for i := range 3 + day*7%5 {
			s.send(t, fmt.Sprintf("reader%d@news.example", i), "What is new this week")
			storetest.Received(t, s.store, in)
		}
		if day%4 == 1 {
			s.send(t, "gone@nowhere.example", "Your invoice 2026-118")
		}
		s.handOver(t)
		s.clock.Add(24 * time.Hour)
	}
	storetest.Sent(t, s.store, in, []string{"ann@out.example", "gone@nowhere.example"})
	s.handOver(t)
}

// receiver receives webhooks and responds with a configured status.
type receiver struct {
	url    string
	status atomic.Int64
	came   atomic.Int64
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	r.status.Store(http.StatusOK)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body) // what it holds is of no interest here
		r.came.Add(1)
		w.WriteHeader(int(r.status.Load()))
		_, _ = io.WriteString(w, `{"ok":true}`) // as above
	}))
	t.Cleanup(server.Close)
	r.url = server.URL + "/hooks"
	return r
}

// deliver posts what is due to the webhooks.
func (s *site) deliver(t *testing.T) {
	t.Helper()
	_, err := s.hooks.RunOnce(t.Context())
	must(t, err)
}
