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

// A value at the limit is accepted. One over it is refused with the name of its
// field.
func TestLimitsOfEmails(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		one := func(fields string) (path, body string) {
			return "/v1/emails", `{"from":"` + sender + `",` + fields + `}`
		}
		to := func(fields string) (path, body string) {
			return one(`"to":"a@b.example","subject":"s","text":"t",` + fields)
		}
		many := func(recipients string) (path, body string) {
			return "/v1/emails/batch", `{"from":"` + sender + `","subject":"s","text":"t","recipients":` + recipients + `}`
		}
		address := func(n int) string { return list(n, `"a%d@b.example"`) }
		metadata := func(n int) string { return `{"x":"` + strings.Repeat("y", n-len(`{"x":""}`)) + `"}` }
		files := func(n int) string { return list(n, `{"filename":"f%d.txt","content":"eA=="}`) }
		tags := func(n int) string { return "{" + strings.Trim(list(n, `"k%d":"v"`), "[]") + "}" }
		long := func(n int) string { return `"` + strings.Repeat("x", n) + `"` }
		for _, tt := range []struct {
			name    string
			at      int // the limit
			request func(n int) (path, body string)
			param   string
		}{
			{"recipients", 50, func(n int) (string, string) { return one(`"subject":"s","text":"t","to":` + address(n)) }, "to"},
			{"copies", 50, func(n int) (string, string) { return to(`"cc":` + address(n)) }, "cc"},
			{"blind copies", 50, func(n int) (string, string) { return to(`"bcc":` + address(n)) }, "bcc"},
			{"attachments", 10, func(n int) (string, string) { return to(`"attachments":` + files(n)) }, "attachments"},
			{"metadata", 4096, func(n int) (string, string) { return to(`"metadata":` + metadata(n)) }, "metadata"},
			{"tags", 50, func(n int) (string, string) { return to(`"tags":` + tags(n)) }, "tags"},
			{"subject", 998, func(n int) (string, string) { return one(`"to":"a@b.example","text":"t","subject":` + long(n)) }, "subject"},
			{"text", 500_000, func(n int) (string, string) { return one(`"to":"a@b.example","subject":"s","text":` + long(n)) }, "text"},
			{"html", 1_000_000, func(n int) (string, string) { return one(`"to":"a@b.example","subject":"s","html":` + long(n)) }, "html"},
			{"a batch", 100, func(n int) (string, string) { return many(list(n, `{"to":"a%d@b.example"}`)) }, "recipients"},
			{"recipients in a batch", 50, func(n int) (string, string) { return many(`[{"to":"a@b.example"},{"to":` + address(n) + `}]`) }, "recipients[1].to"},
			{
				"metadata in a batch", 4096,
				func(n int) (string, string) { return many(`[{"to":"a@b.example","metadata":` + metadata(n) + `}]`) }, "recipients[0].metadata",
			},
			{
				"time ahead in milliseconds", int(30 * 24 * time.Hour / time.Millisecond),
				func(n int) (string, string) {
					return to(`"scheduledAt":"` + after(time.Duration(n)*time.Millisecond) + `"`)
				}, "scheduledAt",
			},
		} {
			path, body := tt.request(tt.at)
			if res := s.do(t, http.MethodPost, path, body); res.status != http.StatusCreated {
				t.Errorf("%s at the limit: %d %.300s", tt.name, res.status, res.body)
			}
			path, body = tt.request(tt.at + 1)
			res := s.do(t, http.MethodPost, path, body, broken)
			if res.status != http.StatusBadRequest || res.str(t, "error.code") != "invalid_request" || res.str(t, "error.param") != tt.param {
				t.Errorf("%s over the limit: %d %.300s", tt.name, res.status, res.body)
			}
		}
	})
}

// The free plan allows 3,000 emails per month and 200 per day. A batch that
// exceeds a limit is refused as a whole.
func TestEmailsOfTheFreePlan(t *testing.T) {
	t.Parallel()
	free := []storetest.Option{storetest.WithConfig(func(c *store.Config) { c.DefaultPlan = "free" })}
	eachStore(t, free, func(t *testing.T, s *server) {
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
			batch(2).wantError(t, http.StatusTooManyRequests, limitOn(day))
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
	})
}

// limitOn returns the limit that the first refused email of the day exceeds. On
// the last day it is the monthly limit.
func limitOn(day int) string {
	if day == 14 {
		return "monthly_limit_reached"
	}
	return "daily_limit_reached"
}
