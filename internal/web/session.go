package web

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/store"
)

// newToken returns a random token and its hash. Only the hash is stored.
func newToken() (token string, hash []byte) {
	var b [32]byte
	_, _ = rand.Read(b[:]) // crypto/rand never fails
	token = base64.RawURLEncoding.EncodeToString(b[:])
	return token, hashToken(token)
}

func hashToken(token string) []byte { return store.HashKey(token) }

// sessionCookie returns the name of the session cookie. Over HTTPS it has the
// __Host- prefix, so that other hosts and plain HTTP cannot set it.
func (d *Dashboard) sessionCookie() string {
	if d.overHTTPS() {
		return "__Host-postroom_session"
	}
	return "postroom_session"
}

// session returns the hash of the request's session token, or nil.
func (p *page) session() []byte {
	c, err := p.r.Cookie(p.d.sessionCookie())
	if err != nil || c.Value == "" {
		return nil
	}
	return hashToken(c.Value)
}

// keepSession sets the cookie of a new session, and records who began it.
func (p *page) keepSession(token string) error {
	p.setCookie(p.d.sessionCookie(), token, int(store.SessionTTL.Seconds()))
	return p.d.store.DescribeSession(p.ctx(), hashToken(token), httpapi.ClientIP(p.r, p.d.cfg.TrustedProxies).String(), browserName(p.r.UserAgent()))
}

// browserName is what a person calls the browser of a User-Agent, such as "Firefox on
// Linux"; empty if it has none of the names that we know.
func browserName(agent string) string {
	find := func(names [][2]string) string {
		for _, n := range names { // those that use the names of others come first
			if strings.Contains(agent, n[0]) {
				return n[1]
			}
		}
		return ""
	}
	browser := find([][2]string{{"Edg", "Edge"}, {"OPR/", "Opera"}, {"Firefox/", "Firefox"}, {"FxiOS/", "Firefox"}, {"CriOS/", "Chrome"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"}, {"curl/", "curl"}})
	system := find([][2]string{{"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Android", "Android"}, {"Windows", "Windows"}, {"Macintosh", "macOS"}, {"CrOS", "ChromeOS"}, {"Linux", "Linux"}})
	if browser == "" || system == "" {
		return browser + system
	}
	return browser + " on " + system
}

// signedIn wraps f so that it runs as the signed-in user, whose role must include
// least. Other visitors are redirected to the sign-in page.
func (d *Dashboard) signedIn(least store.Role, f func(*page) error) func(*page) error {
	return func(p *page) error {
		err := p.recognise()
		if errors.Is(err, store.ErrNotFound) && d.cfg.Guest != nil && p.r.Method == http.MethodGet {
			err = p.admit(d.cfg.Guest(p.r))
		}
		if errors.Is(err, store.ErrNotFound) {
			return p.goTo(p.signInFirst())
		}
		if err != nil {
			return err
		}
		if !p.user.Role.Includes(least) {
			return errRole
		}
		return f(p)
	}
}

// recognise sets the page's user from the session. It returns store.ErrNotFound
// if no user is signed in.
func (p *page) recognise() error {
	hash := p.session()
	if hash == nil {
		return store.ErrNotFound
	}
	u, err := p.d.store.SessionUser(p.ctx(), hash)
	if err != nil {
		return err
	}
	p.user = u
	p.r = p.r.WithContext(httpapi.AsPerson(p.ctx(), p.d.person(p.r, u, hash)))
	return nil
}

// admit signs in the user with this name, without a password. It returns
// store.ErrNotFound if there is none.
func (p *page) admit(name string) error {
	u, err := p.d.store.UserByName(p.ctx(), name)
	if err != nil {
		return err
	}
	token, hash := newToken()
	if err := p.d.store.StartSession(p.ctx(), u, hash); err != nil {
		return err
	}
	p.r.AddCookie(&http.Cookie{Name: p.d.sessionCookie(), Value: token}) //nolint:gosec // of the request, not of a response
	return errors.Join(p.keepSession(token), p.recognise())
}

// person returns the API caller for a user whose session token has this hash.
func (d *Dashboard) person(r *http.Request, u store.User, session []byte) httpapi.Person {
	return httpapi.Person{
		Seq: u.Seq, AccountID: u.AccountID, ID: u.ID, Role: u.Role, IP: httpapi.ClientIP(r, d.cfg.TrustedProxies),
		StillSignedIn: func(ctx context.Context) error {
			_, err := d.store.SessionUser(ctx, session)
			return err
		},
	}
}

// signInFirst returns the URL of the sign-in page, which redirects back after
// sign-in.
func (p *page) signInFirst() string {
	if p.r.Method != http.MethodGet || p.r.URL.Path == "/" {
		return "/sign-in"
	}
	return "/sign-in?next=" + url.QueryEscape(p.r.URL.RequestURI())
}

// ownPath returns to if it is a path on this host, and "/" otherwise.
func ownPath(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(to, "/") ||
		strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\\\r\n\t") {
		return "/"
	}
	return to
}
