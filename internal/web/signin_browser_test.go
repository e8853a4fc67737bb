package web_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/postroom/postroom/internal/web"
	"github.com/postroom/postroom/store"
)

// A new install: the link of the first start, a password, out, and in again.
func TestBrowserSignsIn(t *testing.T) {
	s := openSQLite(t)
	link, token := web.NewLink(s.clock.Now())
	_, err := s.store.CreateUser(t.Context(), s.account, "admin", store.RoleAdmin, link)
	must(t, err)
	base, err := url.Parse(s.url)
	must(t, err)
	b := s.browseSignedOut(t)
	b.expect("400")
	setup := web.SetupURL(base, token)[len(s.url):]
	b.open(setup)
	b.shoot("setup")
	b.fill("[name=password]", "four words of mine")
	b.fill("[name=again]", "four words of hers")
	b.loads(http.StatusBadRequest, chromedp.Click(chromedp.CSS("main button")))
	b.shows("The passwords do not match.")
	b.fill("[name=password]", "four words of mine")
	b.fill("[name=again]", "four words of mine")
	b.click("main button")
	b.shows("Password set", "Overview")
	b.shoot("overview")
	b.click(".who button")
	b.shows("You are signed out.")
	b.fill("[name=name]", "Admin")
	b.fill("[name=password]", "not what it is")
	b.loads(http.StatusBadRequest, chromedp.Click(chromedp.CSS("main button")))
	b.shows("Wrong name or password.")
	b.shoot("sign-in")
	b.fill("[name=password]", "four words of mine")
	b.click("main button")
	b.shows("Overview")
}
