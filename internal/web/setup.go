package web

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/postroom/postroom/store"
)

// setupView is the page of a one-time link.
type setupView struct {
	Token, Name string
	Shortest    int
	Form        form
}

// errLink is the response for links that are used, expired or unknown.
var errLink = &failure{
	http.StatusNotFound, "This link has expired",
	"A link works once, for 24 hours, until a newer link replaces it. Ask the operator for a new one: “postroom user reset”.",
}

// linkTTL is the lifetime of a one-time link.
const linkTTL = 24 * time.Hour

// NewLink returns a one-time link and its token. Only the hash of the token is
// stored.
func NewLink(now time.Time) (store.UserLink, string) {
	token, hash := newToken()
	return store.UserLink{Hash: hash, ExpiresAt: now.Add(linkTTL)}, token
}

// SetupURL returns the URL of the one-time link with this token.
func SetupURL(base *url.URL, token string) string { return base.JoinPath("setup", token).String() }

// showSetup does not use up the link, because some programs prefetch links.
func (d *Dashboard) showSetup(p *page) error {
	u, err := d.linkUser(p)
	if err != nil {
		return err
	}
	return p.show("setup", setupView{p.r.PathValue("token"), u.Name, shortestPassword, p.formOf(nil)})
}

// linkUser returns the user of the link in the path.
func (d *Dashboard) linkUser(p *page) (store.User, error) {
	u, err := d.store.LinkUser(p.ctx(), hashToken(p.r.PathValue("token")))
	if errors.Is(err, store.ErrNotFound) {
		return u, errLink
	}
	return u, err
}

// setPassword checks the link before it hashes the password, so that strangers
// cannot make the server spend memory.
func (d *Dashboard) setPassword(p *page) error {
	if _, err := d.linkUser(p); err != nil {
		return err
	}
	hash, err := p.newPassword()
	if err != nil {
		return p.again(err, d.showSetup)
	}
	token, session := newToken()
	u, err := d.store.UseLink(p.ctx(), hashToken(p.r.PathValue("token")), hash, session)
	if errors.Is(err, store.ErrNotFound) {
		return errLink
	}
	if err != nil {
		return err
	}
	if err := d.endSession(p); err != nil {
		return err
	}
	d.log.InfoContext(p.ctx(), "password set by a one-time link", "user_id", u.ID, "client", p.client())
	if err := p.keepSession(token); err != nil {
		return err
	}
	var key *string
	if u.Role == store.RoleAdmin {
		key = d.firstKey.Swap(nil)
	}
	if key != nil {
		if err := d.store.LeaveNote(p.ctx(), hashToken(token), firstKeyPath, *key); err != nil {
			return err
		}
		return p.goTo(firstKeyPath)
	}
	return p.done("/", "Password set. You are signed in.")
}

// firstKeyPath is the page with the first API key, after the first start.
const firstKeyPath = "/setup/first-key"

// showFirstKey shows the first key once more.
func (d *Dashboard) showFirstKey(p *page) error {
	return p.showOnce(secret{
		Title: "Welcome", What: "Your first API key", Back: "/", BackTitle: "Get started",
		Use:     "It has full access. Copy it now: Postroom stores only its hash and does not show it again. Or connect an agent, which gets a key of its own:",
		Command: "postroom login " + d.cfg.BaseURL.String() + " && postroom agent setup claude-code",
	})
}
