package contract_test

import (
	"net/http"
	"testing"
)

// newTemplate creates a template with a variable and returns its id.
func (w *world) newTemplate(t *testing.T) string {
	t.Helper()
	c := w.call("createTemplate").saying(`{"name":"welcome","subject":"Welcome, {{name}}","html":"<p>Welcome, {{name}}.</p>"}`)
	return read[struct {
		ID string `json:"id"`
	}](t, w.send(t, c).want(t, http.StatusCreated)).ID
}

// templates creates, changes, previews and deletes templates.
func templates(t *testing.T, w *world) {
	type template struct {
		Name, Subject, HTML string
		Text                *string
	}
	id := w.newTemplate(t)
	path := "/v1/templates/" + id
	get := func() template {
		return read[template](t, w.send(t, w.call("getTemplate").at(path)).want(t, http.StatusOK))
	}

	w.send(t, w.call("updateTemplate").at(path).saying(`{"text":"Hello, {{name}}"}`)).want(t, http.StatusOK)
	if got := get(); got.Text == nil || *got.Text != "Hello, {{name}}" || got.Name != "welcome" {
		t.Errorf("after PATCH: %+v", got)
	}
	w.send(t, w.call("replaceTemplate").at(path).saying(`{"name":"n","subject":"s","html":"<p>{{x.y}}</p>"}`)).want(t, http.StatusOK)
	if got := get(); got != (template{Name: "n", Subject: "s", HTML: "<p>{{x.y}}</p>"}) {
		t.Errorf("after PUT: %+v", got)
	}
	w.send(t, w.call("replaceTemplate").at(path).saying(`{"name":"n","subject":"s"}`).breaking()).wantCode(t, http.StatusBadRequest, "content_required")
	for _, body := range []string{`{"html":"{{#if x}}"}`, `{"subject":"{{"}`, `{"text":"{{a b}}"}`, `{"html":"<script>{{x}}</script>"}`} {
		w.send(t, w.call("updateTemplate").at(path).saying(body)).wantCode(t, http.StatusBadRequest, "invalid_request")
	}

	preview := w.call("previewTemplate").at(path + "/preview")
	shown := read[struct {
		HTML             string   `json:"html"`
		MissingVariables []string `json:"missing_variables"`
	}](t, w.send(t, preview.saying(`{"data":{"x":{}}}`)).want(t, http.StatusOK))
	if shown.HTML != "<p></p>" || len(shown.MissingVariables) != 1 || shown.MissingVariables[0] != "x.y" {
		t.Errorf("preview: %+v", shown)
	}
	w.send(t, preview.saying(`{"data":{"x":{"y":[]}}}`)).wantCode(t, http.StatusBadRequest, "invalid_request")

	w.send(t, w.call("deleteTemplate").at(path)).want(t, http.StatusOK)
	w.send(t, w.call("getTemplate").at(path)).wantCode(t, http.StatusNotFound, "not_found")
}
