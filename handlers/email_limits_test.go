package handlers_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// list returns a JSON list of n elements, with %d replaced by their number.
func list(n int, element string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = strings.ReplaceAll(element, "%d", fmt.Sprint(i))
	}
	return "[" + strings.Join(all, ",") + "]"
}

// The free plan allows 3,000 emails per month and 200 per day. A batch that
// exceeds a limit is refused as a whole.
func TestEmailsOfTheFreePlan(t *testing.T) {
	free := []storetest.Option{storetest.WithConfig(func(c *store.Config) { c.DefaultPlan = "free" })}
	s := serveStore(t, free)
	october := time.Date(2026, 10, 1, 12, 0, 0, 0, time.UTC)
	s.clock.Add(october.Sub(s.clock.Now()))
	send := func(n int) response {
		return s.do(t, http.MethodPost, "/v1/emails", `{"from":"`+sender+`","subject":"s","text":"t","to":`+list(n, `"a%d@b.example"`)+`}`)
	}
	batch := func(n int) response {
		return s.do(t, http.MethodPost, "/v1/emails/batch",
			`{"from":"`+sender+`","subject":"s","text":"t","recipients":`+list(n, `{"to":"a%d@b.example"}`)+`}`)
	}
	for day := range 15 {
		batch(100).want(t, http.StatusCreated)
		send(50).want(t, http.StatusCreated)
		batch(49).want(t, http.StatusCreated)
		refused := batch(2).wantError(t, http.StatusTooManyRequests, limitOn(day))
		if got := refused.header.Get("Retry-After"); day < 14 && got != fmt.Sprint(12*60*60) {
			t.Errorf("Retry-After: %s, want the end of the UTC day", got)
		}
		send(1).want(t, http.StatusCreated)
		s.clock.Add(24 * time.Hour)
	}
	for _, res := range []response{send(1), batch(1)} {
		res.wantError(t, http.StatusTooManyRequests, "monthly_limit_reached")
		if got := res.header.Get("Retry-After"); got != fmt.Sprint(int((16*24*time.Hour-12*time.Hour)/time.Second)) {
			t.Errorf("Retry-After: %s", got)
		}
	}
	s.do(t, http.MethodGet, "/v1/usage", "").want(t, http.StatusOK).says(t, "emails_this_month.used", "3000")
}

// limitOn returns the limit that the first refused email of the day exceeds. On
// the last day it is the monthly limit.
func limitOn(day int) string {
	if day == 14 {
		return "monthly_limit_reached"
	}
	return "daily_limit_reached"
}
