package bounce

import (
	"encoding/json"
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

// sesNotification is an Amazon SES notification that SNS sends by mail.
type sesNotification struct {
	Type   string `json:"notificationType"`
	Bounce struct {
		Type       string `json:"bounceType"`
		Recipients []struct {
			Email      string `json:"emailAddress"`
			Status     string `json:"status"`
			Diagnostic string `json:"diagnosticCode"`
		} `json:"bouncedRecipients"`
	} `json:"bounce"`
	Complaint struct {
		Type       string `json:"complaintFeedbackType"`
		Recipients []struct {
			Email string `json:"emailAddress"`
		} `json:"complainedRecipients"`
	} `json:"complaint"`
	Delivery struct {
		Recipients []string `json:"recipients"`
	} `json:"delivery"`
	Mail struct {
		Headers struct {
			MessageID string `json:"messageId"`
		} `json:"commonHeaders"`
	} `json:"mail"`
}

// unwrapped removes the line breaks that mail servers add to long lines.
var unwrapped = strings.NewReplacer("!\n ", "", "\n", " ")

// notification reads a JSON report of a sending service.
func (m *reportMail) notification() (rep Report) {
	text := strings.TrimSpace(unwrapped.Replace(m.text))
	if !strings.HasPrefix(text, "{") || !strings.Contains(plaintext.Truncate(text, maxDiagnostic), "notificationType") {
		return rep
	}
	var n sesNotification
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&n); err != nil {
		return rep // not JSON after all
	}
	if ids := mime.MessageIDs(n.Mail.Headers.MessageID); len(ids) > 0 {
		rep.OriginalID = ids[0]
	}
	n.read(&rep)
	rep.Recipients = rep.Recipients[:min(len(rep.Recipients), maxReported)]
	return rep
}

func (n *sesNotification) read(rep *Report) {
	add := func(email string, r Recipient) {
		if r.Email = plausibleAddress(email); r.Email != "" {
			rep.Recipients = append(rep.Recipients, r)
		}
	}
	switch n.Type {
	case "Bounce":
		for _, b := range n.Bounce.Recipients {
			_, diagnostic, _ := cutType(b.Diagnostic)
			v := judge(diagnostic, "", "", findStatus(b.Status))
			add(b.Email, Recipient{
				Outcome: Bounced, Hard: v.hard() || v.reason == ReasonNone && n.Bounce.Type == "Permanent",
				Reason: v.reason, Status: v.status, Code: v.code, Diagnostic: cutDiagnostic(diagnostic),
			})
		}
	case "Complaint":
		rep.FeedbackType = strings.ToLower(plaintext.Truncate(plaintext.OneLine(n.Complaint.Type), maxDiagnostic))
		for _, c := range n.Complaint.Recipients {
			add(c.Email, Recipient{Outcome: Complained})
		}
	case "Delivery":
		for _, email := range n.Delivery.Recipients {
			add(email, Recipient{Outcome: Delivered})
		}
	}
}
