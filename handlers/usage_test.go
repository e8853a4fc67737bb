package handlers_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// planned sets the plan of all accounts.
func planned(plan store.Plan) []storetest.Option {
	plan.Name = "small"
	return []storetest.Option{storetest.WithConfig(func(c *store.Config) { c.Plans, c.DefaultPlan = []store.Plan{plan}, plan.Name })}
}

const twoRecipients = `{"to":"a@b.example","cc":"c@d.example","subject":"s","text":"t"}`

func TestUsageShowsThePlan(t *testing.T) {
	s := serveStore(t, planned(store.Plan{Inboxes: 2, Daily: 5}))
	in := s.newInbox(t)
	send := "/v1/inboxes/" + in.ID + "/messages"
	s.do(t, http.MethodPost, send, twoRecipients).want(t, http.StatusCreated)
	s.do(t, http.MethodPost, send, twoRecipients, as(s.newKey(t, testMode))).want(t, http.StatusCreated)
	got := string(s.do(t, http.MethodGet, "/v1/usage", "").want(t, http.StatusOK).body)
	want := `{"object":"usage","plan":"small","inboxes":{"used":1,"limit":2},` +
		`"sends_today":{"used":2,"limit":5,"resets_at":"2026-09-24T00:00:00.000Z"},` +
		`"emails_this_month":{"used":2,"limit":null,"resets_at":"2026-10-01T00:00:00.000Z"},"pending_drafts":0,` +
		`"sending":{"paused":false,"reason":null,"paused_at":null},"stopped":false}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func testMode(k *store.Key) { k.Mode = store.KeyTest }

func TestStats(t *testing.T) {
	s := serve(t)
	in, beside := s.newInbox(t), s.newInbox(t)
	s.receive(t, in, "Subject: one")
	s.receive(t, in, "Subject: none", func(m *store.NewMessage) { m.TestMode = true })
	s.clock.Add(24 * time.Hour)
	s.receive(t, in, "Subject: two")
	s.receive(t, beside, "Subject: three")

	none := `"sent":0,"delivered":0,"bounced":0,"failed":0,"complained":0}`
	want := `{"object":"stats","from":"2026-09-23","to":"2026-09-24","days":[` +
		`{"date":"2026-09-23","received":1,` + none + `,{"date":"2026-09-24","received":2,` + none + `],` +
		`"totals":{"received":3,` + none + `}`
	if got := string(s.do(t, http.MethodGet, "/v1/stats?days=2", "").want(t, http.StatusOK).body); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	one := `"totals":{"received":1,`
	s.do(t, http.MethodGet, "/v1/stats?inbox_id="+beside.ID, "").want(t, http.StatusOK).wantText(t, one)
	limited := as(s.newKey(t, onlyInboxes(beside.ID)))
	s.do(t, http.MethodGet, "/v1/stats", "", limited).wantError(t, http.StatusForbidden, "insufficient_scope inbox_id")
	s.do(t, http.MethodGet, "/v1/stats?inbox_id="+beside.ID, "", limited).want(t, http.StatusOK).wantText(t, one)
	s.clock.Add(24 * time.Hour) // what was sent counts on the day of its result
	outcomes := map[string]store.RecipientStatus{
		"sent@out.example": store.RecipientSent, "delivered@out.example": store.RecipientDelivered,
		"bounced@out.example": store.RecipientBounced, "failed@out.example": store.RecipientFailed,
	}
	storetest.Sent(t, s.store, in, slices.Collect(maps.Keys(outcomes)))
	storetest.Sent(t, s.store, in, slices.Collect(maps.Keys(outcomes)), func(m *store.NewMessage) { m.TestMode = true })
	s.clock.Add(24 * time.Hour)
	claimed, err := s.store.ClaimRecipients(t.Context(), 10, time.Minute, nil)
	if err != nil || len(claimed) != 8 {
		t.Fatal(len(claimed), err)
	}
	for _, c := range claimed {
		a := store.Attempt{RecipientSeq: c.Seq, MessageSeq: c.MessageSeq, Fence: c.Fence, Status: outcomes[c.Email], Response: "250 said"}
		must(t, s.store.RecordAttempt(t.Context(), a))
	}
	const counted = `{"date":"2026-09-26","received":0,"sent":2,"delivered":1,"bounced":1,"failed":1,"complained":0}`
	s.do(t, http.MethodGet, "/v1/stats?inbox_id="+in.ID+"&days=2", "").want(t, http.StatusOK).wantText(t, `{"date":"2026-09-25","received":0,`+none+`,`+counted)
	s.do(t, http.MethodGet, "/v1/stats?inbox_id="+beside.ID+"&days=1", "").want(t, http.StatusOK).wantText(t, `"received":0,`+none)

	s.do(t, http.MethodGet, "/v1/stats?inbox_id="+in.ID, "", limited).wantError(t, http.StatusNotFound, "not_found inbox_id")
	s.do(t, http.MethodGet, "/v1/stats?inbox_id="+s.otherInbox(t).ID, "").wantError(t, http.StatusNotFound, "not_found inbox_id")
	for _, days := range []string{"0", "91", "x"} {
		s.do(t, http.MethodGet, "/v1/stats?days="+days, "", broken).wantError(t, http.StatusBadRequest, "invalid_request days")
	}
	if days, ok := s.do(t, http.MethodGet, "/v1/stats", "").at(t, "days").([]any); !ok || len(days) != 14 {
		t.Errorf("%d days are shown when none are asked for", len(days))
	}
}

// wantText fails the test unless the body holds text.
func (r response) wantText(t *testing.T, text string) response {
	t.Helper()
	if !strings.Contains(string(r.body), text) {
		t.Errorf("got %s, want it to hold %s", r.body, text)
	}
	return r
}
