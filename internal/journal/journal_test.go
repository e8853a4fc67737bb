package journal_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/journal"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// each runs test with a journal on both engines.
func each(t *testing.T, test func(t *testing.T, j *journal.Journal, s *store.Store, clock *storetest.Clock)) {
	t.Helper()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		clock := storetest.NewClock(time.Now())
		cfg.Now = clock.Now
		s := storetest.OpenConfig(t, cfg)
		test(t, journal.New(s, clock.Now, slog.New(slog.DiscardHandler)), s, clock)
	})
}

func requests(t *testing.T, j *journal.Journal, s *store.Store, account int64, f store.APIRequestFilter) []store.APIRequest {
	t.Helper()
	if err := j.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	l, err := s.APIRequests(t.Context(), account, f, store.Page{Limit: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	return l.Rows
}

func TestRequestsAreRecordedByAccount(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, j *journal.Journal, s *store.Store, clock *storetest.Clock) {
		for _, r := range []store.APIRequest{
			{AccountID: 1, ID: "req_1", Caller: "key_a", Method: "GET", Path: "/v1/inboxes", Status: 200, TookMS: 3, IP: "192.0.2.1"},
			{AccountID: 1, ID: "req_2", Caller: "key_b", Method: "DELETE", Path: "/v1/suppressions/ann@example.org", Status: 404},
			{AccountID: 2, ID: "req_3", Caller: "key_c", Method: "GET", Path: "/v1/usage", Status: 200},
		} {
			j.AddRequest(r)
		}
		got := requests(t, j, s, 1, store.APIRequestFilter{})
		if len(got) != 2 || got[0].ID != "req_2" || got[1].ID != "req_1" || got[1].TookMS != 3 || got[1].OneOf != 1 || got[1].IP != "192.0.2.1" {
			t.Fatalf("recorded %+v, want the two of the account, newest first", got)
		}
		if got[0].Path != "/v1/suppressions/…" {
			t.Errorf("the path is %q: it has the address", got[0].Path)
		}
		if got := requests(t, j, s, 1, store.APIRequestFilter{Failed: true}); len(got) != 1 || got[0].ID != "req_2" {
			t.Errorf("failed: %+v, want req_2", got)
		}
		if got := requests(t, j, s, 1, store.APIRequestFilter{Caller: "key_a"}); len(got) != 1 || got[0].ID != "req_1" {
			t.Errorf("of key_a: %+v, want req_1", got)
		}
		clock.Add(store.JournalTTL + time.Minute)
		if n, err := s.Sweep(t.Context(), "api_requests"); n != 3 || err != nil {
			t.Errorf("swept %d, %v, want 3", n, err)
		}
		if got := requests(t, j, s, 1, store.APIRequestFilter{}); len(got) != 0 {
			t.Errorf("%d requests after 7 days", len(got))
		}
	})
}

// TestRowsAreBounded checks that a flood of requests is sampled, that failures are kept
// while there is room, and that the allowance refills.
func TestRowsAreBounded(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, j *journal.Journal, s *store.Store, clock *storetest.Clock) {
		add := func(n, status int) {
			for range n {
				j.AddRequest(store.APIRequest{AccountID: 1, Path: "/", Status: status})
			}
		}
		const half = journal.Burst / 2
		add(half+1+10*journal.Sampled, 200)
		got := requests(t, j, s, 1, store.APIRequestFilter{})
		if len(got) != half+1+10 || got[0].OneOf != journal.Sampled || got[len(got)-1].OneOf != 1 {
			t.Fatalf("%d rows, want %d, the last of them samples", len(got), half+1+10)
		}
		add(10*journal.Burst, 500)
		if got := requests(t, j, s, 1, store.APIRequestFilter{Failed: true}); len(got) != half-1-10 {
			t.Errorf("%d failures, want the %d that there is room for", len(got), half-1-10)
		}
		clock.Add(time.Minute)
		before := len(requests(t, j, s, 1, store.APIRequestFilter{}))
		add(10*journal.Burst, 500)
		if n := len(requests(t, j, s, 1, store.APIRequestFilter{})) - before; n != journal.Refill {
			t.Errorf("%d rows after a minute, want %d", n, journal.Refill)
		}
	})
}

func TestRefusedSessionsAreRecorded(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, j *journal.Journal, s *store.Store, _ *storetest.Clock) {
		for range 2 * journal.Burst {
			j.AddRefusal(store.SMTPRefusal{IP: "192.0.2.9", HELO: "bad\xff.example", To: "missing@example.com", Reply: "550 5.1.1 No such inbox here", Count: 2})
		}
		if err := j.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		l, err := s.SMTPRefusals(t.Context(), store.Page{Limit: 10 * journal.Burst})
		if err != nil || len(l.Rows) != journal.Burst {
			t.Fatalf("%d rows, %v, want %d", len(l.Rows), err, journal.Burst)
		}
		if r := l.Rows[0]; r.HELO != "bad.example" || r.To != "missing@example.com" || r.Count != 2 {
			t.Errorf("recorded %+v", r)
		}
	})
}
