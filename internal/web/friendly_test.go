package web_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/postroom/postroom/gen"
)

// The approval page shows which key wrote a draft and shows a long message to its
// end, or warns that there may be more.
func TestApprovalShowsAuthorAndEnd(t *testing.T) {
	s := openSQLite(t)
	key, err := s.api.CreateApiKey(s.asUser(t), &gen.ApiKeyCreate{Name: "order bot"})
	must(t, err)
	in := s.newInbox(t, "buyer", gen.SendPolicyApproval)
	v := s.visitAsUser(t)
	response := v.do("POST", "/v1/inboxes/"+in.ID+"/messages",
		`{"to":"ann@out.example","subject":"Order","text":"20 chairs","html":"`+strings.Repeat("<p>20 chairs</p>", 150)+`"}`,
		[]string{"Authorization", "Bearer " + key.Key, "Content-Type", "application/json"}).want(t, 202)
	id := regexp.MustCompile(`drf_\w+`).FindString(response.body)
	page := v.get("/approvals/"+id).want(t, 200).has(t, "key <bdi>order bot</bdi>", key.ID, "Scroll inside it to see the rest", "Open in a new tab", `<details class="more text" open>`)
	m := regexp.MustCompile(`class="document whole" height="(\d+)"`).FindStringSubmatch(page.body)
	if m == nil {
		t.Fatalf("the frame has no height: %s", page.body)
	}
	if height, err := strconv.Atoi(m[1]); err != nil || height < 150*21 || height > 20_000 {
		t.Errorf("the frame is %s pixels high, for 150 lines", m[1])
	}
}

// A browser gets a page for a missing path; programs get the API's response.
func TestMissingPages(t *testing.T) {
	s := openSQLite(t)
	const browser = "text/html,application/xhtml+xml,*/*;q=0.8"
	for name, v := range map[string]*visitor{"signed in": s.visitAsUser(t), "a stranger": s.visit(t)} {
		page := v.get("/no/such/page", "Accept", browser).want(t, 404).has(t, "Page not found", "Go to overview")
		if kind := page.header.Get("Content-Type"); !strings.HasPrefix(kind, "text/html") || page.header.Get("Content-Security-Policy") == "" {
			t.Errorf("%s: the page is %q, its policy %q", name, kind, page.header.Get("Content-Security-Policy"))
		}
		if inMenu := strings.Contains(page.body, `href="/docs"`); inMenu != (name == "signed in") {
			t.Errorf("%s: the menu is there: %t", name, inMenu)
		}
		v.get("/no/such/page").want(t, 404).has(t, `"route_not_found"`)
		v.get("/no/such/page", "Accept", "application/json").want(t, 404).has(t, `"route_not_found"`)
		v.get("/openapi.json", "Accept", browser).want(t, 200).has(t, `"openapi"`)
		if got := v.get("/v1/none", "Accept", browser); !strings.HasPrefix(got.header.Get("Content-Type"), "application/json") {
			t.Errorf("%s: below /v1 is %q", name, got.header.Get("Content-Type"))
		}
	}
}
