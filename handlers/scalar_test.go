package handlers_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// wantExactly fails the test unless the field has exactly this JSON, including
// the spelling of numbers.
func (r response) wantExactly(t *testing.T, field, want string) {
	t.Helper()
	exact := func(text []byte) (v map[string]any) {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return v
	}
	if d := cmp.Diff(any(exact([]byte(want))), exact(r.body)[field]); d != "" {
		t.Errorf("%s: -want +got:\n%s", field, d)
	}
}

// Numbers in the metadata of an inbox keep their exact value.
func TestInboxMetadataKeepsNumbers(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		const metadata = `{"big":12345678901234567890,"note":null,"ok":true,"price":1.50,"team":"growth","tiny":1e-400}`
		in := s.do(t, http.MethodPost, "/v1/inboxes", `{"metadata":`+metadata+`}`).want(t, http.StatusCreated)
		in.wantExactly(t, "metadata", metadata)
		path := "/v1/inboxes/" + in.str(t, "id")
		s.do(t, http.MethodGet, path, "").want(t, http.StatusOK).wantExactly(t, "metadata", metadata)
		s.do(t, http.MethodPatch, path, `{"metadata":{"n":0.1000}}`).want(t, http.StatusOK).wantExactly(t, "metadata", `{"n":0.1000}`)
		s.do(t, http.MethodPatch, path, `{"display_name":"A"}`).want(t, http.StatusOK).wantExactly(t, "metadata", `{"n":0.1000}`)
	})
}

func TestMetadataAndTagsHoldScalars(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		long := strings.Repeat("é", 501)
		email := func(tags string) string {
			return `{"from":"hello@` + mailDomain + `","subject":"s","to":"a@b.example","text":"t","tags":` + tags + `}`
		}
		for _, tt := range []struct{ path, body, param string }{
			{"/v1/inboxes", `{"metadata":{"a":{}}}`, "metadata.a"},
			{"/v1/inboxes", `{"metadata":{"a":[1]}}`, "metadata.a"},
			{"/v1/inboxes", `{"metadata":{"a":"` + long + `"}}`, "metadata.a"},
			{"/v1/emails", email(`{"a":null}`), "tags.a"},
			{"/v1/emails", email(`{"a":{}}`), "tags.a"},
			{"/v1/emails", email(`{"a":"b\nc"}`), "tags.a"},
			{"/v1/emails", email(`{"a":"` + long + `"}`), "tags.a"},
			{"/v1/contacts", `{"email":"a@b.example","tags":{"a":[]}}`, "tags.a"},
			{"/v1/contacts/batch", `{"contacts":[{"email":"a@b.example","tags":{"a":null}}]}`, "contacts[0].tags.a"},
		} {
			s.do(t, http.MethodPost, tt.path, tt.body, broken).wantError(t, http.StatusBadRequest, "invalid_request "+tt.param)
		}
	})
}

// Tags may be strings, numbers or booleans and come back unchanged. Their names
// may contain colons, and a filter finds them all.
func TestTagsKeepTheirType(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		const tags = `{"app:flow":"receipt","big":12345678901234567890,"paid":true,"price":1.50,"x":"a:b"}`
		body := `{"from":"hello@` + mailDomain + `","subject":"s","to":"a@b.example","text":"t","tags":` + tags + `}`
		id := s.do(t, http.MethodPost, "/v1/emails", body).want(t, http.StatusCreated).str(t, "id")
		s.do(t, http.MethodGet, "/v1/emails/"+id, "").want(t, http.StatusOK).wantExactly(t, "tags", tags)
		for filter, want := range map[string]bool{
			"app:flow:receipt": true, "big:12345678901234567890": true, "paid:true": true, "price:1.50": true, "x:a:b": true,
			"x:a": false, "app:flow": false, "paid:false": false, ":x": false,
		} {
			if filter == ":x" {
				s.do(t, http.MethodGet, "/v1/emails?tag="+url.QueryEscape(filter), "", broken).wantError(t, http.StatusBadRequest, "invalid_request tag")
				continue
			}
			found := strings.Contains(string(s.do(t, http.MethodGet, "/v1/emails?tag="+url.QueryEscape(filter), "").want(t, http.StatusOK).body), id)
			if found != want {
				t.Errorf("tag=%s finds the email: %t, want %t", filter, found, want)
			}
		}
		contact := s.do(t, http.MethodPost, "/v1/contacts", `{"email":"a@b.example","tags":`+tags+`}`).want(t, http.StatusCreated)
		contact.wantExactly(t, "tags", tags)
		s.do(t, http.MethodGet, "/v1/contacts/"+contact.str(t, "id"), "").want(t, http.StatusOK).wantExactly(t, "tags", tags)
	})
}
