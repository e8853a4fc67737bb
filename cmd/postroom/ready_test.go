package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/smtp"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/waittest"
)

// awaitLog waits for a line of the log with these parts.
func (s *served) awaitLog(t *testing.T, parts ...string) {
	t.Helper()
	waittest.Until(t, fmt.Sprintf("a line of the log has %q", parts), func() bool {
		for line := range strings.Lines(s.log.String()) {
			if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) }) {
				return true
			}
		}
		return false
	})
}

func TestReadyAndAccessLog(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), "POSTROOM_ACCESS_LOG=on")
	host := strings.TrimPrefix(s.api, "http://")
	s.awaitLog(t, "msg=ready", "version="+programVersion(), "http="+host, "smtp="+s.smtp, "mail_domain=postroom.localhost")
	s.call(t, s.key, http.MethodGet, "/v1/inboxes?limit=1", "")
	s.awaitLog(t, "level=INFO msg=request", "method=GET", "path=/v1/inboxes ", "operation=listInboxes", "status=200", "duration_ms=", "remote_ip=127.0.0.1", "request_id=req_")
	s.call(t, s.key, http.MethodGet, "/v1/files/secrettoken", "")
	s.awaitLog(t, "path=/v1/files/…", "status=403")
	if log := s.log.String(); strings.Contains(log, "secrettoken") || strings.Contains(log, s.key) {
		t.Errorf("the log has a secret:\n%s", log)
	}

	quiet := serve(t, t.TempDir())
	quiet.call(t, quiet.key, http.MethodGet, "/v1/inboxes", "")
	if strings.Contains(quiet.log.String(), "msg=request") {
		t.Errorf("requests are logged without the setting:\n%s", quiet.log)
	}
}

// TestDashboardShowsMetricsThatThereAre looks for each metric of the Grafana dashboard
// among those of a node.
func TestDashboardShowsMetricsThatThereAre(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../deploy/grafana-dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(b) {
		t.Fatal("the dashboard is not JSON")
	}
	s := serve(t, t.TempDir(), "POSTROOM_METRICS=127.0.0.1:0")
	_, in := s.call(t, s.key, http.MethodPost, "/v1/inboxes", `{"name":"signup"}`)
	if !deliver(t, s.smtp, in["address"].(string), "Subject: Hi\r\n\r\nHello\r\n") {
		t.Fatal("the message was refused")
	}
	s.call(t, s.key, http.MethodPost, "/v1/inboxes/"+in["id"].(string)+"/messages", `{"to":"signup@postroom.localhost","subject":"s","text":"t"}`)
	text := s.metricsWith(t, "postroom_receive_duration_seconds_count 1\n", `postroom_delivery_attempts_total{result="delivered"} 1`)
	names := regexp.MustCompile(`(postroom|process|go)_[a-z_]+`).FindAllString(string(b), -1)
	if len(names) < 15 {
		t.Fatalf("the dashboard has %d metrics", len(names))
	}
	for _, name := range names {
		if !strings.Contains(text, "\n"+name+"{") && !strings.Contains(text, "\n"+name+" ") {
			t.Errorf("no metric %s", name)
		}
	}
}

// deliver sends a message over SMTP, and reports whether it was taken.
func deliver(t *testing.T, addr, to, mail string) bool {
	t.Helper()
	err := smtp.SendMail(addr, nil, "a@outside.example", []string{to}, []byte(mail))
	if err != nil {
		t.Error(err)
	}
	return err == nil
}
