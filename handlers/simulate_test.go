package handlers_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/store"
)

func TestSimulateMessage(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		in := s.newInbox(t)
		wake := s.store.WakeInbox(in.Seq)
		defer wake.Stop()
		m := s.do(t, http.MethodPost, "/v1/inboxes/"+in.ID+"/simulate",
			`{"from":{"email":"Ann@out.example","name":"Ann"},"subject":"Grüße","text":"Use 771204 to sign in.","html":"<p>Use 771204</p>"}`).want(t, http.StatusCreated)
		for path, want := range map[string]string{
			"direction": `"in"`, "status": `"received"`, "test_mode": `true`, "automated": `false`,
			"from": `{"email":"Ann@out.example","name":"Ann"}`, "to": `[{"email":"` + in.Address + `","name":null}]`,
			"subject": `"Grüße"`, "text": `"Use 771204 to sign in."`, "extracted.otp": `"771204"`, "received_at": `"` + after(0) + `"`,
			"auth": `{"spf":"none","dkim":"none","dmarc":"none","internal":null,"internal_account":null}`, "recipients": `[]`, "tag": `null`,
		} {
			m.wantAt(t, path, want)
		}
		select {
		case <-wake.C:
		default:
			t.Error("a wait for mail was not woken")
		}
		got := s.do(t, http.MethodGet, "/v1/messages/"+m.str(t, "id"), "").want(t, http.StatusOK)
		for _, path := range []string{"thread_id", "subject", "text", "html", "extracted", "auth", "test_mode", "size", "rfc_message_id"} {
			if d := cmp.Diff(m.at(t, path), got.at(t, path)); d != "" {
				t.Errorf("%s: -response +stored:\n%s", path, d)
			}
		}
		s.do(t, http.MethodGet, "/v1/inboxes/"+in.ID+"/messages/wait?has=code", "").want(t, http.StatusOK).wantAt(t, "message.id", `"`+m.str(t, "id")+`"`)

		// A whole message, with any line endings.
		for _, end := range []string{"\n", "\r\n", "\r"} {
			raw := strings.ReplaceAll("From: bob@out.example\nMessage-ID: <b@out.example>\nIn-Reply-To: "+m.str(t, "rfc_message_id")+
				"\nSubject: Re: x\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nHello\n--b\n"+
				"Content-Type: text/csv\nContent-Disposition: attachment; filename=a.csv\n\n1,2\n--b--\n", "\n", end)
			body, err := json.Marshal(map[string]string{"raw": raw})
			if err != nil {
				t.Fatal(err)
			}
			got := s.do(t, http.MethodPost, "/v1/inboxes/"+in.ID+"/simulate", string(body)).want(t, http.StatusCreated)
			got.wantAt(t, "rfc_message_id", `"<b@out.example>"`)
			got.wantAt(t, "thread_id", `"`+m.str(t, "thread_id")+`"`)
			got.wantAt(t, "attachments.0.filename", `"a.csv"`)
			link := s.do(t, http.MethodGet, "/v1/messages/"+got.str(t, "id")+"/raw", "").want(t, http.StatusFound).header.Get("Location")
			kept := s.do(t, http.MethodGet, s.linked(t, link), "", as("")).want(t, http.StatusOK).body
			if bytes.Contains(bytes.ReplaceAll(kept, []byte("\r\n"), nil), []byte("\r")) || bytes.Count(kept, []byte("\n")) != bytes.Count(kept, []byte("\r\n")) {
				t.Errorf("line ends %q are kept as %q", end, kept)
			}
		}
	})
}

func TestSimulateRefuses(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		in := s.newInbox(t)
		path := "/v1/inboxes/" + in.ID + "/simulate"
		for body, want := range map[string]string{
			`{}`:                               "invalid_request from",
			`{"subject":"s"}`:                  "invalid_request from",
			`{"from":"bob"}`:                   "invalid_request from",
			`{"from":{"email":"a b@c.d"}}`:     "invalid_request from.email",
			`{"raw":""}`:                       "invalid_request raw",
			`{"raw":"x","text":"t"}`:           "invalid_request text",
			`{"raw":"x","from":"a@b.example"}`: "invalid_request raw",
			`{"raw":"` + strings.Repeat(`Received: x\n`, 51) + `\nx"}`:             "invalid_request raw",
			`{"raw":"X-Long: ` + strings.Repeat(`0123456789\n `, 100_000) + `\n"}`: "invalid_request raw",
			`{"from":"a@b.example","subject":"a\r\nBcc: b@c.example"}`:             "invalid_request subject",
		} {
			s.do(t, http.MethodPost, path, body, broken).wantError(t, http.StatusBadRequest, want)
		}
		body := `{"from":"a@b.example"}`
		s.do(t, http.MethodPost, path, body, as(s.newKey(t, scopes("read")))).want(t, http.StatusForbidden)
		s.do(t, http.MethodPost, path, body, as(s.newKey(t, onlyInboxes()))).wantError(t, http.StatusNotFound, "not_found")
		s.do(t, http.MethodPost, path, body, as(s.newKey(t, scopes("send")))).want(t, http.StatusCreated)
		s.exec(t, `UPDATE inboxes SET status = 'suspended' WHERE seq = $1`, in.Seq)
		s.do(t, http.MethodPost, path, body).wantError(t, http.StatusForbidden, "sending_paused")
		s.exec(t, `UPDATE inboxes SET status = 'active', expires_at = created_at WHERE seq = $1`, in.Seq)
		s.newInbox(t) // so that the server forgets the one that it remembers
		s.do(t, http.MethodPost, path, body).wantError(t, http.StatusForbidden, "inbox_expired")
		if n := len(s.pages(t, "/v1/messages")); n != 1 {
			t.Errorf("%d messages, want 1", n)
		}
	})
}

// A simulated message does not count as received mail: reply_only refuses a
// live send to its sender.
func TestSimulatedMailDoesNotCountAsReceived(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		in := s.newInbox(t, policy(store.PolicyReplyOnly))
		m := s.do(t, http.MethodPost, "/v1/inboxes/"+in.ID+"/simulate", `{"from":"ann@out.example","subject":"s","text":"t"}`).want(t, http.StatusCreated)
		path := "/v1/messages/" + m.str(t, "id") + "/reply"
		s.do(t, http.MethodPost, path, `{"text":"t"}`).wantError(t, http.StatusForbidden, "recipient_not_allowed to[0]")
		test := as(s.newKey(t, func(k *store.Key) { k.Mode = store.KeyTest }))
		s.do(t, http.MethodPost, path, `{"text":"t"}`, test).want(t, http.StatusCreated)
		s.receive(t, in, "From: ann@out.example\nSubject: Really")
		s.do(t, http.MethodPost, path, `{"text":"t"}`).want(t, http.StatusCreated)
	})
}
