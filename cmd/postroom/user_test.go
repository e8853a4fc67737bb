package main

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
)

var setupLink = regexp.MustCompile(`http://\S+/setup/[A-Za-z0-9_-]{43}`)

// page asks for a page of the dashboard and returns its status.
func (s *served) page(t *testing.T, url string) int {
	t.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode
}

func TestDashboardOff(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), "POSTROOM_DASHBOARD=off")
	if strings.Contains(s.stdout.String(), "Dashboard") {
		t.Errorf("it tells of the dashboard:\n%s", s.stdout)
	}
	if status, out := s.call(t, "", http.MethodGet, "/sign-in", ""); status != http.StatusNotFound {
		t.Errorf("sign-in: %d %v", status, out)
	}
}

func TestUserCommands(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, data string, env []string) {
		s := serve(t, data, env...)
		run := func(want string, args ...string) string {
			t.Helper()
			out, stderr, err := runCommand(t, data, env, args...)
			if err != nil && !strings.Contains(stderr+err.Error(), want) || !strings.Contains(out+stderr, want) {
				t.Errorf("%v: %v\n%s%s, want %q", args, err, out, stderr, want)
			}
			return out
		}
		first := setupLink.FindString(run("who signs in as ann@example.com", "user", "create", "--name", "Ann@example.com"))
		run("there is a user", "user", "create", "--name", "ann@example.com")
		run("ann@example.com  not set yet", "user", "list")
		second := setupLink.FindString(run("/setup/", "user", "reset", "ann@example.com"))
		if first == "" || second == "" || first == second {
			t.Errorf("links %q and %q", first, second)
		}
		path := func(link string) string { return s.api + link[strings.Index(link, "/setup/"):] }
		if a, b := s.page(t, path(first)), s.page(t, path(second)); a != http.StatusNotFound || b != http.StatusOK {
			t.Errorf("the first link answers %d, the second %d; want 404 and 200", a, b)
		}
		run("Removed ann@example.com.", "user", "remove", "ann@example.com")
		run("there is no user ann@example.com", "user", "remove", "ann@example.com")
	})
}
