package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/postroom/postroom/smtp/smtptest"
)

// What a caller writes into a mail can never end it, whatever line ends it has:
// 13 byte strings that servers have taken for the end of a mail, each in five
// places (row S2). The peer gets one mail for each that was accepted, and no CR
// or LF alone; where the string cannot stand, the call is refused.
func TestS2NothingIsSmuggledOut(t *testing.T) {
	t.Parallel()
	relay := smtptest.NewMX(t, smtptest.MXConfig{})
	s := serve(t, t.TempDir(), "POSTROOM_RELAY=smtp://"+relay.Addr()+"?tls=maybe", "POSTROOM_RATE_LIMITS=off")
	_, inbox := s.call(t, s.key, http.MethodPost, "/v1/inboxes", `{"name":"ann"}`)
	places := map[string]string{
		"text":    `{"to":"bob@outside.example","subject":"s","text":%s}`,
		"html":    `{"to":"bob@outside.example","subject":"s","html":%s}`,
		"subject": `{"to":"bob@outside.example","subject":%s,"text":"t"}`,
		"name":    `{"to":{"email":"bob@outside.example","name":%s},"subject":"s","text":"t"}`,
		"header":  `{"to":"bob@outside.example","subject":"s","text":"t","headers":{"X-Note":%s}}`,
	}
	ends := []string{
		"\n.\n", "\n.\r\n", "\r\n.\n", "\r.\r", "\r.\r\n", "\r\n.\r", "\r.\n", "\n.\r",
		"\r\n.\x00.\r\n", "\r\r\n.\r\r\n", "\r\n.\r\r\n", "\r\n\x00.\r\n", "\n\r.\n\r",
	}
	accepted, cases := 0, 0
	for place, body := range places {
		for _, end := range ends {
			value, err := json.Marshal("a" + end + "MAIL FROM:<evil@outside.example>\r\nDATA\r\nb" + end)
			if err != nil {
				t.Fatal(err)
			}
			status, answer := s.call(t, s.key, http.MethodPost, fmt.Sprintf("/v1/inboxes/%s/messages", inbox["id"]), fmt.Sprintf(body, value))
			cases++
			switch inBody := place == "text" || place == "html"; {
			case status == http.StatusCreated && inBody:
				accepted++
			case status != http.StatusBadRequest:
				t.Errorf("%s, %q: %d %v", place, end, status, answer)
			}
		}
	}
	if cases != 65 || accepted == 0 {
		t.Errorf("%d cases, %d mails", cases, accepted)
	}
	mails := relay.Wait(t, accepted)
	if len(mails) != accepted {
		t.Errorf("the peer has %d mails, want %d", len(mails), accepted)
	}
	for _, m := range mails {
		if strings.ContainsAny(strings.ReplaceAll(string(m.Data), "\r\n", ""), "\r\n\x00") {
			t.Errorf("a CR, LF or NUL alone went out:\n%q", m.Data)
		}
		if !isReturnPath(m.From, "postroom.localhost") || len(m.To) != 1 || !strings.Contains(string(m.Data), "Subject: s") {
			t.Errorf("a mail of another: from %s to %v", m.From, m.To)
		}
	}
	t.Logf("%d of %d were sent, as one mail each; the others were refused", accepted, cases)
}
