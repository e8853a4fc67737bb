package web_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/postroom/postroom/internal/web"
	"github.com/postroom/postroom/store"
)

// A new install: the link of the first start, a password, out, and in again.
func TestBrowserSignsIn(t *testing.T) {
	t.Parallel()
	oneEngine(t, func(t *testing.T, s *site) {
		link, token := web.NewLink(s.clock.Now())
		_, err := s.store.CreateUser(t.Context(), s.account, "admin", store.RoleAdmin, link)
		must(t, err)
		base, err := url.Parse(s.url)
		must(t, err)
		b := s.browseSignedOut(t)
		b.expect("422")
		setup := web.SetupURL(base, token)[len(s.url):]
		b.open(setup)
		b.shoot("setup")
		b.fill("[name=password]", "four words of mine")
		b.fill("[name=again]", "four words of hers")
		b.loads(http.StatusUnprocessableEntity, chromedp.Click(chromedp.CSS("main button")))
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
		b.loads(http.StatusUnprocessableEntity, chromedp.Click(chromedp.CSS("main button")))
		b.shows("Wrong name or password.")
		b.shoot("sign-in")
		b.fill("[name=password]", "four words of mine")
		b.click("main button")
		b.shows("Overview")
	})
}

// With the keyboard alone one gets past the navigation, and sees where one is.
func TestBrowserByKeyboard(t *testing.T) {
	t.Parallel()
	oneEngine(t, func(t *testing.T, s *site) {
		b := s.browse(t)
		b.open("/domains")
		b.do(chromedp.KeyEvent(kb.Tab))
		if got := b.eval("document.activeElement.textContent"); got != "Skip to content" {
			t.Errorf("the first stop is %q", got)
		}
		b.do(chromedp.KeyEvent(kb.Enter))
		if got := b.eval("document.activeElement.id"); got != "main" {
			t.Errorf("it leads to %q", got)
		}
		b.do(chromedp.KeyEvent(kb.Tab))
		if got := b.eval("document.activeElement.name"); got != "domain" {
			t.Errorf("then comes %q", got)
		}
		if got := b.eval("getComputedStyle(document.activeElement).outlineStyle"); got != "solid" {
			t.Errorf("the outline of where one is: %q", got)
		}
		b.do(chromedp.KeyEvent("corner-shop.example"))
		b.loads(http.StatusOK, chromedp.KeyEvent(kb.Enter))
		b.shows("corner-shop.example added")
	})
}

// On a phone the navigation is behind a button.
func TestBrowserOpensTheMenuOfAPhone(t *testing.T) {
	t.Parallel()
	oneEngine(t, func(t *testing.T, s *site) {
		b := s.browse(t)
		b.do(chromedp.EmulateViewport(390, 844))
		b.open("/keys")
		b.do(chromedp.Click(chromedp.CSS(".menu summary"), chromedp.NodeVisible))
		b.picture("menu-phone")
		b.click(".menu a[href='/webhooks']")
		b.shows("No webhooks yet")
	})
}
