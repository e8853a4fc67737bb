package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/waittest"
)

// A client without a key opens more HTTP connections than the process may have file
// descriptors, and leaves them idle or sends half a request. Its new connections are
// served, and so are all other clients.
func TestIdleHTTPConnectionsStopNothing(t *testing.T) {
	t.Parallel()
	onEngine(t, func(t *testing.T, data string, env []string) {
		cmd := command(t, data, env)
		cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", `ulimit -n 1024 && exec "$0" serve`, binary}
		s := begin(t, cmd)
		at := strings.TrimPrefix(s.api, "http://")
		const request = "GET /health HTTP/1.1\r\nHost: test\r\n"
		for i := range 1124 {
			c := dialFrom(t, "127.0.0.2", at)
			_, _ = io.WriteString(c, request+strings.Repeat("\r\n", i%2)) // it may be closed at once
		}
		// While all connections have requests, a new one is closed.
		waittest.Until(t, "a new connection is served", func() bool {
			c := dialFrom(t, "127.0.0.2", at)
			_, _ = io.WriteString(c, request+"\r\n")
			line, _ := bufio.NewReader(c).ReadString('\n')
			return strings.HasPrefix(line, "HTTP/1.1 200")
		})
		greeting, err := bufio.NewReader(dialFrom(t, "127.0.0.1", s.smtp)).ReadString('\n')
		if err != nil || !strings.HasPrefix(greeting, "220 ") {
			t.Errorf("SMTP said %q, %v", greeting, err)
		}
		if status, out := s.call(t, s.key, http.MethodPost, "/v1/inboxes", `{"name":"crowd"}`); status != http.StatusCreated {
			t.Errorf("the API responded %d, %v", status, out)
		}
		if strings.Contains(s.log.String(), "too many open files") {
			t.Error(s.log)
		}
	})
}

// dialFrom connects from a loopback address. What it reads must come soon.
func dialFrom(t *testing.T, ip, to string) net.Conn {
	t.Helper()
	d := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}, Timeout: 10 * time.Second}
	c, err := d.DialContext(t.Context(), "tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestConnectionsShareTheFileDescriptors(t *testing.T) {
	t.Parallel()
	cfg, err := load(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ files, smtpServers, smtp, total, perNetwork int }{
		{65536, 3, 1000, 10_000, 2000},
		{4096, 1, 960, 1920, 960},
		{1024, 1, 192, 384, 192},
		{1024, 3, 64, 384, 192},
		{256, 1, 32, 64, 32},
	} {
		limits, smtp := cfg.connLimits(tt.files, tt.smtpServers)
		if smtp != tt.smtp || limits.Total != tt.total || limits.PerNetwork != tt.perNetwork {
			t.Errorf("%d descriptors, %d SMTP servers: %+v, and %d for SMTP", tt.files, tt.smtpServers, limits, smtp)
		}
	}
}
