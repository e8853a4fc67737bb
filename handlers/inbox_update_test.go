package handlers_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/store"
)

func TestUpdateInbox(t *testing.T) {
	s := serve(t)
	tests := []struct {
		name, body string
		path, want string
	}{
		{"sets a name", `{"display_name":"Ann"}`, "display_name", `"Ann"`},
		{"null clears the name", `{"display_name":null}`, "display_name", `null`},
		{"absent leaves the name", `{"retention_days":3}`, "display_name", `"Bot"`},
		{"absent leaves the retention", `{"display_name":"Ann"}`, "retention_days", `9`},
		{"sets the retention", `{"retention_days":1}`, "retention_days", `1`},
		{"sets the policy", `{"send_policy":"reply_only"}`, "send_policy", `"reply_only"`},
		{"absent leaves the policy", `{}`, "send_policy", `"approval"`},
		{"replaces all metadata", `{"metadata":{"new":1}}`, "metadata", `{"new":1}`},
		{"an empty object clears metadata", `{"metadata":{}}`, "metadata", `{}`},
		{"absent leaves metadata", `{}`, "metadata", `{"old":true}`},
		{"sets the expiry", `{"expires_at":"2028-01-01T00:00:00Z"}`, "expires_at", `"2028-01-01T00:00:00.000Z"`},
		{"null clears the expiry", `{"expires_at":null}`, "expires_at", `null`},
		{"absent leaves the expiry", `{}`, "expires_at", `"2027-01-01T00:00:00.000Z"`},
		{"the time of change is kept", `{}`, "updated_at", `"2026-09-23T10:00:00.000Z"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in := s.newInbox(t, func(in *store.Inbox) {
				name, expires := "Bot", store.NewTime(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC))
				in.DisplayName, in.ExpiresAt, in.RetentionDays, in.SendPolicy = &name, &expires, 9, store.PolicyApproval
				in.Metadata.V = store.Labels{"old": json.RawMessage(`true`)}
			})
			res := s.do(t, http.MethodPatch, "/v1/inboxes/"+in.ID, tt.body).want(t, http.StatusOK)
			res.wantAt(t, tt.path, tt.want)
			res.wantSame(t, s.do(t, http.MethodGet, "/v1/inboxes/"+in.ID, "").want(t, http.StatusOK))
		})
	}
}

func TestInboxExpires(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	path := "/v1/inboxes/" + in.ID
	m := s.receive(t, in, "Subject: Before")
	expiry := `{"expires_at":"` + after(time.Hour) + `"}`
	s.do(t, http.MethodPatch, path, expiry).want(t, http.StatusOK).wantAt(t, "status", `"active"`)

	refused := `{"display_name":"Ann","expires_at":"2026-09-23T09:59:59.999Z"}` // one bad field among good ones
	s.do(t, http.MethodPatch, path, refused).wantError(t, http.StatusBadRequest, "invalid_request expires_at")
	s.do(t, http.MethodGet, path, "").want(t, http.StatusOK).wantAt(t, "display_name", "null")

	s.clock.Add(time.Hour)
	s.do(t, http.MethodGet, path, "").want(t, http.StatusOK).wantAt(t, "status", `"expired"`)
	s.do(t, http.MethodGet, "/v1/messages/"+m.ID, "").want(t, http.StatusOK)
	s.do(t, http.MethodPost, path+"/messages", `{"to":"bob@out.example","subject":"s","text":"t"}`).
		wantError(t, http.StatusForbidden, "inbox_expired")

	s.do(t, http.MethodPatch, path, `{"expires_at":null}`).want(t, http.StatusOK).wantAt(t, "status", `"active"`)
	s.receive(t, in, "Subject: After")
	s.do(t, http.MethodPatch, path, `{"expires_at":"`+after(2*time.Hour)+`"}`).want(t, http.StatusOK)
	s.clock.Add(2 * time.Hour)
	s.do(t, http.MethodPatch, path, `{"expires_at":"`+after(5*time.Hour)+`"}`).want(t, http.StatusOK).wantAt(t, "status", `"active"`)
}

func TestDeleteInbox(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	path := "/v1/inboxes/" + in.ID
	m := s.receive(t, in, "Subject: Hi\nMIME-Version: 1.0\nContent-Type: application/pdf\nContent-Disposition: attachment\n\nx")
	link := s.do(t, http.MethodGet, "/v1/messages/"+m.ID+"/raw", "").want(t, http.StatusFound).header.Get("Location")

	res := s.do(t, http.MethodDelete, path, "").want(t, http.StatusOK)
	res.wantAt(t, "status", `"deleted"`)
	res.wantAt(t, "deleted", `true`)
	res.wantAt(t, "address", `"`+in.Address+`"`)
	res.wantAt(t, "last_message_at", `"`+after(0)+`"`)

	for _, gone := range []struct{ method, path, body string }{
		{"GET", path, ""},
		{"GET", "/v1/messages/" + m.ID, ""},
		{"POST", path + "/messages", `{"to":"bob@out.example","subject":"s","text":"t"}`},
		{"GET", strings.TrimPrefix(link, s.url), ""},
	} {
		s.do(t, gone.method, gone.path, gone.body).wantError(t, http.StatusNotFound, notFound(gone.path))
	}
	if ids := s.do(t, http.MethodGet, "/v1/inboxes", "").want(t, http.StatusOK).strs(t, "data", "id"); slices.Contains(ids, in.ID) {
		t.Errorf("the list still has it: %v", ids)
	}
	s.do(t, http.MethodGet, "/v1/messages", "").want(t, http.StatusOK).wantAt(t, "data", `[]`)
	s.do(t, http.MethodPost, "/v1/inboxes", `{"name":"`+in.Name+`"}`).wantError(t, http.StatusConflict, "address_taken name")
}
