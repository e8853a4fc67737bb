package handlers_test

import (
	"bytes"
	"encoding/base64"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/mime"
	"github.com/postroom/postroom/store"
)

// The contents of a large body stay in its file. They are still sent unchanged,
// in a message, in a draft and in an approved draft.
func TestLargeAttachments(t *testing.T) {
	t.Parallel()
	first, second := bytes.Repeat([]byte("first\x00\xff"), 200_000), bytes.Repeat([]byte("second"), 50_000)
	body := `{"to":"a@b.example","subject":"s","text":"t","attachments":[{"filename":"1.bin","content":"` +
		base64.StdEncoding.EncodeToString(first) + `"},{"filename":"small.txt","content":"eA=="},{"filename":"2.txt","content":"` +
		base64.StdEncoding.EncodeToString(second) + `"}]}`
	each(t, func(t *testing.T, s *server) {
		in := s.newInbox(t)
		held := s.newInbox(t, func(in *store.Inbox) { in.SendPolicy = store.PolicyApproval })
		send := func(in store.Inbox, status int) response {
			return s.do(t, http.MethodPost, "/v1/inboxes/"+in.ID+"/messages", body).want(t, status)
		}
		draft := send(held, http.StatusAccepted)
		for name, res := range map[string]response{
			"sent":     send(in, http.StatusCreated),
			"approved": s.do(t, http.MethodPost, "/v1/drafts/"+draft.str(t, "id")+"/send", "").want(t, http.StatusCreated),
		} {
			for i, want := range [][]byte{first, []byte("x"), second} {
				at := []string{"0", "1", "2"}[i]
				link := s.do(t, http.MethodGet, "/v1/messages/"+res.str(t, "id")+"/attachments/"+res.str(t, "attachments."+at+".id"), "").
					want(t, http.StatusOK).str(t, "download_url")
				u, err := url.Parse(link)
				if err != nil {
					t.Fatal(err)
				}
				if got := s.do(t, http.MethodGet, u.RequestURI(), "", as("")).want(t, http.StatusOK); !bytes.Equal(got.body, want) {
					t.Errorf("%s, file %d: %d bytes, want %d that were given", name, i, len(got.body), len(want))
				}
			}
		}
	})
}

// Large bodies are compared by their contents, regardless of where those are
// stored.
func TestLargeAttachmentsAndIdempotency(t *testing.T) {
	t.Parallel()
	content := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("content"), 70_000))
	body := `{"to":"a@b.example","subject":"s","text":"t","attachments":[{"filename":"f","content":"` + content + `"}]}`
	each(t, func(t *testing.T, s *server) {
		path := "/v1/inboxes/" + s.newInbox(t).ID + "/messages"
		key := with(idempotencyKey, "k")
		small := s.do(t, http.MethodPost, path, body, key).want(t, http.StatusCreated)
		large := strings.Replace(body, ",", strings.Repeat(" ", 1<<20)+",", 1)
		for name, same := range map[string]string{
			"kept in a file":   large,
			"kept in memory":   strings.Replace(large, "content", `c\u006fntent`, 1),
			"small once again": body,
		} {
			again := s.do(t, http.MethodPost, path, same, key).want(t, http.StatusCreated)
			if again.wantSame(t, small); again.header.Get("Idempotent-Replayed") != "true" {
				t.Errorf("%s: sent again", name)
			}
		}
		s.do(t, http.MethodPost, path, strings.Replace(large, content, "AAAA"+content[4:], 1), key).
			wantError(t, http.StatusUnprocessableEntity, "idempotency_key_reused "+idempotencyKey)
	})
}

// Errors about large contents are the same as about small ones.
func TestLargeAttachmentsThatAreWrong(t *testing.T) {
	t.Parallel()
	content := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("content"), 200_000))
	each(t, func(t *testing.T, s *server) {
		path := "/v1/inboxes/" + s.newInbox(t).ID + "/messages"
		for name, tt := range map[string]struct{ attachment, want string }{
			"not base64":     {`"filename":"f","content":"` + content + `*"`, "invalid_request attachments[0].content"},
			"no file name":   {`"content":"` + content + `"`, "invalid_request attachments[0].filename"},
			"another field":  {`"filename":"f","size":1,"content":"` + content + `"`, "invalid_request attachments[0].size"},
			"content twice":  {`"filename":"f","content":"eA==","content":"` + content + `"`, "invalid_request attachments[0].content"},
			"not JSON after": {`"filename":"f","content":"` + content + `"]`, "invalid_json"},
		} {
			t.Run(name, func(t *testing.T) {
				s.do(t, http.MethodPost, path, `{"to":"a@b.example","subject":"s","text":"t","attachments":[{`+tt.attachment+`}]}`, broken).
					wantError(t, http.StatusBadRequest, tt.want)
			})
		}
	})
}

// The same applies to emails.
func TestLargeAttachmentsOfEmails(t *testing.T) {
	t.Parallel()
	want := bytes.Repeat([]byte("content\x00\xff"), 200_000)
	each(t, func(t *testing.T, s *server) {
		id := s.sendEmail(t, `"attachments":[{"filename":"f","content":"`+base64.StdEncoding.EncodeToString(want)+`"}]`).
			want(t, http.StatusCreated).str(t, "id")
		at := s.queuedMail(t, id).Attachments[0]
		r, err := mime.OpenPart(s.rawOfEmail(t, id), at.Part, mail.DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes of %d, %v", len(got), len(want), err)
		}
	})
}
