package web

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/postroom/postroom/handlers"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/store"
)

// newToken returns a random token, which opens what is kept under its hash.
func newToken() (token string, hash []byte) {
	var b [32]byte
	_, _ = rand.Read(b[:]) // crypto/rand never fails
	token = base64.RawURLEncoding.EncodeToString(b[:])
	return token, hashToken(token)
}

func hashToken(token string) []byte { return store.HashKey(token) }

// sessionCookie is the name of the cookie that holds the session's token. By
// https it is one that no other host, nor plain http, can set.
func (d *Dashboard) sessionCookie() string {
	if d.overHTTPS() {
		return "__Host-postroom_session"
	}
	return "postroom_session"
}

// session is the hash of the token that the request came with, or nil.
func (p *page) session() []byte {
	c, err := p.r.Cookie(p.d.sessionCookie())
	if err != nil || c.Value == "" {
		return nil
	}
	return hashToken(c.Value)
}

// keepSession has the browser keep the token of a session.
func (p *page) keepSession(token string) {
	p.setCookie(p.d.sessionCookie(), token, int(store.SessionTTL.Seconds()))
}

// signedIn has f answer for those who are signed in, as themselves, and sends the
// others to sign in.
func (d *Dashboard) signedIn(f func(*page) error) func(*page) error {
	return func(p *page) error {
		err := p.recognise()
		if errors.Is(err, store.ErrNotFound) {
			return p.goTo(p.signInFirst())
		}
		if err != nil {
			return err
		}
		return f(p)
	}
}

// recognise finds out who is signed in, and has the page be theirs.
// store.ErrNotFound when nobody is.
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
	p.r = p.r.WithContext(handlers.AsPerson(p.ctx(), p.d.person(p.r, u, hash)))
	return nil
}

// person is who calls the API for a request of a user, whose session's token has
// this hash.
func (d *Dashboard) person(r *http.Request, u store.User, session []byte) handlers.Person {
	return handlers.Person{
		Seq: u.Seq, AccountID: u.AccountID, ID: u.ID, IP: httpapi.ClientIP(r, d.cfg.TrustedProxies),
		StillSignedIn: func(ctx context.Context) error {
			_, err := d.store.SessionUser(ctx, session)
			return err
		},
	}
}

// signInFirst is where to sign in, and to come back from to a page that was
// asked for.
func (p *page) signInFirst() string {
	if p.r.Method != http.MethodGet || p.r.URL.Path == "/" {
		return "/sign-in"
	}
	return "/sign-in?next=" + url.QueryEscape(p.r.URL.RequestURI())
}

// ownPath returns to when it leads to a page of this host, and "/" when not.
func ownPath(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(to, "/") ||
		strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\\\r\n\t") {
		return "/"
	}
	return to
}
