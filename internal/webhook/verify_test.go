package webhook_test

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/postroom/postroom/internal/webhook"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// look is a request as a receiver verifies it, at a Unix time.
type look struct {
	ID        string `json:"id"`
	Timestamp string `json:"timestamp"`
	Signature string `json:"signature"`
	Body      string `json:"body"`
	With      string `json:"with"` // the secret
	At        int64  `json:"at"`

	what string
	good bool
}

// results are the errors of the libraries; empty if they accept the request.
type results map[string]string

// Independent libraries accept every unchanged request up to 5 minutes before
// and after its time, and reject every changed one (row W7).
func TestOthersVerifyWhatIsSent(t *testing.T) {
	t.Parallel()
	othersVerify(t, 1, askGo)
}

// othersVerify checks what so many libraries say of requests.
func othersVerify(t *testing.T, libraries int, ask func(t *testing.T, looks []look) []results) {
	t.Helper()
	posts, secret := sentPosts(t, verifiedEvents)
	looks := looksAt(t, posts, secret)
	taken := map[string]int{}
	for i, said := range ask(t, looks) {
		for library, fault := range said {
			if looks[i].good != (fault == "") {
				t.Errorf("%s, %s: %q for %s", library, looks[i].what, fault, looks[i].ID)
			}
			if fault == "" {
				taken[library]++
			}
		}
	}
	t.Logf("%d posts verified in %d ways; accepted: %v", verifiedEvents, len(looks), taken)
	if len(taken) != libraries {
		t.Errorf("%d libraries accepted a post, want %d", len(taken), libraries)
	}
}

// sentPosts delivers n events to an endpoint and returns the requests and the
// secret.
func sentPosts(t *testing.T, n int) ([]post, string) {
	t.Helper()
	s := storetest.OpenSQLite(t)
	r := newReceiver(t)
	in := storetest.Inbox(t, s)
	_, secret := newEndpoint(t, s, in.AccountID, r.URL)
	queue(t, s, in, n)
	d := newDispatcher(t, s, time.Now, func(c *webhook.Config) { c.Body, c.PerEndpoint = hardBody, 100 })
	for done := 0; done < n; {
		k, err := d.RunOnce(t.Context())
		if err != nil || k == 0 {
			t.Fatalf("%d more after %d: %v", k, done, err)
		}
		done += k
	}
	posts := r.got()
	if len(posts) != n {
		t.Fatalf("%d posts for %d events", len(posts), n)
	}
	return posts, secret
}

// hardBody returns a body with characters that are difficult to encode.
func hardBody(_ context.Context, e store.Event) ([]byte, error) {
	texts := []string{"plain", "Grüße, 世界 🎉", `"quotes" \ and <tags> & more`, "\u2028 line\r\nfeeds\t\x00", strings.Repeat("long ", 1000), ""}
	n := 0
	for _, c := range e.ID {
		n += int(c)
	}
	return json.Marshal(map[string]string{"id": e.ID, "text": texts[n%len(texts)]})
}

// looksAt returns every request at several times and with each of its parts
// changed, in order of time.
func looksAt(t *testing.T, posts []post, secret string) []look {
	t.Helper()
	const tolerance = 5 * 60
	var all []look
	for _, p := range posts {
		at, err := strconv.ParseInt(p.timestamp, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		changed := func(what string, good bool, edit func(*look)) {
			l := look{p.id, p.timestamp, p.signature, p.body, secret, at, what, good}
			edit(&l)
			all = append(all, l)
		}
		changed("as it came", true, func(*look) {})
		changed("5 minutes late", true, func(l *look) { l.At += tolerance })
		changed("5 minutes early", true, func(l *look) { l.At -= tolerance })
		changed("301 seconds late", false, func(l *look) { l.At += tolerance + 1 })
		changed("301 seconds early", false, func(l *look) { l.At -= tolerance + 1 })
		changed("another body", false, func(l *look) { l.Body += " " })
		changed("another id", false, func(l *look) { l.ID = "evt_0" + strings.TrimPrefix(l.ID, "evt_") })
		changed("another timestamp", false, func(l *look) { l.Timestamp = strconv.FormatInt(at+1, 10) })
		changed("another secret", false, func(l *look) { l.With = "whsec_" + strings.Repeat("A", 43) + "=" })
	}
	slices.SortStableFunc(all, func(a, b look) int { return cmp.Compare(a.At, b.At) })
	return all
}

// askGo runs the Go library of Standard Webhooks, which uses the system clock.
func askGo(t *testing.T, looks []look) []results {
	t.Helper()
	said := make([]results, len(looks))
	synctest.Test(t, func(t *testing.T) {
		for i, l := range looks {
			time.Sleep(time.Until(time.Unix(l.At, 0))) // passes at once
			w, err := standardwebhooks.NewWebhook(l.With)
			if err != nil {
				t.Fatal(err)
			}
			header := http.Header{}
			header.Set("webhook-id", l.ID)
			header.Set("webhook-timestamp", l.Timestamp)
			header.Set("webhook-signature", l.Signature)
			said[i] = results{"go": ""}
			if err := w.Verify([]byte(l.Body), header); err != nil {
				said[i]["go"] = err.Error()
			}
		}
	})
	return said
}
