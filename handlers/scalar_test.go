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

// Metadata keeps any number as it is written, also one that float64 does not hold
// exactly. It refuses one beyond float64, because many clients could not read a
// response with it. Variables of templates may be any number.
func TestNumbersKeepTheirSpelling(t *testing.T) {
	s := serve(t)
	const kept = `{"digits":123456789012345678901234567890,"exponent":1E5,"small":1e-400,"zeros":0.1000}`
	nested := `{"list":[0.1000,{"in":-0.0}],` + kept[1:]
	email := func(rest string) string {
		return `{"from":"hello@` + mailDomain + `","to":"a@b.example","subject":"s","text":"t",` + rest + `}`
	}
	for _, tt := range []struct{ path, body, metadata string }{
		{"/v1/inboxes", `{"metadata":` + kept + `}`, kept},
		{"/v1/contacts", `{"email":"a@b.example","metadata":` + nested + `}`, nested},
		{"/v1/emails", email(`"metadata":` + nested), nested},
	} {
		made := s.do(t, http.MethodPost, tt.path, tt.body, with(idempotencyKey, "k")).want(t, http.StatusCreated)
		s.do(t, http.MethodPost, tt.path, tt.body, with(idempotencyKey, "k")).want(t, http.StatusCreated).wantSame(t, made)
		s.do(t, http.MethodGet, tt.path+"/"+made.str(t, "id"), "").want(t, http.StatusOK).wantExactly(t, "metadata", tt.metadata)
		if tt.path != "/v1/emails" {
			made.wantExactly(t, "metadata", tt.metadata)
			s.do(t, http.MethodPatch, tt.path+"/"+made.str(t, "id"), `{"metadata":{"n":1E+5}}`).want(t, http.StatusOK).wantExactly(t, "metadata", `{"n":1E+5}`)
		}
	}
	for _, number := range []string{"1e400", "-1e400", "1E400", "1" + strings.Repeat("0", 400), "1e" + strings.Repeat("9", 50)} {
		for _, tt := range []struct{ method, path, body, param string }{
			{http.MethodPost, "/v1/inboxes", `{"metadata":{"n":NUMBER}}`, "metadata.n"},
			{http.MethodPost, "/v1/contacts", `{"email":"b@b.example","metadata":{"a":1,"n":NUMBER}}`, "metadata.n"},
			{http.MethodPost, "/v1/contacts", `{"email":"b@b.example","metadata":{"a":[1,{"n":NUMBER}]}}`, "metadata.a[1].n"},
			{http.MethodPost, "/v1/contacts", `{"email":"b@b.example","tags":{"n":NUMBER}}`, "tags.n"},
			{http.MethodPost, "/v1/contacts/batch", `{"contacts":[{"email":"b@b.example","metadata":{"n":NUMBER}}]}`, "contacts[0].metadata.n"},
			{http.MethodPost, "/v1/emails", email(`"metadata":{"n":NUMBER}`), "metadata.n"},
			{http.MethodPost, "/v1/emails/batch", `{"from":"hello@` + mailDomain + `","subject":"s","text":"t","recipients":[{"to":"a@b.example","metadata":{"n":NUMBER}}]}`, "recipients[0].metadata.n"},
		} {
			res := s.do(t, tt.method, tt.path, strings.ReplaceAll(tt.body, "NUMBER", number), broken)
			res.wantError(t, http.StatusBadRequest, "invalid_request "+tt.param)
		}
	}

	const data = `"data":{"huge":1e400,"least":-1e400,"small":1e-400,"digits":123456789012345678901234567890,"zeros":0.1000,"exponent":1E5}`
	const text = "{{huge}} {{least}} {{small}} {{digits}} {{zeros}} {{exponent}}"
	const want = `"1e400 -1e400 1e-400 123456789012345678901234567890 0.1000 1E5"`
	rendered := s.do(t, http.MethodPost, "/v1/emails", strings.Replace(email(data), `"s"`, `"`+text+`"`, 1), broken).want(t, http.StatusCreated)
	rendered.wantAt(t, "subject", want)
	template := s.do(t, http.MethodPost, "/v1/templates", `{"name":"n","subject":"`+text+`","html":"x"}`).want(t, http.StatusCreated)
	s.do(t, http.MethodPost, "/v1/templates/"+template.str(t, "id")+"/preview", `{`+data+`}`, broken).want(t, http.StatusOK).wantAt(t, "subject", want)
}

// Tags may be strings, numbers or booleans and come back unchanged. Their names
// may contain colons, and a filter finds them all.
func TestTagsKeepTheirType(t *testing.T) {
	s := serve(t)
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
}
