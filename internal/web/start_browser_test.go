package web_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/postroom/postroom/gen"
)

// A new user creates an inbox on the first page, sees a code arrive there without
// a reload, and creates a key. Then the list of first steps is gone.
func TestBrowserGetsStarted(t *testing.T) {
	t.Parallel()
	oneEngine(t, func(t *testing.T, s *site) {
		b := s.browse(t)
		b.open("/")
		b.shows("Get started", "Create an inbox")
		b.shoot("start-empty")
		b.fill(".start [name=name]", "first")
		b.click(".start form button")
		b.shows("first@", "Waiting for a message", "/simulate")
		b.do(chromedp.Click(chromedp.CSS("label[for=tab-mcp]")))
		b.shows(s.url+"/mcp", "mcpServers")
		b.copies(".panel:nth-of-type(6) button", b.text("#code-mcp"))
		b.do(marked)
		list, err := s.api.ListInboxes(s.asUser(t), gen.ListInboxesParams{})
		must(t, err)
		s.put(t, &list.Data[0], codeMail)
		b.waits(`document.querySelector('#start-code')?.textContent === '482913'`)
		b.waits(`window.marked`)
		b.shoot("start")
		_, err = s.api.CreateApiKey(s.asUser(t), &gen.ApiKeyCreate{Name: "agent"})
		must(t, err)
		b.open("/")
		if strings.Contains(b.text("main"), "Get started") {
			t.Error("the first steps are still shown when all are done")
		}
	})
}

// Without a script, the same steps work by forms, and each step that is done has
// no form.
func TestGetsStartedByForms(t *testing.T) {
	t.Parallel()
	oneEngine(t, func(t *testing.T, s *site) {
		v := s.visitAsUser(t)
		if a := v.post("/inboxes", []string{"start", "1", "name", "first"}).want(t, 303); a.header.Get("Location") != "/" {
			t.Errorf("after the inbox: %s", a.header.Get("Location"))
		}
		list, err := s.api.ListInboxes(s.asUser(t), gen.ListInboxesParams{})
		must(t, err)
		id := list.Data[0].ID
		v.get("/").want(t, 200).has(t, "first@", `action="/inboxes/`+id+`/simulate"`)
		if a := v.post("/inboxes/"+id+"/simulate", []string{"start", "1"}).want(t, 303); a.header.Get("Location") != "/" {
			t.Errorf("after the message: %s", a.header.Get("Location"))
		}
		page := v.get("/").want(t, 200).has(t, "482913", "Create key")
		if strings.Contains(page.body, "/simulate\" method") || strings.Contains(page.body, `action="/inboxes/`+id) {
			t.Error("the step is done, but its form is still shown")
		}
		v.post("/inboxes/ibx_nope/simulate", nil).want(t, 404)
	})
}
