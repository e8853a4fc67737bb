package web_test

import (
	"strings"
	"testing"

	"github.com/postroom/postroom/gen"
)

// Without a script, the same steps work by forms, and each step that is done has
// no form.
func TestGetsStartedByForms(t *testing.T) {
	s := openSQLite(t)
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
	if a := v.post("/keys", []string{"start", "1", "name", "agent", "preset", "agent", "inbox_ids", id}).want(t, 303); a.header.Get("Location") != "/" {
		t.Errorf("after the key: %s", a.header.Get("Location"))
	}
	for range 2 { // the examples keep the key for a while
		v.get("/").want(t, 200).has(t, "Connect your agent", "Authorization: Bearer sk_")
	}
	v.post("/started", nil).want(t, 303)
	if strings.Contains(v.get("/").want(t, 200).body, "Get started") {
		t.Error("the list is shown after it was dismissed")
	}
	v.post("/inboxes/ibx_nope/simulate", nil).want(t, 404)
}
