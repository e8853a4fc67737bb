package handlers_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/postroom/postroom/handlers"
	"github.com/postroom/postroom/store"
)

// TestLooseningAnInboxNeedsAdmin changes inboxes with keys of every kind. A key
// with send alone may tighten an inbox and may not loosen it.
func TestLooseningAnInboxNeedsAdmin(t *testing.T) {
	s := serve(t)
	for _, tt := range []struct {
		name    string
		policy  store.SendPolicy
		body    string
		refused string // the parameter that a send key may not set to this value
	}{
		{"approval to open", "approval", `{"send_policy":"open"}`, "send_policy"},
		{"approval to reply_only", "approval", `{"send_policy":"reply_only"}`, "send_policy"},
		{"reply_only to open", "reply_only", `{"send_policy":"open"}`, "send_policy"},
		{"loosening among other changes", "approval", `{"display_name":"Ann","send_policy":"open","retention_days":9}`, "send_policy"},
		{"shorter retention under approval", "approval", `{"retention_days":6}`, "retention_days"},
		{"shorter retention under reply_only", "reply_only", `{"retention_days":1}`, "retention_days"},
		{"shorter retention while loosening", "approval", `{"retention_days":1,"send_policy":"open"}`, "send_policy"},
		{"open to reply_only", "open", `{"send_policy":"reply_only"}`, ""},
		{"open to approval", "open", `{"send_policy":"approval"}`, ""},
		{"reply_only to approval", "reply_only", `{"send_policy":"approval"}`, ""},
		{"the same policy again", "approval", `{"send_policy":"approval"}`, ""},
		{"shorter retention of an open inbox", "open", `{"retention_days":1}`, ""},
		{"longer retention under approval", "approval", `{"retention_days":8}`, ""},
		{"the same retention under approval", "approval", `{"retention_days":7}`, ""},
		{"another name under approval", "approval", `{"display_name":"Ann"}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in := s.newInbox(t, policy(tt.policy))
			path := "/v1/inboxes/" + in.ID
			before := s.do(t, http.MethodGet, path, "").want(t, http.StatusOK)
			bound := as(s.newKey(t, scopes("read", "send"), onlyInboxes(in.ID)))
			if tt.refused == "" {
				s.do(t, http.MethodPatch, path, tt.body, bound).want(t, http.StatusOK)
				return
			}
			for _, key := range []option{bound, as(s.newKey(t, scopes("send", "read")))} {
				res := s.do(t, http.MethodPatch, path, tt.body, key).wantError(t, http.StatusForbidden, "insufficient_scope "+tt.refused)
				if text := res.str(t, "error.message"); !strings.Contains(text, tt.refused) || !strings.Contains(text, "scope admin") {
					t.Errorf("the message names neither the field nor the scope: %s", text)
				}
			}
			before.wantSame(t, s.do(t, http.MethodGet, path, "").want(t, http.StatusOK))
			s.do(t, http.MethodPatch, path, tt.body, as(s.newKey(t, scopes("admin"), onlyInboxes(in.ID)))).want(t, http.StatusOK)
		})
	}
}

// TestInboxLooserThanTheDefaultNeedsAdmin creates inboxes on an installation
// whose default policy is reply_only.
func TestInboxLooserThanTheDefaultNeedsAdmin(t *testing.T) {
	s := serve(t, func(c *handlers.Config) { c.SendPolicy = store.PolicyReplyOnly })
	sender := as(s.newKey(t, scopes("send")))
	s.do(t, http.MethodPost, "/v1/inboxes", `{"name":"loose","send_policy":"open"}`, sender).
		wantError(t, http.StatusForbidden, "insufficient_scope send_policy")
	s.do(t, http.MethodPost, "/v1/inboxes", `{}`, sender).want(t, http.StatusCreated).wantAt(t, "send_policy", `"reply_only"`)
	s.do(t, http.MethodPost, "/v1/inboxes", `{"send_policy":"reply_only"}`, sender).want(t, http.StatusCreated)
	s.do(t, http.MethodPost, "/v1/inboxes", `{"send_policy":"approval"}`, sender).want(t, http.StatusCreated)
	s.do(t, http.MethodPost, "/v1/inboxes", `{"name":"loose","send_policy":"open"}`, as(s.newKey(t, scopes("admin")))).
		want(t, http.StatusCreated)
}
