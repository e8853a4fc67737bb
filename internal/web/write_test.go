package web_test

import (
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/postroom/postroom/gen"
)

var onceField = regexp.MustCompile(`name="once" value="([^"]+)"`)

// once is the idempotency key of the form on a page.
func (a response) once(t *testing.T) string {
	t.Helper()
	m := onceField.FindStringSubmatch(a.body)
	if m == nil {
		t.Fatalf("the page has no form with a key:\n%s", a.body)
	}
	return m[1]
}

// A double click reports that the first request is still in progress. The form
// that follows sends nothing a second time.
func TestFormThatIsSentAgainSendsOneMail(t *testing.T) {
	t.Parallel()
	const inProgress = `{"error":{"code":"idempotency_in_progress","message":"still running","request_id":"req_x"}}`
	var busy atomic.Bool
	before := func(api http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/messages") && busy.CompareAndSwap(true, false) {
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("X-Request-Id", "req_x")
				w.WriteHeader(http.StatusConflict)
				_, _ = w.Write([]byte(inProgress)) // into memory
				return
			}
			api.ServeHTTP(w, r)
		})
	}
	oneEngine(t, func(t *testing.T, s *site) {
		in := s.newInbox(t, "desk", gen.SendPolicyOpen)
		v := s.visitAsUser(t)
		send := func(once, text string) response {
			return v.post("/write", []string{"inbox", in.ID, "to", "bob@out.example", "subject", "Hi", "text", text, "once", once})
		}
		first := v.get("/write?inbox="+in.ID).want(t, http.StatusOK).once(t)
		send(first, "Hello").want(t, http.StatusSeeOther)
		busy.Store(true)
		again := send(first, "Hello").want(t, http.StatusConflict).once(t)
		send(again, "Hello").want(t, http.StatusSeeOther)
		sent, err := s.api.ListInboxMessages(s.asUser(t), gen.ListInboxMessagesParams{InboxID: in.ID})
		must(t, err)
		if len(sent.Data) != 1 {
			t.Errorf("%d messages were sent, want 1", len(sent.Data))
		}
		// Another mail by a key that is used up: the form gets a key that is good.
		other := send(first, "Something else").want(t, http.StatusUnprocessableEntity).once(t)
		send(other, "Something else").want(t, http.StatusSeeOther)
	}, options{before: before})
}
