package bounce

import (
	"strings"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/mime"
	"github.com/postroom/postroom/internal/mail/plaintext"
)

// complaint reads a report in Abuse Reporting Format (RFC 5965).
func (m *reportMail) complaint() (rep Report) {
	var recipients []string
	mime.Fields([]byte(m.feedback), func(f mime.Field) {
		switch {
		case f.Is("feedback-type") && rep.FeedbackType == "":
			rep.FeedbackType = mime.FirstToken(plaintext.Truncate(f.Text(), maxDiagnostic))
		case f.Is("original-rcpt-to"), f.Is("removal-recipient"):
			if email := plausibleAddress(f.Unfolded()); email != "" && len(recipients) < maxReported {
				recipients = append(recipients, email)
			}
		case f.Is("original-envelope-id") && rep.EnvelopeID == "":
			rep.EnvelopeID = plaintext.Truncate(f.Text(), maxDiagnostic)
		}
	})
	if rep.FeedbackType == "not-spam" { // positive feedback, RFC 5965 section 7.3
		return Report{}
	}
	if rep.FeedbackType == "" {
		rep.FeedbackType = "other"
	}
	var set recipientSet
	for _, email := range recipients {
		set.add(email, 0)
	}
	if len(set) == 0 {
		set.add(m.originalRecipient(), 0)
	}
	for _, f := range set {
		rep.Recipients = append(rep.Recipients, Recipient{Email: f.email, Outcome: Complained})
	}
	return rep
}

// originalRecipient returns the recipient of the original message, from the
// fields that providers add or from To, or "".
func (m *reportMail) originalRecipient() string {
	var named, to []mail.Address
	mime.Fields([]byte(m.original), func(f mime.Field) {
		switch {
		case f.Is("x-apparently-to"), f.Is("x-hmxmroriginalrecipient"):
			value, _, _ := strings.Cut(f.Unfolded(), " via ")
			named, _ = mime.ParseAddressList(value, 1)
		case f.Is("to") && to == nil:
			to, _ = f.Addresses(2)
		}
	})
	switch {
	case len(named) == 1:
		return plausibleAddress(named[0].Email)
	case len(to) == 1:
		return plausibleAddress(to[0].Email)
	}
	return ""
}

// plainComplaint reads a complaint from a provider that does not use RFC 5965.
// It has a known subject and the original message.
func (m *reportMail) plainComplaint() (rep Report) {
	if m.original == "" || !strings.HasPrefix(strings.ToLower(m.subject), "complaint about message from ") {
		return rep
	}
	rep.FeedbackType = "abuse"
	rep.Recipients = []Recipient{{Email: m.originalRecipient(), Outcome: Complained}}
	return rep
}

// unsubscribe reads a message that a mail client sent to unsubscribe its user
// from a list (RFC 2369 section 3.2).
func (m *reportMail) unsubscribe() (rep Report) {
	if !strings.EqualFold(m.subject, "unsubscribe") || !strings.HasPrefix(m.auto, "auto-") || !m.hasFrom {
		return rep
	}
	if email := plausibleAddress(m.from.Email); email != "" {
		rep.Recipients = []Recipient{{Email: email, Outcome: Complained}}
		rep.FeedbackType = "opt-out"
	}
	return rep
}
