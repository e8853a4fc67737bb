package contract_test

import (
	"fmt"
	"net/http"
	"net/smtp"
	"strings"
	"testing"
	"time"
)

// receive delivers a message to the inbox over SMTP and returns it.
func (in *install) receive(t *testing.T, to inbox) message {
	t.Helper()
	since := time.Now().UTC().Format(time.RFC3339Nano) // excludes messages of the last minute
	in.deliver(t, to.Address)
	c := in.call("waitForMessage").at("/v1/inboxes/"+to.ID+"/messages/wait").asking("since", since)
	res := read[struct{ Message *message }](t, in.send(t, c).want(t, http.StatusOK))
	if res.Message == nil || len(res.Message.Attachments) != 2 {
		t.Fatalf("wait: %+v", res.Message)
	}
	return *res.Message
}

// deliver sends a message with a code, a link, an attachment and an invitation to the
// SMTP server.
func (in *install) deliver(t *testing.T, to string) {
	t.Helper()
	mail := fmt.Sprintf(`From: Ana <ana@example.org>
To: %s
Subject: Your sign-in code is 482913
Message-ID: <%d@example.org>
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=b

--b
Content-Type: text/plain

Your sign-in code is 482913. Or confirm here:
https://app.example.org/confirm?token=abc
--b
Content-Type: application/pdf
Content-Disposition: attachment; filename=order.pdf
Content-Transfer-Encoding: base64

JVBERi0xLjcKT3JkZXIgMTA0Mgo=
--b
Content-Type: text/calendar; method=REQUEST

BEGIN:VCALENDAR
METHOD:REQUEST
BEGIN:VEVENT
UID:demo@example.org
DTSTART;TZID=Europe/Berlin:20301112T100000
DURATION:PT30M
SUMMARY:Demo
ORGANIZER;CN=Ana:mailto:ana@example.org
ATTENDEE:mailto:bob@example.org
END:VEVENT
END:VCALENDAR
--b--
`, to, time.Now().UnixNano())
	crlf := strings.ReplaceAll(mail, "\n", "\r\n")
	if err := smtp.SendMail(in.smtp, nil, "ana@example.org", []string{to}, []byte(crlf)); err != nil {
		t.Fatalf("mail to %s: %v", to, err)
	}
}
