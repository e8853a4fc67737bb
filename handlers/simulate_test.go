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

// Characters that only programs see are in no text that the API or MCP returns. The flag
// of a region has such characters, and becomes a black flag.
func TestInvisibleCharactersAreRemoved(t *testing.T) {
	t.Parallel()
	const black, england = "\U0001F3F4", "\U000E0067\U000E0062\U000E0065\U000E006E\U000E0067\U000E007F"
	const hidden = "\U000E0049\U000E0067\U000E006E\U000E006F\U000E0072\U000E0065\U000E0001\U000E0100\U000E01EF\U000E0FFF\u115f\u1160\u3164\uffa0\u180e"
	const said = "Hi" + hidden + " " + black + england + "❤\ufe0f\ufe01\ufe02\U000E0100 there" + hidden
	const want = "Hi " + black + "❤\ufe0f there"
	const inHTML = "Hi " + black + "❤ there"
	each(t, func(t *testing.T, s *server) {
		in := s.newInbox(t)
		simulate := func(parts string) response {
			raw := "From: \"" + said + "\" <a@out.example>\nTo: \"" + said + "\" <b@out.example>\nSubject: " + said +
				"\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n" + parts +
				"--b\nContent-Type: text/csv\nContent-Disposition: attachment; filename=\"" + said + ".csv\"\n\n1\n--b--\n"
			body, err := json.Marshal(map[string]string{"raw": raw})
			if err != nil {
				t.Fatal(err)
			}
			m := s.do(t, http.MethodPost, "/v1/inboxes/"+in.ID+"/simulate", string(body)).want(t, http.StatusCreated)
			return s.do(t, http.MethodGet, "/v1/messages/"+m.str(t, "id"), "").want(t, http.StatusOK)
		}
		text := simulate("--b\nContent-Type: text/plain; charset=utf-8\n\n" + said + "\n\nOn 1 May, Bob <b@x.example> wrote:\n> " + said + "\n")
		page := simulate("--b\nContent-Type: text/html; charset=utf-8\n\n<p>" + said + "&#xE0049;&#x3164;</p>\n")
		for _, m := range []response{text, page} {
			for _, field := range []string{"subject", "from.name", "to.0.name"} {
				m.wantAt(t, field, `"`+want+`"`)
			}
			m.wantAt(t, "attachments.0.filename", `"`+strings.ReplaceAll(want, "\ufe0f", "")+`.csv"`)
		}
		text.wantAt(t, "extracted_text", `"`+want+`"`)
		text.wantText(t, `"text":"`+want+`\n\nOn 1 May`)
		page.wantAt(t, "text", `"`+inHTML+`"`)
		page.wantAt(t, "extracted_text", `"`+inHTML+`"`)
		page.wantAt(t, "snippet", `"`+inHTML+`"`)
		for _, m := range []response{text, page} {
			for _, tool := range []string{`"get_message","arguments":{"message_id":"` + m.str(t, "id") + `"}`, `"search_messages","arguments":{}`, `"list_threads","arguments":{"inbox_id":"` + in.ID + `"}`} {
				got := string(s.do(t, http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":`+tool+`}}`, broken).want(t, http.StatusOK).body)
				if !strings.Contains(got, black) || strings.ContainsAny(got, hidden+england+"\ufe01\U000E0100") {
					t.Errorf("%s: %+q", tool, got)
				}
			}
		}
	}, withMCP)
}

func TestSimulateMessage(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		in := s.newInbox(t)
		wake := s.store.WakeMatching(store.MessageFilter{InboxSeq: in.Seq})
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
