// Package bounce reads reports about sent mail: bounces, delay notices,
// complaints and automatic replies.
package bounce

import (
	"io"
	"strings"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/mime"
	"github.com/postroom/postroom/internal/mail/plaintext"
)

// Report is what a message reports about sent mail: a delivery status
// notification (RFC 3464), a bounce in a server's own words, a complaint (RFC
// 5965), a delay notice or an automatic reply (RFC 3834). Anyone can forge one.
// Before acting on it, the caller must check that it concerns their own mail,
// by the address that received it or by OriginalID.
type Report struct {
	// From is the address of the author, or "" if From does not have exactly one.
	From string
	// Recipients are the recipients that the message reports on, at most 100.
	// It is empty if the message is not a report.
	Recipients []Recipient
	// OriginalID is the Message-ID of the reported message, with angle
	// brackets, or "".
	OriginalID string
	// ReturnPath is the reverse-path of the reported message, if the report
	// contains it, or "".
	ReturnPath string
	// EnvelopeID is the envelope id that the sender assigned (ENVID, RFC 3461),
	// or "".
	EnvelopeID string
	// FeedbackType is the kind of a complaint in lower case, such as "abuse",
	// "fraud", "opt-out" or "auth-failure" (RFC 5965 section 7.3, RFC 6591), or
	// "". A report of type "auth-failure" is about a failed check and not from
	// a reader.
	FeedbackType string
}

// Recipient is what a report says about one recipient.
type Recipient struct {
	// Email is the reported address with its domain in lower case, or "" if a
	// complaint omits it.
	Email string
	// Original is the address that the sender used, if the report contains it
	// and it differs from Email.
	Original string
	// Outcome is the reported outcome.
	Outcome Outcome
	// Hard reports whether a bounce means that the address is wrong and will
	// never work. All other bounces are soft, even if they are final for this
	// message.
	Hard bool
	// Reason is the cause of the outcome.
	Reason Reason
	// Status is the enhanced status code (RFC 3463), such as "5.1.1", or "".
	Status string
	// Code is the SMTP reply code, 400 to 599, or 0.
	Code int
	// Diagnostic is the remote server's text on one line, at most 1,000 bytes.
	Diagnostic string
}

// Outcome is the reported outcome for one recipient.
type Outcome string

const (
	// Bounced means that the message was returned as undeliverable.
	Bounced Outcome = "bounced"
	// Delayed means that delivery is still being retried.
	Delayed Outcome = "delayed"
	// Delivered means that the message was delivered, or relayed to a server
	// that does not report.
	Delivered Outcome = "delivered"
	// Complained means that the reader or their provider reported the message.
	Complained Outcome = "complained"
	// AutoReplied means that a program replied on behalf of the recipient.
	AutoReplied Outcome = "auto_reply"
)

const (
	maxReported   = 100      // recipients per report
	maxDiagnostic = 1000     // bytes
	maxReportText = 64 << 10 // bytes read per kind of part
)

// Read reads a message as a report. nullReversePath reports whether its
// envelope has a null reverse-path, as reports should; many real ones do not.
// If the message is not a report, Read returns a Report without recipients. It
// returns the same errors as [mime.Parse].
//
// Read takes linear time in the size of the message and analyzes only the first
// 64 KiB of each kind of part.
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
	if m.authors == 1 {
		rep.From = m.from.Email
	}
	return rep, nil
}

// report tries the kinds of reports, the most explicit first.
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

// originalID returns the Message-ID of the reported message, or "".
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

// returnPath returns the reverse-path of the reported message, from the report
// or from the returned message, or "".
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

// headerID returns the first Message-ID in a field in text, or "".
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
