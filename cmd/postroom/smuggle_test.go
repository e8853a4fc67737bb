package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/postroom/postroom/smtp/smtptest"
)

// SMTP smuggling (row S2): 13 byte strings that servers have taken for the end of
// a message, each in five places of an inbox message and of an email. The
// receiver gets one message for each accepted call, without a bare CR or LF. A
// call is refused if the string is not allowed there.
func TestNothingIsSmuggledOut(t *testing.T) {
	t.Parallel()
	relay := smtptest.NewMX(t, smtptest.MXConfig{})
	s := serve(t, t.TempDir(), "POSTROOM_RELAY=smtp://"+relay.Addr()+"?tls=maybe", "POSTROOM_RATE_LIMITS=off")
	_, inbox := s.call(t, s.key, http.MethodPost, "/v1/inboxes", `{"name":"ann"}`)
	message, email := fmt.Sprintf("/v1/inboxes/%s/messages", inbox["id"]), "/v1/emails"
	from := `{"from":"ann@postroom.localhost",`
	places := []struct {
		path, body string
		inBody     bool
	}{
		{message, `{"to":"bob@outside.example","subject":"s","text":%s}`, true},
		{message, `{"to":"bob@outside.example","subject":"s","html":%s}`, true},
		{message, `{"to":"bob@outside.example","subject":%s,"text":"t"}`, false},
		{message, `{"to":{"email":"bob@outside.example","name":%s},"subject":"s","text":"t"}`, false},
		{message, `{"to":"bob@outside.example","subject":"s","text":"t","headers":{"X-Note":%s}}`, false},
		{email, from + `"to":"bob@outside.example","subject":"s","text":%s}`, true},
		{email, from + `"to":"bob@outside.example","subject":"s","html":%s}`, true},
		{email, from + `"to":"bob@outside.example","subject":%s,"text":"t"}`, false},
		{email, from + `"to":"bob@outside.example","subject":"s","text":"t","replyTo":%s}`, false},
		{email, from + `"to":"bob@outside.example","subject":"s","text":"{{x}}","data":{"x":%s}}`, true},
	}
	ends := []string{
		"\n.\n", "\n.\r\n", "\r\n.\n", "\r.\r", "\r.\r\n", "\r\n.\r", "\r.\n", "\n.\r",
		"\r\n.\x00.\r\n", "\r\r\n.\r\r\n", "\r\n.\r\r\n", "\r\n\x00.\r\n", "\n\r.\n\r",
	}
	accepted, cases := 0, 0
	for _, place := range places {
		for _, end := range ends {
			value, err := json.Marshal("a" + end + "MAIL FROM:<evil@outside.example>\r\nDATA\r\nb" + end)
			if err != nil {
				t.Fatal(err)
			}
			status, body := s.call(t, s.key, http.MethodPost, place.path, fmt.Sprintf(place.body, value))
			cases++
			switch {
			case status == http.StatusCreated && place.inBody:
				accepted++
			case status != http.StatusBadRequest:
				t.Errorf("%s %s, %q: %d %v", place.path, place.body, end, status, body)
			}
		}
	}
	if cases != 2*65 || accepted == 0 {
		t.Errorf("%d cases, %d messages", cases, accepted)
	}
	messages := relay.Wait(t, accepted)
	if len(messages) != accepted {
		t.Errorf("the relay has %d messages, want %d", len(messages), accepted)
	}
	for _, m := range messages {
		if strings.ContainsAny(strings.ReplaceAll(string(m.Data), "\r\n", ""), "\r\n\x00") {
			t.Errorf("a bare CR, LF or NUL was sent:\n%q", m.Data)
		}
		if !isReturnPath(m.From, "postroom.localhost") || len(m.To) != 1 || !strings.Contains(string(m.Data), "Subject: s") {
			t.Errorf("unexpected envelope or subject: from %s to %v", m.From, m.To)
		}
	}
	t.Logf("%d of %d were sent as one message each; the others were refused", accepted, cases)
}
