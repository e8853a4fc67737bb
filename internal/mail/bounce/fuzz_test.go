package bounce

import (
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/mailtest"
)

// FuzzDSN reads any input as a report (M13): a message, and the parts of one.
func FuzzDSN(f *testing.F) {
	mailtest.EachMessage(f, "../testdata/mail", func(raw []byte) { f.Add(string(raw), "", "") })
	f.Add("From: MAILER-DAEMON@b.example\nSubject: failure notice\n\n", "<you@c.example>: 550 5.1.1 unknown\n--- Below this line is a copy of the message.\n", "")
	f.Add("", "  you@c.example\n    Unrouteable address\n", "Final-Recipient: rfc822; you@c.example\nAction: failed\nStatus: 5.1.1 (x)\nDiagnostic-Code: smtp; 550-5.1.1 a\n 550 5.1.1 b\n")
	f.Add("", "THIS IS A WARNING MESSAGE ONLY", "Final-Recipient: utf-8; j\\x{FC}@c.example\nAction: delayed\n\nOriginal-Recipient: <a@b.c>\n")
	f.Add("From: no-reply@sns.example\n\n", `{"notificationType":"Bounce","bounce":{"bouncedRecipients":[{"emailAddress":"a@b.c","status":"5.1.1"}]}}`, "")
	f.Add("", ">>> RCPT To:<a@b.c>\n<<< 550 <a@b.c>... no\nReceived: from x\nMessage-ID: <a@b>\n", "")
	f.Fuzz(func(t *testing.T, header, text, status string) {
		for _, mail := range []string{header + text, statusMail(text, status, header)} {
			rep, err := Read(strings.NewReader(mail), true, fuzzLimits())
			if err != nil {
				continue
			}
			checkReport(t, rep)
		}
	})
}

// FuzzARF reads any input as the fields of a complaint (M13).
func FuzzARF(f *testing.F) {
	f.Add("Feedback-Type: abuse\nOriginal-Rcpt-To: <a@b.c>\nOriginal-Envelope-Id: 7\n", "Message-ID: <a@b>\nTo: x@y.z\n")
	f.Add("Feedback-Type: auth-failure (x)\nOriginal-Rcpt-To: a@b.c, d@e.f\n", "To: group: a@b.c;\n")
	f.Add("feedback-type:not-spam\n", "")
	f.Add("\x00\n : \n", "To: <@a,@b:c@d.e>\n")
	f.Fuzz(func(t *testing.T, fields, original string) {
		mail := "From: fbl@c.example\nContent-Type: multipart/report; boundary=x\n\n--x\nContent-Type: message/feedback-report\n\n" + fields +
			"\n--x\nContent-Type: text/rfc822-headers\n\n" + original + "\n--x--\n"
		rep, err := Read(strings.NewReader(mail), false, fuzzLimits())
		if err != nil {
			return
		}
		checkReport(t, rep)
	})
}

// fuzzLimits are small, so that a fuzzer reaches them.
func fuzzLimits() mail.Limits {
	lim := mail.DefaultLimits()
	lim.HeaderBytes, lim.TextBytes, lim.Depth, lim.Parts = 10_000, 10_000, 10, 20
	return lim
}
