package handlers_test

import (
	"net/http"
	"testing"
)

// A rule about two fields counts only those that have a value.
func TestNullDoesNotConflict(t *testing.T) {
	s := serve(t)
	inbox := "/v1/inboxes/" + s.newInbox(t).ID
	tpl := s.do(t, http.MethodPost, "/v1/templates", `{"name":"n","subject":"s","html":"<p>h</p>"}`).want(t, http.StatusCreated).str(t, "id")
	email := `{"from":"` + sender + `","to":"a@b.example","subject":"s",`
	batch := `{"from":"` + sender + `","recipients":[{"to":"a@b.example"}],"subject":"s",`
	tests := []struct {
		name, path, body string
		status           int
		error            string
	}{
		{"a template, html null", "/v1/emails", email + `"template":"` + tpl + `","html":null}`, 201, ""},
		{"a template, all else null", "/v1/emails", email + `"template":"` + tpl + `","html":null,"text":null,"cc":null,"bcc":null,"replyTo":null,"scheduledAt":null}`, 201, ""},
		{"html, template null", "/v1/emails", email + `"template":null,"html":"h"}`, 201, ""},
		{"a template and html", "/v1/emails", email + `"template":"` + tpl + `","html":"h"}`, 400, "template_conflict template"},
		{"all null", "/v1/emails", email + `"template":null,"html":null,"text":null}`, 400, "content_required text"},
		{"a batch with a template, html null", "/v1/emails/batch", batch + `"template":"` + tpl + `","html":null}`, 201, ""},
		{"a batch with html, template null", "/v1/emails/batch", batch + `"template":null,"html":"h"}`, 201, ""},
		{"a batch with both", "/v1/emails/batch", batch + `"template":"` + tpl + `","html":"h"}`, 400, "template_conflict template"},
		{"a batch with all null", "/v1/emails/batch", batch + `"template":null,"html":null,"text":null}`, 400, "content_required text"},
		{"text and html null", inbox + "/messages", `{"to":"a@b.example","subject":"s","text":null,"html":null}`, 400, "content_required text"},
		{"raw, the rest null", inbox + "/simulate", `{"raw":"Subject: s\n\nt","from":null,"text":null,"html":null}`, 201, ""},
		{"raw and text", inbox + "/simulate", `{"raw":"Subject: s\n\nt","text":"t"}`, 400, "invalid_request text"},
		{"from null, no raw", inbox + "/simulate", `{"from":null,"text":"t"}`, 400, "invalid_request from"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res := s.do(t, http.MethodPost, tt.path, tt.body, brokenIf(tt.status)).want(t, tt.status)
			if tt.error != "" {
				res.wantError(t, tt.status, tt.error)
			}
		})
	}
}
