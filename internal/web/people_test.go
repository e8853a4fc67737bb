package web_test

import (
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/oauth"
	"github.com/postroom/postroom/internal/web"
	"github.com/postroom/postroom/store"
)

// ofViewers and ofApprovers are the forms that these roles may send. Sign-in and
// one-time links are for everybody.
var (
	ofViewers   = []string{"POST /messages/read", "POST /messages/{id}/unread", "POST /settings/theme", "POST /settings/password", "POST /settings/sessions", "POST /templates/preview"}
	ofApprovers = []string{
		"POST /approvals/{id}/edit", "POST /approvals/{id}/approve", "POST /approvals/approve", "POST /approvals/{id}/reject", "POST /approvals/{id}/undo",
	}
	ofEverybody = []string{"POST /sign-in", "POST /sign-out", "POST /setup/{token}"}
)

// TestRolesBoundForms sends every form of the dashboard as an approver and a viewer.
func TestRolesBoundForms(t *testing.T) {
	s := openSite(t)
	u, session := s.newUser(t, "ben@example.com")
	v := s.visitWith(t, session)
	for role, allowed := range map[store.Role][]string{store.RoleViewer: ofViewers, store.RoleApprover: slices.Concat(ofViewers, ofApprovers)} {
		must(t, s.store.SetRole(t.Context(), s.account, u.ID, role))
		refused := 0
		for _, route := range routes(t) {
			method, path, _ := strings.Cut(route, " ")
			if method != http.MethodPost || slices.Contains(ofEverybody, route) {
				continue
			}
			s.clock.Add(30e9) // a minute has room for few attempts to change a password
			a := v.post(regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(path, "x"), nil)
			if may := slices.Contains(allowed, route); may == (a.status == http.StatusForbidden) {
				t.Errorf("%s as %s: status %d", route, role, a.status)
			}
			if a.status == http.StatusForbidden {
				refused++
			}
		}
		if refused < 30 {
			t.Errorf("only %d forms are refused to a %s", refused, role)
		}
	}
}

// TestRolesBoundCalls checks that the API refuses to people what their role lacks, also
// without the dashboard.
func TestRolesBoundCalls(t *testing.T) {
	s := openSite(t)
	held := s.newInbox(t, "held", gen.SendPolicyApproval)
	calls := func(role store.Role, want map[string]bool) {
		t.Helper()
		draft := s.hold(t, held, mailTo("ann@out.example", "A draft", "Hello"))
		ctx := httpapi.AsPerson(t.Context(), httpapi.Person{Seq: s.user.Seq, AccountID: s.account, ID: s.user.ID, Role: role})
		for name, call := range map[string]func() error{
			"read": func() error { _, err := s.api.ListInboxes(ctx, gen.ListInboxesParams{}); return err },
			"decide": func() error {
				_, err := s.api.RejectDraft(ctx, gen.OptDraftReject{}, gen.RejectDraftParams{DraftID: draft.ID})
				return err
			},
			"send": func() error {
				_, err := s.api.SendMessage(ctx, mailTo("ann@out.example", "Hello", "Hello"), gen.SendMessageParams{InboxID: held.ID})
				return err
			},
			"inbox": func() error {
				_, err := s.api.CreateInbox(ctx, gen.OptInboxCreate{}, gen.CreateInboxParams{})
				return err
			},
			"key":  func() error { _, err := s.api.CreateApiKey(ctx, &gen.ApiKeyCreate{Name: "x"}); return err },
			"keys": func() error { _, err := s.api.ListApiKeys(ctx, gen.ListApiKeysParams{}); return err },
			"stop": func() error { _, err := s.api.StopSending(ctx, &gen.StopScope{}); return err },
			"domain": func() error {
				_, err := s.api.CreateDomain(ctx, &gen.DomainCreate{Domain: "own.example"}, gen.CreateDomainParams{})
				return err
			},
		} {
			pr, ok := asRefused(call())
			if may := !ok || pr != http.StatusForbidden; may != want[name] {
				t.Errorf("%q: %s: allowed %t, want %t", role, name, may, want[name])
			}
		}
	}
	calls("", nil)
	calls(store.RoleViewer, map[string]bool{"read": true})
	calls(store.RoleApprover, map[string]bool{"read": true, "decide": true})
	calls(store.RoleAdmin, map[string]bool{"read": true, "decide": true, "send": true, "inbox": true, "key": true, "keys": true, "stop": true, "domain": true})
}

// Viewers can open the pages that they may read. Other pages show an error.
func TestViewersRead(t *testing.T) {
	s := openSite(t)
	in := s.newInbox(t, "read", gen.SendPolicyOpen)
	s.put(t, in, codeMail)
	s.quarantine(t, in, "odd.example", 1)
	u, session := s.newUser(t, "ben@example.com")
	must(t, s.store.SetRole(t.Context(), s.account, u.ID, store.RoleViewer))
	v := s.visitWith(t, session)
	for _, path := range []string{"/", "/inboxes", "/inboxes/" + in.ID, "/messages", "/approvals", "/emails", "/lists", "/suppressions", "/templates", "/contacts", "/domains", "/logs", "/logs/events", "/settings", "/go?q=key"} {
		page := v.get(path).want(t, http.StatusOK)
		for _, admins := range []string{"/keys", "/quarantine"} {
			if strings.Contains(page.body, `href="`+admins+`"`) {
				t.Errorf("%s leads to %s", path, admins)
			}
		}
	}
	for _, path := range []string{"/keys", "/keys/new", "/webhooks", "/quarantine", "/settings/people", "/settings/health", oauth.AuthorizePath, "/write?inbox=" + in.ID, "/inboxes/" + in.ID + "/settings"} {
		v.get(path).want(t, http.StatusForbidden).has(t, "Your role does not include this")
	}
	v.post(oauth.AuthorizePath, nil).want(t, http.StatusForbidden)
}

// An admin invites people, changes their roles, resets and removes them, in the own
// account only, and not the admin that they are.
func TestPeople(t *testing.T) {
	s := openSite(t)
	v := s.visitAsUser(t)
	v.post("/settings/people", []string{"name", "", "role", "viewer"}).want(t, http.StatusBadRequest).has(t, "Use 1 to 100 characters")
	v.post("/settings/people", []string{"name", "ANN@example.com", "role", "viewer"}).want(t, http.StatusBadRequest).has(t, "Another user has this name")
	v.post("/settings/people", []string{"name", "ben", "role", "owner"}).want(t, http.StatusBadRequest)
	link := func(a response) string {
		t.Helper()
		page := v.get(a.want(t, http.StatusSeeOther).header.Get("Location")).want(t, http.StatusOK)
		return regexp.MustCompile(`/setup/[\w-]+`).FindString(page.body)
	}
	at := link(v.post("/settings/people", []string{"name", "ben@example.com", "role", "approver"}))
	v.get("/settings/people/link").want(t, http.StatusSeeOther) // shown once
	ben := s.visit(t)
	ben.post(at, []string{"password", "a long enough one", "again", "a long enough one"}).want(t, http.StatusSeeOther)
	ben.get("/settings").want(t, http.StatusOK).has(t, "approver")
	ben.get("/settings/people").want(t, http.StatusForbidden)
	u, err := s.store.UserByName(t.Context(), "ben@example.com")
	must(t, err)
	of := "/settings/people/" + u.ID
	v.post(of+"/role", []string{"role", "admin"}).want(t, http.StatusSeeOther)
	ben.get("/settings/people").want(t, http.StatusOK).has(t, "ann@example.com") // from the next request on
	for _, act := range []string{"/role", "/reset", "/remove"} {
		v.post("/settings/people/"+s.user.ID+act, []string{"role", "viewer"}).want(t, http.StatusConflict)
	}
	v.post(of+"/role", []string{"role", "owner"}).want(t, http.StatusBadRequest)
	if at = link(v.post(of+"/reset", nil)); at == "" {
		t.Error("the reset shows no link")
	}
	ben.get("/").want(t, http.StatusSeeOther) // signed out
	v.post(of+"/remove", nil).want(t, http.StatusSeeOther)
	s.visit(t).get(at).want(t, http.StatusNotFound)
	ann := s.user
	s.otherAccount(t)
	eve := s.visitAsUser(t)
	if page := eve.get("/settings/people").want(t, http.StatusOK); strings.Contains(page.body, ann.Name) {
		t.Error("the page shows the people of another account")
	}
	for _, act := range []string{"/role", "/reset", "/remove"} {
		eve.post("/settings/people/"+ann.ID+act, []string{"role", "viewer"}).want(t, http.StatusNotFound)
	}
	eve.get("/settings/health").want(t, http.StatusNotFound) // of the whole installation
	eve.post("/settings/health", nil).want(t, http.StatusNotFound)
}

// People change their own password with the current one, which ends their other
// sessions, and choose a theme.
func TestOwnSettings(t *testing.T) {
	s := openSite(t)
	link, token := web.NewLink(s.clock.Now())
	_, err := s.store.ResetUser(t.Context(), s.user.Name, link)
	must(t, err)
	const old, next = "the first password", "another password"
	v, elsewhere := s.visit(t), s.visit(t)
	v.post("/setup/"+token, []string{"password", old, "again", old}).want(t, http.StatusSeeOther)
	const firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"
	elsewhere.post("/sign-in", []string{"name", s.user.Name, "password", old}, "User-Agent", firefox).want(t, http.StatusSeeOther)
	v.get("/settings").want(t, http.StatusOK).has(t, "this session", "Limits of the account", "Firefox on Linux", "127.0.0.1")
	change := func(current, password, again string) response {
		return v.post("/settings/password", []string{"current", current, "password", password, "again", again})
	}
	change("wrong", next, next).want(t, http.StatusBadRequest).has(t, `id="current-fault"`, "Wrong password")
	change(old, "short", "short").want(t, http.StatusBadRequest).has(t, `id="password-fault"`)
	change(old, next, "different").want(t, http.StatusBadRequest).has(t, `id="again-fault"`)
	elsewhere.get("/settings").want(t, http.StatusOK)
	change(old, next, next).want(t, http.StatusSeeOther)
	elsewhere.get("/settings").want(t, http.StatusSeeOther)
	v.get("/settings").want(t, http.StatusOK)
	s.clock.Add(61e9)
	elsewhere.post("/sign-in", []string{"name", s.user.Name, "password", old}).want(t, http.StatusBadRequest)
	elsewhere.post("/sign-in", []string{"name", s.user.Name, "password", next}).want(t, http.StatusSeeOther)
	v.post("/settings/sessions", nil).want(t, http.StatusSeeOther)
	v.get("/settings").has(t, "1 other session is signed out")
	elsewhere.get("/settings").want(t, http.StatusSeeOther)
	s.clock.Add(61e9)
	for range 5 {
		change("wrong", next, next).want(t, http.StatusBadRequest)
	}
	change(next, old, old).want(t, http.StatusTooManyRequests)
	v.post("/settings/theme", []string{"theme", "dark"}).want(t, http.StatusSeeOther)
	v.get("/").has(t, `<html lang="en" data-theme="dark">`)
	v.post("/settings/theme", []string{"theme", "pink"}).want(t, http.StatusSeeOther)
	v.get("/").has(t, `<html lang="en">`)
}

// asRefused returns the status with which the API refused a call.
func asRefused(err error) (status int, ok bool) {
	refused, ok := errors.AsType[*gen.ErrorStatusCodeWithHeaders](err)
	if !ok {
		return 0, false
	}
	return refused.StatusCode, true
}
