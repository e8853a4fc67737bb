package web

import (
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/postroom/postroom/store"
)

// noticeCookie holds the notice for the next page.
const noticeCookie = "postroom_notice"

// maxNotice bounds the length of a notice, so that it fits into a cookie.
const maxNotice = 1000

// notice is shown once, on the page that follows a form.
type notice struct {
	Text string
	Bad  bool // an error
}

// leaveNotice stores n in a signed cookie for the next page. The signature keeps
// other sites from planting notices.
func (p *page) leaveNotice(n notice) {
	text := []rune(n.Text)
	mark := "+"
	if n.Bad {
		mark = "-"
	}
	body := base64.RawURLEncoding.EncodeToString([]byte(mark + string(text[:min(len(text), maxNotice/4)])))
	p.setCookie(noticeCookie, body+"."+p.d.sign("notice "+body), 60)
}

// takeNotice returns the stored notice, if any, and deletes it. The notice is for
// the next page that the user opens. Scripts, which read pages in the background,
// request exactly text/html and do not get it.
func (p *page) takeNotice() notice {
	c, err := p.r.Cookie(noticeCookie)
	if err != nil || p.r.Header.Get("Accept") == "text/html" {
		return notice{}
	}
	p.setCookie(noticeCookie, "", -1)
	body, mac, _ := strings.Cut(c.Value, ".")
	text, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil || len(text) == 0 || !p.signedAs(mac, "notice "+body) {
		return notice{}
	}
	return notice{Text: string(text[1:]), Bad: text[0] == '-'}
}

// setCookie sets a cookie for the dashboard; a negative maxAge deletes it.
func (p *page) setCookie(name, value string, maxAge int) {
	http.SetCookie(p.w, &http.Cookie{ //nolint:gosec // Secure wherever people come by https
		Name: name, Value: value, Path: "/", MaxAge: maxAge,
		HttpOnly: true, Secure: p.d.overHTTPS(), SameSite: http.SameSiteLaxMode,
	})
}

func (d *Dashboard) overHTTPS() bool { return d.cfg.BaseURL.Scheme == "https" }

// secret is a page that shows a new secret once.
type secret struct{ Title, What, Value, Use, Command, Back, BackTitle string }

// leaveSecret stores a new secret for the page at path, which shows it once, and
// redirects there with a query. Reloading that page does not submit the form again.
func (p *page) leaveSecret(path string, query url.Values, value string) error {
	if err := p.d.store.LeaveNote(p.ctx(), p.session(), path, value); err != nil {
		return err
	}
	return p.goTo((&url.URL{Path: path, RawQuery: query.Encode()}).String())
}

// showOnce shows the secret that leaveSecret stored for this page.
func (p *page) showOnce(s secret) (err error) {
	ok := false
	if s.Value, ok, err = p.takeSecret(s.Back); err != nil || !ok {
		return err
	}
	return p.show("secret", s)
}

// takeSecret returns the secret that leaveSecret stored for this page. If there
// is none, it redirects to back with a notice and ok is false.
func (p *page) takeSecret(back string) (value string, ok bool, err error) {
	if p.r.Method != http.MethodGet { // HEAD does not use up the secret
		return "", false, p.goTo(back)
	}
	value, err = p.d.store.TakeNote(p.ctx(), p.session(), p.r.URL.Path)
	if errors.Is(err, store.ErrNotFound) {
		return "", false, p.failed(back, "The secret was shown once and cannot be shown again.")
	}
	return value, err == nil, err
}
