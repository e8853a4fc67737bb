package main

import (
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
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

func TestFirstStartLinksToTheDashboard(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	s := serve(t, data)
	link := setupLink.FindString(s.stdout.String())
	if status := s.page(t, link); status != http.StatusOK {
		t.Errorf("the link %q of the first start: %d", link, status)
	}
	s.seesFirstKey(t, link)
	if status := s.page(t, s.api+"/"); status != http.StatusSeeOther {
		t.Errorf("the dashboard without a session: %d", status)
	}
	if status, out := s.call(t, "", http.MethodGet, "/nowhere", ""); status != http.StatusNotFound || out["error"] == nil {
		t.Errorf("an unknown path: %d %v, want the JSON of the API", status, out)
	}
	if strings.Contains(s.log.String(), "/setup/") {
		t.Errorf("the link is in the log:\n%s", s.log)
	}
	s.stop(t)
	if again := serve(t, data); setupLink.MatchString(again.stdout.String()) {
		t.Errorf("the second start shows a link:\n%s", again.stdout)
	}
}

// seesFirstKey sets the password by the link of the first start, which leads to the page
// with the first key, once.
func (s *served) seesFirstKey(t *testing.T, link string) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	read := func(res *http.Response, err error) (string, string) {
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		if err = errors.Join(err, res.Body.Close()); err != nil {
			t.Fatal(err)
		}
		return res.Request.URL.Path, string(body)
	}
	const password = "four unrelated words here"
	path, body := read(client.PostForm(link, url.Values{"password": {password}, "again": {password}}))
	if path != "/setup/first-key" || !strings.Contains(body, s.key) || !strings.Contains(body, "postroom agent setup claude-code") {
		t.Errorf("after the password: %s, with the key: %t\n%.500s", path, strings.Contains(body, s.key), body)
	}
	if path, body = read(client.Get(s.api + "/setup/first-key")); path != "/" || strings.Contains(body, s.key) {
		t.Errorf("the second time: %s", path)
	}
}

func TestDashboardOff(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), "POSTROOM_DASHBOARD=off")
	if strings.Contains(s.stdout.String(), "Dashboard") {
		t.Errorf("the output mentions the dashboard:\n%s", s.stdout)
	}
	if status, out := s.call(t, "", http.MethodGet, "/sign-in", ""); status != http.StatusNotFound {
		t.Errorf("sign-in: %d %v", status, out)
	}
}

func TestUserCommands(t *testing.T) {
	t.Parallel()
	onEngine(t, func(t *testing.T, data string, env []string) {
		s := serve(t, data, env...)
		run := func(want string, args ...string) string {
			t.Helper()
			out, stderr, err := runCommand(t, data, env, args...)
			if err != nil && !strings.Contains(stderr+err.Error(), want) || !strings.Contains(out+stderr, want) {
				t.Errorf("%v: %v\n%s%s, want %q", args, err, out, stderr, want)
			}
			return out
		}
		first := setupLink.FindString(run("who signs in as ann@example.com", "user", "create", "--name", "Ann@example.com", "--role", "viewer"))
		run("user ann@example.com already exists", "user", "create", "--name", "ann@example.com")
		run("ann@example.com  viewer  not set yet", "user", "list")
		second := setupLink.FindString(run("/setup/", "user", "reset", "ann@example.com"))
		if first == "" || second == "" || first == second {
			t.Errorf("links %q and %q", first, second)
		}
		path := func(link string) string { return s.api + link[strings.Index(link, "/setup/"):] }
		if a, b := s.page(t, path(first)), s.page(t, path(second)); a != http.StatusNotFound || b != http.StatusOK {
			t.Errorf("status of the first link %d, of the second %d; want 404 and 200", a, b)
		}
		run("Removed ann@example.com.", "user", "remove", "ann@example.com")
		run("user ann@example.com not found", "user", "remove", "ann@example.com")
	})
}
