package handlers_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

const welcome = `{"name":"welcome","subject":"Hello, {{name}}","html":"<p>Hello, {{name}}.</p>","text":"Hello, {{name}}."}`

// newTemplate creates the template welcome and returns its path.
func (s *server) newTemplate(t *testing.T) string {
	t.Helper()
	return "/v1/templates/" + s.do(t, http.MethodPost, "/v1/templates", welcome).want(t, http.StatusCreated).str(t, "id")
}

func TestCreateTemplate(t *testing.T) {
	s := serve(t)
	tests := []struct {
		name, body string
		status     int
		want       string // the error, or the text of the new template as JSON
	}{
		{"all fields", welcome, 201, `"Hello, {{name}}."`},
		{"without a text", `{"name":"n","subject":"s","html":"h"}`, 201, `null`},
		{"with a null text", `{"name":"n","subject":"s","html":"h","text":null}`, 201, `null`},
		{"an empty text stays one", `{"name":"n","subject":"s","html":"h","text":""}`, 201, `""`},
		{"without HTML", `{"name":"n","subject":"s","text":"{{#if x}}a{{/if}}"}`, 201, `"{{#if x}}a{{/if}}"`},
		{"neither HTML nor text", `{"name":"n","subject":"s","html":"","text":null}`, 400, "content_required text"},
		{"a name with a line break", `{"name":"a\nb","subject":"s","html":"h"}`, 400, "invalid_request name"},
		{"a subject with a line break", `{"name":"n","subject":"a\r\nBcc: b@c.example","html":"h"}`, 400, "invalid_request subject"},
		{"logic in the subject", `{"name":"n","subject":"{{if x}}","html":"h"}`, 400, "invalid_request subject"},
		{"logic in html", `{"name":"n","subject":"s","html":"{{#each x}}"}`, 400, "invalid_request html"},
		{"logic in the text", `{"name":"n","subject":"s","html":"h","text":"{{> x}}"}`, 400, "invalid_request text"},
		{"a variable in a script", `{"name":"n","subject":"s","html":"<script>{{x}}</script>"}`, 400, "invalid_request html"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res := s.do(t, http.MethodPost, "/v1/templates", tt.body, brokenIf(tt.status))
			if tt.status != http.StatusCreated {
				res.wantError(t, tt.status, tt.want)
				return
			}
			res.want(t, tt.status).wantAt(t, "text", tt.want)
			res.wantSame(t, s.do(t, http.MethodGet, "/v1/templates/"+res.str(t, "id"), "").want(t, http.StatusOK))
		})
	}
}

func TestUpdateTemplate(t *testing.T) {
	s := serve(t)
	path := s.newTemplate(t)
	s.clock.Add(time.Minute)
	res := s.do(t, http.MethodPatch, path, `{"subject":"Hi","text":null}`).want(t, http.StatusOK)
	res.wantAt(t, "name", `"welcome"`)
	res.wantAt(t, "subject", `"Hi"`)
	res.wantAt(t, "html", `"<p>Hello, {{name}}.</p>"`)
	res.wantAt(t, "text", `null`)
	res.wantAt(t, "created_at", `"`+after(0)+`"`)
	res.wantAt(t, "updated_at", `"`+after(time.Minute)+`"`)
	s.do(t, http.MethodPatch, path, `{"html":"{{"}`).wantError(t, http.StatusBadRequest, "invalid_request html")
	s.do(t, http.MethodPatch, path, `{"html":null}`).wantError(t, http.StatusBadRequest, "content_required text")
	res.wantSame(t, s.do(t, http.MethodGet, path, "").want(t, http.StatusOK))

	s.do(t, http.MethodPatch, path, `{"text":"t","html":null}`).want(t, http.StatusOK).wantAt(t, "html", `null`)
	preview := s.do(t, http.MethodPost, path+"/preview", `{}`).want(t, http.StatusOK)
	preview.wantAt(t, "html", `null`)
	preview.wantAt(t, "text", `"t"`)
	res = s.do(t, http.MethodPut, path, `{"name":"n","subject":"s","html":"h"}`).want(t, http.StatusOK)
	res.wantAt(t, "text", `null`)
	s.do(t, http.MethodPut, path, `{"name":"n","subject":"s"}`, broken).wantError(t, http.StatusBadRequest, "content_required text")
	s.do(t, http.MethodPut, path, `{"name":"n","subject":"{{","html":"h"}`).wantError(t, http.StatusBadRequest, "invalid_request subject")
	res.wantSame(t, s.do(t, http.MethodGet, path, "").want(t, http.StatusOK))
}

func TestPreviewTemplate(t *testing.T) {
	s := serve(t)
	path := s.newTemplate(t) + "/preview"
	res := s.do(t, http.MethodPost, path, `{"data":{"name":"Ana & Ben"}}`).want(t, http.StatusOK)
	res.wantAt(t, "subject", `"Hello, Ana & Ben"`)
	res.wantAt(t, "html", `"<p>Hello, Ana &amp; Ben.</p>"`)
	res.wantAt(t, "text", `"Hello, Ana & Ben."`)
	res.wantAt(t, "missing_variables", `[]`)
	for _, body := range []string{`{}`, `{"data":{}}`, `{"data":{"name":null,"other":1}}`} {
		res = s.do(t, http.MethodPost, path, body).want(t, http.StatusOK)
		res.wantAt(t, "subject", `"Hello, "`)
		res.wantAt(t, "missing_variables", `["name"]`)
	}
	long := strings.Repeat("x", 999)
	for body, want := range map[string]string{
		`{"data":{"name":"a\r\nBcc: b@c.example"}}`:             "invalid_request data.name",
		`{"data":{"name":["a"]}}`:                               "invalid_request data.name",
		`{"data":{"name":"` + long + `"}}`:                      "invalid_request subject",
		`{"data":{"big":"` + strings.Repeat("x", 1<<20) + `"}}`: "invalid_request data",
	} {
		s.do(t, http.MethodPost, path, body).wantError(t, http.StatusBadRequest, want)
	}
}
