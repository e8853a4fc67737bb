package handlers_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/postroom/postroom/handlers"
	"github.com/postroom/postroom/store"
)

// draftFile downloads an attachment of a draft.
func (s *server) draftFile(t *testing.T, d response, i int) response {
	t.Helper()
	path := draftPath(t, d, "/attachments/", d.str(t, fmt.Sprintf("attachments.%d.id", i)))
	link, err := url.Parse(s.do(t, http.MethodGet, path, "").want(t, http.StatusOK).str(t, "download_url"))
	must(t, err)
	return s.do(t, http.MethodGet, link.EscapedPath(), "", as(""))
}

// A reviewer can download the files of a draft exactly as they will be sent.
func TestDraftAttachments(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t, policy(store.PolicyApproval))
	large := strings.Repeat("large ", 80_000) // together they go into a blob
	d := s.newDraft(t, in, `{"to":"ann@out.example","subject":"Order","text":"Please.","attachments":[
			{"filename":"Größe.txt","content":"T3JkZXI="},
			{"filename":"b.bin","content":"`+base64.StdEncoding.EncodeToString([]byte(large))+`","content_type":"text/html"}]}`)
	small := s.newDraft(t, in, `{"to":"ann@out.example","subject":"Order","text":"Please.","attachments":[{"filename":"a","content":"eA=="}]}`)
	for _, tt := range []struct {
		draft response
		i     int
		want  string
	}{{d, 0, "Order"}, {d, 1, large}, {small, 0, "x"}} {
		got := s.draftFile(t, tt.draft, tt.i).want(t, http.StatusOK)
		if string(got.body) != tt.want || got.header.Get("Content-Type") != "application/octet-stream" {
			t.Errorf("file %d: %d bytes of %s, want %d", tt.i, len(got.body), got.header.Get("Content-Type"), len(tt.want))
		}
	}
	one := draftPath(t, d, "/attachments/", d.str(t, "attachments.0.id"))
	a := s.do(t, http.MethodGet, one, "")
	for path, want := range map[string]string{
		"object": `"attachment"`, "draft_id": `"` + d.str(t, "id") + `"`, "filename": `"Größe.txt"`, "size": `5`, "content_type": `"text/plain"`,
	} {
		a.wantAt(t, path, want)
	}
	other := s.newInbox(t)
	for _, path := range []string{
		draftPath(t, d, "/attachments/att_none"), draftPath(t, small, "/attachments/", d.str(t, "attachments.0.id")),
		"/v1/messages/" + d.str(t, "id") + "/attachments/" + d.str(t, "attachments.0.id"),
	} {
		s.do(t, http.MethodGet, path, "").wantError(t, http.StatusNotFound, "not_found")
	}
	s.do(t, http.MethodGet, one, "", as(s.newKey(t, onlyInboxes(other.ID)))).wantError(t, http.StatusNotFound, "not_found")

	link, err := url.Parse(a.str(t, "download_url"))
	must(t, err)
	s.do(t, http.MethodPost, draftPath(t, d, "/reject"), "").want(t, http.StatusOK)
	s.draftFile(t, d, 0).want(t, http.StatusOK) // a rejected draft stays readable
	s.do(t, http.MethodDelete, "/v1/inboxes/"+in.ID, "").want(t, http.StatusOK)
	s.do(t, http.MethodGet, one, "").wantError(t, http.StatusNotFound, "not_found")
	s.do(t, http.MethodGet, link.EscapedPath(), "", as("")).wantError(t, http.StatusNotFound, "not_found")
}

func TestDraftAttachmentsWithoutLinks(t *testing.T) {
	s := serve(t, func(c *handlers.Config) { c.NoFiles = true })
	d := s.newDraft(t, s.newInbox(t, policy(store.PolicyApproval)), `{"to":"ann@out.example","subject":"s","text":"t","attachments":[{"filename":"a","content":"eA=="}]}`)
	s.do(t, http.MethodGet, draftPath(t, d, "/attachments/", d.str(t, "attachments.0.id")), "").wantError(t, http.StatusNotFound, "not_found")
}
