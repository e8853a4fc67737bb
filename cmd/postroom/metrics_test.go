package main

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/waittest"
)

func TestMetrics(t *testing.T) {
	t.Parallel()
	onEngine(t, func(t *testing.T, data string, env []string) {
		s := serve(t, data, append(env, "POSTROOM_METRICS=127.0.0.1:0")...)
		status, from := s.call(t, s.key, http.MethodPost, "/v1/inboxes", `{}`)
		_, to := s.call(t, s.key, http.MethodPost, "/v1/inboxes", `{}`)
		if status != http.StatusCreated {
			t.Fatalf("%d %v", status, from)
		}
		s.call(t, "wrong", http.MethodGet, "/v1/inboxes", "")
		body := `{"to":"` + to["address"].(string) + `","subject":"s","text":"t"}`
		if status, res := s.call(t, s.key, http.MethodPost, "/v1/inboxes/"+from["id"].(string)+"/messages", body); status != http.StatusCreated {
			t.Fatalf("%d %v", status, res)
		}
		s.call(t, s.key, http.MethodGet, "/v1/inboxes/"+to["id"].(string)+"/messages/wait?timeout=60", "")
		text := s.metricsWith(t,
			"postroom_received_messages_total 1\n", "postroom_accepted_recipients_total 1\n", `postroom_delivery_attempts_total{result="delivered"} 1`+"\n",
			`postroom_http_requests_total{code="201"} 3`+"\n", `postroom_http_requests_total{code="401"} 1`+"\n",
			"postroom_deliveries_in_doubt_total 0\n",
			`postroom_mta_sts_unmet_total{mode="enforce"} 0`+"\n", "postroom_queue_due_recipients 0\n", "postroom_queue_age_seconds 0\n", "go_goroutines ",
			`postroom_http_request_duration_seconds_count{operation="createInbox"} 2`+"\n", `postroom_http_request_duration_seconds_count{operation="waitForMessage"} 1`+"\n",
			`postroom_http_request_duration_seconds_count{operation="none"} 1`+"\n", // refused before it reached an operation
			"postroom_delivery_duration_seconds_count 1\n", "postroom_webhook_lag_seconds_count 0\n", "postroom_receive_duration_seconds_count 0\n",
			`postroom_build_info{goversion="`+runtime.Version()+`",version="`,
		)
		if strings.Contains(text, s.key) || strings.Contains(text, "@") {
			t.Errorf("the metrics contain too much:\n%s", text)
		}
	})
}

// metricsWith asks for the metrics until they have all those lines: what comes
// of an attempt is noted after the recipient has the mail.
func (s *served) metricsWith(t *testing.T, lines ...string) (text string) {
	t.Helper()
	waittest.Until(t, fmt.Sprintf("the metrics have %q", lines), func() bool {
		text = s.scrape(t)
		return !slices.ContainsFunc(lines, func(line string) bool { return !strings.Contains(text, line) })
	})
	return text
}

func (s *served) scrape(t *testing.T) string {
	t.Helper()
	client := &http.Client{Timeout: time.Minute}
	defer client.CloseIdleConnections()
	res, err := client.Get(s.metrics)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%d %v", res.StatusCode, err)
	}
	return string(b)
}
