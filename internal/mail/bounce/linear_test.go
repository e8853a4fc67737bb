package bounce

import (
	"fmt"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/lineartest"
	"github.com/postroom/postroom/internal/mail"
)

// linearReaders are Read with each part that a report may have.
func linearReaders() (readers []lineartest.Reader) {
	fieldUnits := []string{"(", "<a" + lineartest.Number + "@b.example>", "\xe9", lineartest.Letter, "\r\n ", "a", `"`}
	status := []string{"a", "\r\n", " ", "Final-Recipient: rfc822; a" + lineartest.Number + "@b.example\r\n", "Status: 5.1.1\r\n", "<a" + lineartest.Number + "@b.example>", "550 5.1.1 ", ":", "\r\n\r\n"}
	text := append([]string{"user unknown ", "could not be delivered "}, status...)
	for name, place := range map[string]struct {
		units []string
		mail  string
	}{
		"text":            {text, "Subject: Undelivered Mail\r\n\r\n"},
		"html":            {[]string{"a", "<p>", "a@b.example", "550 5.1.1", "<br>"}, "Subject: Undelivered Mail\r\nContent-Type: text/html\r\n\r\n"},
		"delivery-status": {status, reportMailOf("message/delivery-status")},
		"feedback-report": {status, reportMailOf("message/feedback-report")},
		"original":        {status, reportMailOf("message/rfc822")},
		"headers":         {status, reportMailOf("text/rfc822-headers")},
		"subject":         {fieldUnits, "Subject: Undelivered "},
		"from":            {fieldUnits, "From: "},
		"return-path":     {fieldUnits, "Return-Path: "},
		"failed":          {fieldUnits, "X-Failed-Recipients: "},
	} {
		readers = append(readers, lineartest.Reader{
			Name: "Read " + name, Units: place.units, Short: 4,
			Read: func(s string) { _, _ = Read(strings.NewReader(place.mail+s), true, mail.DefaultLimits()) },
		})
	}
	return readers
}

func reportMailOf(kind string) string {
	return fmt.Sprintf("From: mailer-daemon@a.example\r\nContent-Type: multipart/report; boundary=b\r\n\r\n--b\r\n\r\nIt failed.\r\n--b\r\nContent-Type: %s\r\n\r\n", kind)
}

func TestReadersAreLinear(t *testing.T) { lineartest.Check(t, linearReaders()) }

func TestLinearReadersAreComplete(t *testing.T) {
	t.Parallel()
	lineartest.Complete(t, linearReaders(), nil)
}
