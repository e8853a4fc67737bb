package handlers_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/postroom/postroom/store"
)

// Each inbox that refuses a message by a list has an event about it, and nothing else of
// the message.
func TestBlockedMessagesAreRecorded(t *testing.T) {
	s := serve(t)
	at := s.smtp(t, nil)
	first, second, strict := s.newInbox(t), s.newInbox(t), s.newInbox(t)
	entry := func(action, pattern, inbox string) string {
		return s.do(t, http.MethodPost, "/v1/lists", fmt.Sprintf(`{"direction":"inbound","action":%q,"pattern":%q,"inbox_id":%s}`, action, pattern, inbox)).
			want(t, http.StatusCreated).str(t, "id")
	}
	spam := entry("block", "*@spam.example", "null")
	odd := entry("block", "a@odd.example", `"`+first.ID+`"`)
	entry("allow", "*@known.example", `"`+strict.ID+`"`)
	s.do(t, http.MethodPost, "/v1/webhooks", `{"url":"https://hooks.example/","events":["message.blocked"]}`).want(t, http.StatusCreated)
	refused := func(text string, to ...string) {
		t.Helper()
		if err := deliverAt(at, text, to...); err == nil || !strings.Contains(err.Error(), "5.7.1 Sender not accepted") {
			t.Errorf("delivered %q: %v", text, err)
		}
	}
	events := func(by option) []string {
		t.Helper()
		log := s.do(t, http.MethodGet, "/v1/events?events=message.blocked", "", by).want(t, http.StatusOK)
		if strings.Contains(string(log.body), "SecretWord") {
			t.Errorf("the events show the message: %s", log.body)
		}
		var out []string
		for i, inbox := range log.strs(t, "data", "inbox_id") {
			out = append(out, fmt.Sprint(inbox, " ", log.at(t, fmt.Sprintf("data.%d.data", i))))
		}
		return out
	}
	refused("From: Eve <a@spam.example>\nSubject: SecretWord\n\nSecretWord\n", first.Address, second.Address)
	refused("From: a@odd.example\n\nSecretWord\n", first.Address)
	refused("From: bob@new.example\n\nSecretWord\n", strict.Address)
	refused("Subject: SecretWord\n\nSecretWord\n", strict.Address)
	if err := deliverAt(at, "From: a@odd.example\nSubject: s\n\nt\n", first.Address, second.Address); err != nil {
		t.Error(err) // goes into quarantine of the first
	}
	record := func(in store.Inbox, from, list any) string {
		return fmt.Sprint(in.ID, " ", map[string]any{"object": "blocked_message", "from": from, "list_id": list})
	}
	got, want := events(as(s.key)), []string{
		record(first, "a@spam.example", spam), record(second, "a@spam.example", spam), record(first, "a@odd.example", odd),
		record(strict, "bob@new.example", nil), record(strict, nil, nil),
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if n := len(events(as(s.newKey(t, scopes("read"), onlyInboxes(second.ID))))); n != 1 {
		t.Errorf("a key of one inbox sees %d events, want 1", n)
	}
	if n := len(s.texts(t, `SELECT id FROM webhook_deliveries`)); n != len(want) {
		t.Errorf("%d webhook deliveries, want %d", n, len(want))
	}
	if n := len(s.texts(t, `SELECT id FROM messages`)); n != 2 {
		t.Errorf("%d messages are stored, want 2", n)
	}
}
