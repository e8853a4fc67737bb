package web_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/argon2"

	"github.com/postroom/postroom/internal/approval"
	"github.com/postroom/postroom/internal/web"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// The row X3: requests from other sites, frames, guessing of passwords, fixation
// of sessions, and the flags of cookies.

const password = "four words of mine"

// withPassword creates a user with that password, cheaply hashed, who is signed
// in.
func (s *site) withPassword(t *testing.T, name string) store.User {
	t.Helper()
	link, token := web.NewLink(s.clock.Now())
	_, err := s.store.CreateUser(t.Context(), s.account, name, store.RoleAdmin, link)
	must(t, err)
	salt := []byte("of 16 characters")
	hash := fmt.Sprintf("$argon2id$v=19$m=8,t=1,p=1$%s$%s", base64.RawStdEncoding.EncodeToString(salt),
		base64.RawStdEncoding.EncodeToString(argon2.IDKey([]byte(password), salt, 1, 8, 1, 32)))
	u, err := s.store.UseLink(t.Context(), store.HashKey(token), hash, store.HashKey(name+"'s session"))
	must(t, err)
	return u
}

func signInAs(name, password string) []string { return []string{"name", name, "password", password} }

// forms are the addresses that forms are sent to: every one that is named in the
// code.
func forms(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	must(t, err)
	route, place := regexp.MustCompile(`d\.(?:post\("|open\("POST )([^"]*)"`), regexp.MustCompile(`\{[^}]*\}`)
	var paths []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		named := strings.ReplaceAll(string(text), `"+approval.LinkPath+"`, approval.LinkPath)
		for _, m := range route.FindAllStringSubmatch(named, -1) {
			paths = append(paths, place.ReplaceAllString(m[1], "x"))
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// Row X3 of docs/testing.md.
func TestFormsOfOtherSitesAreRefused(t *testing.T) {
	s := openSQLite(t)
	paths := forms(t)
	if len(paths) < 20 {
		t.Fatalf("only %d forms: %v", len(paths), paths)
	}
	from := [][]string{
		{"Sec-Fetch-Site", "cross-site"},
		{"Sec-Fetch-Site", "same-site"},
		{"Origin", "https://evil.example"},
		{"Origin", "null"},
	}
	for _, path := range paths {
		for _, headers := range from {
			s.visitAsUser(t).post(path, nil, headers...).want(t, http.StatusForbidden).has(t, "from another site")
		}
	}
	if _, err := s.store.SessionUser(t.Context(), store.HashKey(s.session)); err != nil {
		t.Errorf("the session after forms to sign out from elsewhere: %v", err)
	}
	s.visitAsUser(t).post("/sign-out", nil, "Sec-Fetch-Site", "same-origin", "Origin", s.url).want(t, http.StatusSeeOther)
}

// Visitors who are not signed in reach no page, and their forms are ignored (X3).
func TestPagesNeedASignIn(t *testing.T) {
	s := openSQLite(t)
	for _, path := range forms(t) {
		if path == "/sign-in" || path == "/sign-out" || strings.HasPrefix(path, "/setup/") || strings.HasPrefix(path, approval.LinkPath) {
			continue
		}
		if a := s.visit(t).post(path, nil).want(t, http.StatusSeeOther); a.header.Get("Location") != "/sign-in" {
			t.Errorf("%s leads to %s", path, a.header.Get("Location"))
		}
	}
	for _, path := range web.NavigationPaths() {
		a := s.visit(t).get(path).want(t, http.StatusSeeOther)
		if to := a.header.Get("Location"); !strings.HasPrefix(to, "/sign-in") {
			t.Errorf("%s leads to %s", path, to)
		}
	}
}

// Row X3 of docs/testing.md.
func TestNoPageShowsInAFrame(t *testing.T) {
	s := openSQLite(t)
	v := s.visitAsUser(t)
	pages := []response{v.get("/setup/x"), v.get("/sign-in"), s.visit(t).get("/"), v.post("/sign-out", nil, "Origin", "null")}
	for _, path := range web.NavigationPaths() {
		pages = append(pages, v.get(path).want(t, http.StatusOK))
	}
	for _, a := range pages {
		csp := a.header.Get("Content-Security-Policy")
		if a.header.Get("X-Frame-Options") != "DENY" || !strings.Contains(csp, "frame-ancestors 'none'") {
			t.Errorf("may show in a frame: %v", a.header)
		}
		if !strings.HasPrefix(csp, "default-src 'none';") || strings.Contains(csp, "unsafe") || strings.Contains(csp, "*") {
			t.Errorf("policy: %s", csp)
		}
		if a.header.Get("Cache-Control") != "no-store" || a.header.Get("Referrer-Policy") != "no-referrer" || a.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("headers: %v", a.header)
		}
		if strings.Contains(a.body, "style=") || strings.Contains(a.body, "<script>") || strings.Contains(a.body, " onclick") {
			t.Errorf("what the policy does not let run:\n%s", a.body)
		}
	}
}

// TestPasswordGuessesAreLimited signs in through two nodes. A network may try a
// name five times a minute, and all names together 20 times. Attempts from
// elsewhere do not keep a user from signing in (X3).
func TestPasswordGuessesAreLimited(t *testing.T) {
	t.Parallel()
	proxied := options{proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	storetest.RunNodes(t, func(t *testing.T, cfg store.Config) {
		s := newSite(t, cfg, proxied)
		sites := []*site{s, s}
		if s.store.Engine() == string(storetest.PostgreSQL) { // SQLite belongs to one process
			sites[1] = newNode(t, cfg, s, proxied)
		}
		s.withPassword(t, "bob")
		s.withPassword(t, "cy")
		try := func(i int, ip, name, pass string) response {
			return sites[i%2].visit(t).post("/sign-in", signInAs(name, pass), "X-Forwarded-For", ip)
		}
		for i := range 5 {
			try(i, "192.0.2.1", "BOB", "a guess").want(t, http.StatusBadRequest)
		}
		if a := try(1, "192.0.2.1", "bob", password).want(t, http.StatusTooManyRequests); a.header.Get("Retry-After") == "" {
			t.Errorf("no Retry-After: %v", a.header)
		}
		try(0, "198.51.100.9", "bob", password).want(t, http.StatusSeeOther) // from another network
		try(0, "192.0.2.1", "cy", password).want(t, http.StatusSeeOther)     // another user of the same network
		for i := range 20 {
			try(i, "203.0.113.1", fmt.Sprint("user", i), password).want(t, http.StatusBadRequest)
		}
		try(1, "203.0.113.1", "cy", password).want(t, http.StatusTooManyRequests)
		s.clock.Add(store.RateWindow)
		try(0, "192.0.2.1", "bob", password).want(t, http.StatusSeeOther)
	})
}

// The response does not reveal whether the user exists (X3).
func TestSignInHidesWhetherAUserExists(t *testing.T) {
	s := openSQLite(t)
	s.withPassword(t, "bob")
	one := s.visit(t).post("/sign-in", signInAs("bob", "wrong")).want(t, http.StatusBadRequest)
	two := s.visit(t).post("/sign-in", signInAs("eve", "wrong")).want(t, http.StatusBadRequest)
	if strings.ReplaceAll(one.body, "bob", "eve") != two.body {
		t.Errorf("the responses differ:\n%s\n%s", one.body, two.body)
	}
}

// Signing in never continues a session that an attacker planted (X3).
func TestSignInStartsANewSession(t *testing.T) {
	s := openSite(t)
	bob := s.withPassword(t, "bob")
	for _, planted := range []string{"chosen by an attacker", s.session} {
		v := s.visit(t)
		a := v.post("/sign-in", signInAs("bob", password), "Cookie", "postroom_session="+planted).want(t, http.StatusSeeOther)
		got := cookieOf(t, a, "postroom_session")
		if got.Value == planted || len(got.Value) < 40 {
			t.Errorf("the session is %q", got.Value)
		}
		if u, err := s.store.SessionUser(t.Context(), store.HashKey(got.Value)); err != nil || u.ID != bob.ID {
			t.Errorf("the session is of %+v, %v", u, err)
		}
		if _, err := s.store.SessionUser(t.Context(), store.HashKey(planted)); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the planted session %q: %v, want ErrNotFound", planted, err)
		}
	}
}

// Row X3 of docs/testing.md.
func TestCookiesAreForTheDashboardAlone(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		base, name string
		secure     bool
	}{{"https://mail.example.com", "__Host-postroom_session", true}, {"http://mail.example.com", "postroom_session", false}} {
		t.Run(tt.base, func(t *testing.T) {
			s := openSQLite(t, options{base: tt.base})
			s.withPassword(t, "bob")
			in := s.visit(t).post("/sign-in", signInAs("bob", password)).want(t, http.StatusSeeOther)
			out := s.visit(t).post("/sign-out", nil, "Cookie", tt.name+"="+s.session).want(t, http.StatusSeeOther)
			for _, c := range []*http.Cookie{cookieOf(t, in, tt.name), cookieOf(t, out, tt.name), cookieOf(t, out, "postroom_notice")} {
				if !c.HttpOnly || c.Secure != tt.secure || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" {
					t.Errorf("cookie: %s", c)
				}
			}
			if _, err := s.store.SessionUser(t.Context(), store.HashKey(s.session)); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("after signing out: %v, want ErrNotFound", err)
			}
		})
	}
}

func cookieOf(t *testing.T, a response, name string) *http.Cookie {
	t.Helper()
	for _, line := range a.header.Values("Set-Cookie") {
		c, err := http.ParseSetCookie(line)
		must(t, err)
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no cookie %s: %v", name, a.header)
	return nil
}

// Signing in leads to no other site (X3).
func TestSignInRedirectsWithinTheSite(t *testing.T) {
	s := openSQLite(t)
	s.withPassword(t, "bob")
	for next, want := range map[string]string{
		"/?a=b": "/?a=b", "//evil.example": "/", "///evil.example": "/", "https://evil.example/": "/", `/\evil.example`: "/", "/\t/evil.example": "/", "javascript:alert(1)": "/", "": "/",
	} {
		s.clock.Add(store.RateWindow)
		a := s.visit(t).post("/sign-in", append(signInAs("bob", password), "next", next)).want(t, http.StatusSeeOther)
		if got := a.header.Get("Location"); got != want {
			t.Errorf("next=%q leads to %q, want %q", next, got, want)
		}
	}
}

// H3, for people: a removed user is signed out with the next request.
func TestRemovedUserIsSignedOut(t *testing.T) {
	s := openSite(t)
	v := s.visitAsUser(t)
	v.get("/").want(t, http.StatusOK)
	_, err := s.store.RemoveUser(t.Context(), s.user.Name)
	must(t, err)
	v.get("/").want(t, http.StatusSeeOther)
}
