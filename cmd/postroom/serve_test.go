package main

import (
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/testpg"
)

func TestFirstKeyIsShownOnce(t *testing.T) {
	t.Parallel()
	onEngine(t, func(t *testing.T, data string, env []string) {
		first := serve(t, data, env...)
		if n := strings.Count(first.stdout.String(), "sk_live_"); n != 1 {
			t.Errorf("the first start shows %d keys:\n%s", n, first.stdout)
		}
		first.stop(t)
		second := serve(t, data, env...)
		if second.key != "" || strings.Contains(second.stdout.String(), "sk_live_") {
			t.Errorf("the second start shows a key:\n%s", second.stdout)
		}
		if status, out := second.call(t, first.key, http.MethodGet, "/v1/inboxes", ""); status != http.StatusOK {
			t.Errorf("the first key after a restart: %d %v", status, out)
		}
		second.stop(t)
		for _, s := range []*served{first, second} {
			if strings.Contains(s.log.String(), first.key) {
				t.Errorf("the key is in the log:\n%s", s.log)
			}
		}
	})
}

func TestBootstrapKey(t *testing.T) {
	t.Parallel()
	const given, late = "a-key-that-the-operator-chose", "another-key-that-comes-too-late"
	data := t.TempDir()
	s := serve(t, data, "POSTROOM_BOOTSTRAP_KEY="+given)
	if strings.Contains(s.stdout.String(), given) {
		t.Errorf("the given key is shown:\n%s", s.stdout)
	}
	if status, out := s.call(t, given, http.MethodGet, "/v1/inboxes", ""); status != http.StatusOK {
		t.Errorf("the given key: %d %v", status, out)
	}
	s.stop(t)

	s = serve(t, data, "POSTROOM_BOOTSTRAP_KEY="+given)
	if strings.Contains(s.log.String(), "bootstrap key is ignored") {
		t.Errorf("the second start warns about the existing key:\n%s", s.log)
	}
	s.stop(t)

	s = serve(t, data, "POSTROOM_BOOTSTRAP_KEY="+late)
	if status, _ := s.call(t, late, http.MethodGet, "/v1/inboxes", ""); status != http.StatusUnauthorized {
		t.Errorf("a key that was given after the first start: %d, want 401", status)
	}
	if !strings.Contains(s.log.String(), "bootstrap key is ignored") || strings.Contains(s.log.String(), late) {
		t.Errorf("the log must warn of that key without showing it:\n%s", s.log)
	}
}

func TestProfilesAreServed(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") // a port that is free, most likely still in a moment
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	serve(t, t.TempDir(), "POSTROOM_PPROF="+addr)
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]int{
		"": http.StatusOK, "localhost:" + port: http.StatusOK, "127.0.0.2": http.StatusOK, "[::1]:" + port: http.StatusOK,
		"evil.example:" + port: http.StatusMisdirectedRequest, "192.0.2.1": http.StatusMisdirectedRequest,
		"localhost.evil.example": http.StatusMisdirectedRequest, "127.0.0.1.evil.example:" + port: http.StatusMisdirectedRequest,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/debug/pprof/goroutine?debug=1", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("Host %q: status %d, want %d", host, res.StatusCode, want)
		}
	}
}

func TestMigrateOff(t *testing.T) {
	t.Parallel()
	onEngine(t, func(t *testing.T, data string, env []string) {
		off := append([]string{"POSTROOM_MIGRATE=off"}, env...)
		if text := refused(t, data, off); !strings.Contains(text, "older than this program: run `postroom migrate`") {
			t.Errorf("an empty database: %s", text)
		}
		steps, err := filepath.Glob("../../store/migrations/*.sql")
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{fmt.Sprintf("Migrations applied: %d.", len(steps)), "Migrations applied: 0."} {
			if out, stderr, err := runCommand(t, data, env, "migrate"); err != nil || !strings.Contains(out, want) {
				t.Errorf("migrate: %v %s%s, want %q", err, out, stderr, want)
			}
		}
		if s := serve(t, data, off...); s.key == "" {
			t.Error("no key is shown by the first start")
		}
	})
}

func TestNodesOnOnePostgreSQLNeedOneSecret(t *testing.T) {
	t.Parallel()
	database := "POSTROOM_DATABASE=" + testpg.Schema(t)
	secret := "POSTROOM_SECRET=" + strings.Repeat("the same on every node ", 2)
	first := serve(t, t.TempDir(), database, secret)
	second := serve(t, t.TempDir(), database, secret)
	if status, out := second.call(t, first.key, http.MethodGet, "/v1/inboxes", ""); status != http.StatusOK {
		t.Errorf("the first node's key on the second: %d %v", status, out)
	}
	data := t.TempDir()
	if text := refused(t, data, []string{database}); !strings.Contains(text, "belongs to an installation whose secret is not in "+data) {
		t.Errorf("a node without that secret: %s", text)
	}
}

func TestNodesMayShareADataFolder(t *testing.T) {
	t.Parallel()
	data, database := t.TempDir(), "POSTROOM_DATABASE="+testpg.Schema(t)
	serve(t, data, database)
	serve(t, data, database)
	if text := refused(t, data, nil); !strings.Contains(text, "is in use by another") {
		t.Errorf("an SQLite database beside them: %s", text)
	}
}
