package handlers_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/postroom/postroom/store"
)

const ana = `{"email":"Ana@Example.org","first_name":"Ana","metadata":{"plan":"team","n":1.50,"deep":{"a":[null,true]}},"tags":{"source":"import"}}`

// newContact creates a contact and returns its path.
func (s *server) newContact(t *testing.T, body string) string {
	t.Helper()
	return "/v1/contacts/" + s.do(t, http.MethodPost, "/v1/contacts", body).want(t, http.StatusCreated).str(t, "id")
}

func TestCreateContact(t *testing.T) {
	s := serve(t)
	res := s.do(t, http.MethodPost, "/v1/contacts", ana).want(t, http.StatusCreated)
	res.wantAt(t, "email", `"Ana@Example.org"`)
	res.wantAt(t, "last_name", `null`)
	res.wantAt(t, "metadata", `{"plan":"team","n":1.5,"deep":{"a":[null,true]}}`)
	res.wantAt(t, "tags", `{"source":"import"}`)
	res.wantSame(t, s.do(t, http.MethodGet, "/v1/contacts/"+res.str(t, "id"), "").want(t, http.StatusOK))
	if !strings.Contains(string(res.body), "1.50") {
		t.Errorf("a number is not as it was written: %s", res.body)
	}
	bare := s.do(t, http.MethodPost, "/v1/contacts", `{"email":"ben@example.org"}`).want(t, http.StatusCreated)
	bare.wantAt(t, "metadata", `{}`)
	bare.wantAt(t, "tags", `{}`)

	fit, over := strings.Repeat("ä", 2044), strings.Repeat("ä", 2045) // {"m":"..."}
	tests := []struct {
		name, body string
		status     int
		want       string
	}{
		{"the address in another case", `{"email":"ana@example.ORG"}`, 409, "contact_exists email"},
		{"4096 bytes of metadata", `{"email":"fit@example.org","metadata":{ "m" : "` + fit + `" }}`, 201, ""},
		{"escapes count as what they stand for", `{"email":"fit2@example.org","metadata":{"m":"` + strings.Repeat(`\u00e4`, 2044) + `"}}`, 201, ""},
		{"4098 bytes of metadata", `{"email":"c@example.org","metadata":{"m":"` + over + `"}}`, 400, "invalid_request metadata"},
		{"far more", `{"email":"c@example.org","metadata":{"m":"` + strings.Repeat("x", 1<<20) + `"}}`, 400, "invalid_request metadata"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res := s.do(t, http.MethodPost, "/v1/contacts", tt.body, brokenIf(tt.status))
			if tt.want == "" {
				res.want(t, tt.status)
			} else {
				res.wantError(t, tt.status, tt.want)
			}
		})
	}
}

func TestUpdateContact(t *testing.T) {
	s := serve(t)
	tests := []struct{ name, body, path, want string }{
		{"absent leaves the address", `{}`, "email", `"ana@example.org"`},
		{"absent leaves the name", `{}`, "first_name", `"Ana"`},
		{"absent leaves metadata", `{}`, "metadata", `{"a":1}`},
		{"absent leaves tags", `{}`, "tags", `{"a":"b"}`},
		{"null clears a name", `{"first_name":null}`, "first_name", `null`},
		{"sets a name", `{"last_name":"Lu"}`, "last_name", `"Lu"`},
		{"replaces metadata", `{"metadata":{"b":2}}`, "metadata", `{"b":2}`},
		{"replaces tags", `{"tags":{}}`, "tags", `{}`},
		{"moves", `{"email":"new@example.org"}`, "email", `"new@example.org"`},
		{"writes its address in another case", `{"email":"ANA@example.org"}`, "email", `"ANA@example.org"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := s.newContact(t, `{"email":"ana@example.org","first_name":"Ana","metadata":{"a":1},"tags":{"a":"b"}}`)
			res := s.do(t, http.MethodPatch, path, tt.body).want(t, http.StatusOK)
			res.wantAt(t, tt.path, tt.want)
			res.wantSame(t, s.do(t, http.MethodGet, path, "").want(t, http.StatusOK))
			s.do(t, http.MethodDelete, path, "").want(t, http.StatusOK).wantAt(t, "deleted", `true`)
			s.do(t, http.MethodGet, path, "").wantError(t, http.StatusNotFound, "not_found")
		})
	}
	path := s.newContact(t, ana)
	s.newContact(t, `{"email":"ben@example.org"}`)
	s.do(t, http.MethodPatch, path, `{"email":"BEN@example.org"}`).wantError(t, http.StatusConflict, "contact_exists email")
	s.do(t, http.MethodPatch, path, `{"email":null}`, broken).wantError(t, http.StatusBadRequest, "invalid_request email")
	s.do(t, http.MethodPatch, path, `{"metadata":null}`, broken).wantError(t, http.StatusBadRequest, "invalid_request metadata")
}

func TestUpsertContacts(t *testing.T) {
	s := serve(t)
	path := s.newContact(t, ana)
	body := `{"contacts":[{"email":"ana@example.org","first_name":"lost"},{"email":"ben@example.org"},{"email":"ANA@example.org","tags":{}}]}`
	once := with("Idempotency-Key", "k")
	res := s.do(t, http.MethodPost, "/v1/contacts/batch", body, once).want(t, http.StatusOK)
	if got := strings.TrimSpace(string(res.body)); got != `{"created":1,"updated":1}` {
		t.Errorf("response %s", got)
	}
	res.wantSame(t, s.do(t, http.MethodPost, "/v1/contacts/batch", body, once).want(t, http.StatusOK))
	got := s.do(t, http.MethodGet, path, "").want(t, http.StatusOK)
	got.wantAt(t, "first_name", `"Ana"`)
	got.wantAt(t, "tags", `{}`)

	bad := `{"contacts":[{"email":"new@example.org"},{"email":"cem@example..org"}]}`
	s.do(t, http.MethodPost, "/v1/contacts/batch", bad, broken).wantError(t, http.StatusBadRequest, "invalid_request contacts[1].email")
	s.do(t, http.MethodPost, "/v1/contacts/batch", `{"contacts":[]}`, broken).wantError(t, http.StatusBadRequest, "invalid_request contacts")
	s.do(t, http.MethodGet, "/v1/contacts?email=new@example.org", "").want(t, http.StatusOK).wantAt(t, "data", `[]`)
}

func TestContactsAreOfTheirAccount(t *testing.T) {
	s := serve(t)
	path := s.newContact(t, ana)
	stranger := as(s.newKey(t, func(k *store.Key) { k.AccountID = s.otherInbox(t).AccountID }))
	s.do(t, http.MethodGet, path, "", stranger).wantError(t, http.StatusNotFound, "not_found")
	s.do(t, http.MethodGet, "/v1/contacts?email=ana@example.org", "", stranger).want(t, http.StatusOK).wantAt(t, "data", `[]`)
	s.do(t, http.MethodPost, "/v1/contacts", ana, stranger).want(t, http.StatusCreated)
	found := s.do(t, http.MethodGet, "/v1/contacts?email=ANA@EXAMPLE.ORG", "").want(t, http.StatusOK)
	if ids := found.strs(t, "data", "id"); len(ids) != 1 || "/v1/contacts/"+ids[0] != path {
		t.Errorf("found %v", ids)
	}
}
