package web

import (
	"errors"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/postroom/postroom/store"
)

const (
	// maxSignIns is how many sign-in attempts a network may make for one name in
	// a minute. Attempts are not counted by name alone, because then strangers
	// could lock a user out.
	maxSignIns = 5
	// maxNetworkSignIns is the same limit for all names together.
	maxNetworkSignIns = 20
	// longestName is the maximum length of a user name.
	longestName = 100
)

func (d *Dashboard) askSignIn(p *page) error {
	return p.show("sign-in", p.formOf(url.Values{"next": {ownPath(p.r.URL.Query().Get("next"))}}))
}

// signIn checks the rate limits before the password. The error does not reveal
// whether the name or the password was wrong.
func (d *Dashboard) signIn(p *page) error {
	name := p.field("name")
	err := d.countSignIn(p, name)
	if pr, ok := refusal(err); ok {
		d.log.WarnContext(p.ctx(), "too many sign-in attempts", "client", p.client())
		return p.again(pr, d.askSignIn)
	}
	if err != nil {
		return err
	}
	u, ok, err := d.findUser(p, name, p.form.Get("password"))
	if err != nil {
		return err
	}
	token, hash := newToken()
	if ok {
		err = d.store.StartSession(p.ctx(), u, hash)
	}
	if !ok || errors.Is(err, store.ErrNotFound) {
		d.log.InfoContext(p.ctx(), "sign-in refused", "client", p.client())
		return p.again(problem{Message: "Wrong name or password.", status: http.StatusBadRequest}, d.askSignIn)
	}
	if err != nil {
		return err
	}
	if err := d.endSession(p); err != nil {
		return err
	}
	d.log.InfoContext(p.ctx(), "signed in", "user_id", u.ID, "client", p.client())
	if err := p.keepSession(token); err != nil {
		return err
	}
	return p.goTo(ownPath(p.form.Get("next")))
}

// countSignIn counts an attempt against the limit of the network and against that of the
// network and the name. The error may be the problem that the attempt is over a limit.
func (d *Dashboard) countSignIn(p *page, name string) error {
	rate, err := d.store.TakeRate(p.ctx(), store.RateSignIn, p.client(), maxNetworkSignIns)
	if err == nil && !rate.Refused && utf8.RuneCountInString(name) <= longestName {
		rate, err = d.store.TakeRate(p.ctx(), store.RateName, p.client()+" "+strings.ToLower(name), maxSignIns)
	}
	if err != nil || !rate.Refused {
		return err
	}
	p.w.Header().Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(rate.Ends.Sub(d.now()).Seconds())))))
	pr := fieldProblem("current", "Too many attempts. Wait a minute, then try again.")
	pr.status = http.StatusTooManyRequests
	return pr
}

// findUser returns the user with this name. ok is false if the name or the
// password is wrong.
func (d *Dashboard) findUser(p *page, name, password string) (store.User, bool, error) {
	if utf8.RuneCountInString(name) > longestName || utf8.RuneCountInString(password) > longestPassword {
		return store.User{}, false, nil
	}
	u, err := d.store.UserByName(p.ctx(), name)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return u, false, err
	}
	ok, err := d.passwords.Matches(p.ctx(), u.Password, password)
	return u, ok, err
}

// endSession ends the session of the request, if any.
func (d *Dashboard) endSession(p *page) error {
	if hash := p.session(); hash != nil {
		return d.store.EndSession(p.ctx(), hash)
	}
	return nil
}

func (d *Dashboard) signOut(p *page) error {
	if err := d.endSession(p); err != nil {
		return err
	}
	p.setCookie(d.sessionCookie(), "", -1)
	return p.done("/sign-in", "You are signed out.")
}
