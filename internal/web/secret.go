package web

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/postroom/postroom/store"
)

// secret is a page that shows a new secret once.
type secret struct{ Title, What, Value, Use, Back, BackTitle string }

// leaveSecret stores a new secret for the page at path, which shows it once, and
// redirects there with a query. Reloading that page does not submit the form again.
func (p *page) leaveSecret(path string, query url.Values, value string) error {
	if err := p.d.store.LeaveNote(p.ctx(), p.session(), path, value); err != nil {
		return err
	}
	return p.goTo((&url.URL{Path: path, RawQuery: query.Encode()}).String())
}

// takeSecret returns the secret that leaveSecret stored for this page. If there
// is none, it redirects to back with a notice and ok is false.
func (p *page) takeSecret(back string) (value string, ok bool, err error) {
	if p.r.Method != http.MethodGet { // HEAD does not use up the secret
		return "", false, p.goTo(back)
	}
	value, err = p.d.store.TakeNote(p.ctx(), p.session(), p.r.URL.Path)
	if errors.Is(err, store.ErrNotFound) {
		p.leaveNotice(notice{Text: "The secret was shown once and cannot be shown again.", Bad: true})
		return "", false, p.goTo(back)
	}
	return value, err == nil, err
}
