package main

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// freeAddress is one that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }() // nobody has called
	return l.Addr().String()
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, data string, env []string) {
		at := freeAddress(t)
		s := serve(t, data, append(env, "POSTROOM_METRICS="+at)...)
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
		text := metricsAt(t, at)
		for _, line := range []string{
			"postroom_received_messages_total 1\n", "postroom_accepted_recipients_total 1\n", `postroom_delivery_attempts_total{result="delivered"} 1` + "\n",
			`postroom_http_requests_total{code="201"} 3` + "\n", `postroom_http_requests_total{code="401"} 1` + "\n",
			"postroom_queue_due_recipients 0\n", "postroom_queue_age_seconds 0\n", "go_goroutines ",
		} {
			if !strings.Contains(text, line) {
				t.Errorf("no %q in\n%s", line, text)
			}
		}
		if strings.Contains(text, s.key) || strings.Contains(text, "@") {
			t.Errorf("the metrics tell too much:\n%s", text)
		}
	})
}

func metricsAt(t *testing.T, at string) string {
	t.Helper()
	client := &http.Client{Timeout: time.Minute}
	res, err := client.Get("http://" + at + "/metrics")
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
