// Package bounce reads reports about mail that was sent before: bounces, notices of
// delay, complaints and automatic replies.
package bounce

import (
	"io"
	"strings"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/mime"
	"github.com/postroom/postroom/internal/mail/plaintext"
)

// Report is what a message says about mail that was sent before: a delivery status
// notification (RFC 3464) or a bounce in a server's own words, a complaint (RFC
// 5965), a notice of delay, or an automatic reply (RFC 3834). Anyone can write such a
// message. Before acting on it, the caller must check that it concerns their own
// mail, by the address that it came to or by OriginalID.
type Report struct {
	// Recipients are those that the message reports on, at most 100. A message that
	// is not a report has none.
	Recipients []Recipient
	// OriginalID is the header Message-ID of the message that is reported on, with
	// angle brackets, or "".
	OriginalID string
	// ReturnPath is the reverse-path of the message that is reported on, where the
	// report gives it, or "".
	ReturnPath string
	// EnvelopeID is what the sender of that mail called it (ENVID, RFC 3461), or
	// "".
	EnvelopeID string
	// FeedbackType is the kind of a complaint in lower case, such as "abuse",
	// "fraud", "opt-out" or "auth-failure" (RFC 5965 section 7.3, RFC 6591), or
	// "". The last one reports a failed check, not an angry reader.
	FeedbackType string
}

// Recipient is what a report says about one recipient.
type Recipient struct {
	// Email is the address that the report names, the domain in lower case, or
	// "" where a complaint leaves it out.
	Email string
	// Original is the address that the sender had written, when the report
	// gives it and it is another one.
	Original string
	// Outcome is what happened.
	Outcome Outcome
	// Hard says of a bounce that the address is wrong: mail will never arrive
	// there. Anything else, also when it is final for this mail, is soft.
	Hard bool
	// Reason is why, in one word.
	Reason Reason
	// Status is the enhanced status code (RFC 3463) as "5.1.1", or "".
	Status string
	// Code is the reply code of SMTP, 400 to 599, or 0.
	Code int
	// Diagnostic is what the other server said, on one line, at most 1,000
	// bytes.
	Diagnostic string
}

// Outcome is what a report says happened to mail for one recipient.
type Outcome string

const (
	// Bounced mail was returned as undeliverable.
	Bounced Outcome = "bounced"
	// Delayed mail is still being tried.
	Delayed Outcome = "delayed"
	// Delivered mail arrived, or was passed on to a server that does not report.
	Delivered Outcome = "delivered"
	// Complained mail arrived, and its reader or their provider reported it.
	Complained Outcome = "complained"
	// AutoReplied mail arrived, and a program replied for its reader.
	AutoReplied Outcome = "auto_reply"
)

const (
	maxReported   = 100      // recipients of a report
	maxDiagnostic = 1000     // bytes
	maxReportText = 64 << 10 // bytes that are read of each kind of part
)

// Read reads a message as a report. nullReversePath says that its envelope has no
// sender, as that of a report should; many real ones have a sender. A message that is
// not a report returns a Report without recipients. The errors are those of
// [mime.Parse].
//
// The work is linear in the size of the message, and little more than reading the
// first 64 KiB of each part.
func Read(r io.Reader, nullReversePath bool, lim mail.Limits) (Report, error) {
	m, err := readReportMail(r, lim)
	if err != nil {
		return Report{}, err
	}
	m.nullPath = m.nullPath || nullReversePath
	rep := m.report()
	if len(rep.Recipients) == 0 {
		return Report{}, nil
	}
	if rep.OriginalID == "" {
		rep.OriginalID = m.originalID()
	}
	rep.ReturnPath = m.returnPath()
	return rep, nil
}

// report tries the forms of reports, the plainest first.
func (m *reportMail) report() Report {
	if m.feedback != "" {
		return m.complaint()
	}
	for _, read := range []func() Report{m.plainComplaint, m.unsubscribe, m.statusReport, m.notification, m.freeForm} {
		if rep := read(); len(rep.Recipients) > 0 {
			return rep
		}
	}
	return m.autoReply()
}

// originalID finds the Message-ID of the message that is reported on.
func (m *reportMail) originalID() string {
	for _, header := range []string{m.original, m.status, m.tail} {
		if id := headerID(header); id != "" {
			return id
		}
	}
	if id := headerID(m.head); id != "" { // "relates to a message ... with the following header fields"
		return id
	}
	if len(m.inReplyTo) > 0 {
		return m.inReplyTo[0]
	}
	if n := len(m.references); n > 0 {
		return m.references[n-1]
	}
	return ""
}

// returnPath finds the reverse-path of the message that is reported on: as the report
// names it, or as the message has it that is returned.
func (m *reportMail) returnPath() (path string) {
	read := func(name, text string) {
		mime.Fields([]byte(text), func(f mime.Field) {
			if f.Is(name) && path == "" {
				path = plaintext.Truncate(strings.Trim(f.Unfolded(), "<> \t"), maxDiagnostic)
			}
		})
	}
	read("original-mail-from", m.feedback)
	read("return-path", m.original)
	return path
}

// headerID returns the first Message-ID that stands as a field in text.
func headerID(text string) string {
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimLeft(line, " \t>")
		name, value, ok := strings.Cut(line, ":")
		if !ok || len(name) > len("x-original-message-id") {
			continue
		}
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "message-id", "x-original-message-id":
			if ids := mime.MessageIDs(value); len(ids) > 0 {
				return ids[0]
			}
		}
	}
	return ""
}
