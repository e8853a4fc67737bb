package main

import (
	"log/slog"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/journal"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// TestWhichRequestsAreRecorded checks that requests of keys and changes by people are
// recorded, and neither what people read nor calls of Postroom itself.
func TestWhichRequestsAreRecorded(t *testing.T) {
	t.Parallel()
	s := storetest.OpenSQLite(t)
	j := journal.New(s, s.Now, slog.New(slog.DiscardHandler))
	ip := netip.MustParseAddr("192.0.2.1")
	for _, r := range []httpapi.Response{
		{Caller: "key_1", Method: http.MethodGet, IP: ip, RequestID: "req_read", Path: "/v1/inboxes", Status: 200, Took: 1500 * time.Microsecond},
		{Caller: "usr_1", Method: http.MethodPost, IP: ip, RequestID: "req_change"},
		{Caller: "usr_1", Method: http.MethodGet, IP: ip, RequestID: "req_page"},
		{Caller: "approver:ann@example.com", Method: http.MethodGet, IP: ip, RequestID: "req_link"},
		{Caller: "", Method: http.MethodGet, IP: ip, RequestID: "req_stranger", Status: 401},
		{Caller: "key_1", Method: http.MethodPost, RequestID: "req_internal"},
	} {
		r.AccountID = 7
		recordRequest(j, r)
	}
	if err := j.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	l, err := s.APIRequests(t.Context(), 7, store.APIRequestFilter{}, store.Page{Limit: 10})
	if err != nil || len(l.Rows) != 2 || l.Rows[0].ID != "req_change" || l.Rows[1].ID != "req_read" {
		t.Fatalf("recorded %+v, %v, want req_change and req_read", l.Rows, err)
	}
	if r := l.Rows[1]; r.Path != "/v1/inboxes" || r.IP != "192.0.2.1" || r.TookMS != 1 || r.Status != 200 {
		t.Errorf("recorded %+v", r)
	}
}
