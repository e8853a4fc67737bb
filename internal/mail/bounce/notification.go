package bounce

import (
	"cmp"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/postroom/postroom/internal/mail/mime"
	"github.com/postroom/postroom/internal/mail/plaintext"
)

// sesNotification is a notification or an event of Amazon SES that SNS sends by
// mail.
type sesNotification struct {
	Type   string `json:"notificationType"`
	Event  string `json:"eventType"`
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
	var wrapped struct{ Message string }
	if decodeJSON(text, &wrapped) && strings.HasPrefix(wrapped.Message, "{") {
		text = wrapped.Message // by SNS
	}
	if strings.HasPrefix(text, "[") {
		var list []serviceEvent
		decodeJSON(text, &list)
		for i := range reported(list) {
			list[i].read(&rep)
		}
		return rep
	}
	var n sesNotification
	var e struct {
		serviceEvent
		Data serviceEvent `json:"event-data"`
	}
	if !decodeJSON(text, &n) {
		return rep
	}
	if n.Type = cmp.Or(n.Type, n.Event); n.Type == "" {
		decodeJSON(text, &e)
		e.read(&rep)
		e.Data.read(&rep)
		return rep
	}
	if ids := mime.MessageIDs(n.Mail.Headers.MessageID); len(ids) > 0 {
		rep.OriginalID = ids[0]
	}
	n.read(&rep)
	return rep
}

// reported returns the first entries of a list: as many as a Report may hold.
func reported[T any](list []T) []T { return list[:min(len(list), maxReported)] }

// decodeJSON decodes the JSON at the start of text. It skips values of other
// types than those of v.
func decodeJSON(text string, v any) bool {
	if !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[") {
		return false
	}
	err := json.NewDecoder(strings.NewReader(text)).Decode(v)
	return err == nil || errors.As(err, new(*json.UnmarshalTypeError))
}

// serviceEvent is an event of SendGrid, Mailgun, Postmark and services that
// name their fields alike. The names match in any case.
type serviceEvent struct {
	Event       string
	RecordType  string
	Type        string
	Severity    string
	Email       string
	Recipient   string
	Reason      string
	Status      string
	Details     string
	Description string
	Delivery    struct {
		Code    int
		Message string
	} `json:"delivery-status"`
}

func (e *serviceEvent) read(rep *Report) {
	r := Recipient{Email: plausibleAddress(cmp.Or(e.Email, e.Recipient))}
	if r.Email == "" || len(rep.Recipients) == maxReported {
		return
	}
	switch strings.ToLower(cmp.Or(e.Event, e.RecordType, e.Type)) {
	case "bounce", "bounced", "failed", "dropped", "hard_bounce", "soft_bounce", "hardbounce", "softbounce", "blocked":
		r.Outcome = Bounced
	case "complained", "complaint", "spamreport", "spamcomplaint":
		r.Outcome, rep.FeedbackType = Complained, "abuse"
		rep.Recipients = append(rep.Recipients, r)
		return
	default:
		return
	}
	said := strings.TrimSpace(strings.Join([]string{e.Delivery.Message, e.Details, e.Reason, e.Description}, "\n"))
	if e.Delivery.Code >= 400 && e.Delivery.Code < 600 {
		said = strconv.Itoa(e.Delivery.Code) + " " + said
	}
	_, diagnostic, _ := cutType(said)
	v := interpret(diagnostic, "", "", findStatus(e.Status))
	kind := strings.ToLower(e.Type + " " + e.Event + " " + e.Severity)
	r.Hard = v.hard() || v.reason == ReasonNone && (strings.Contains(kind, "hard") || strings.Contains(kind, "permanent"))
	r.Hard = r.Hard && !strings.Contains(kind, "soft") && !strings.Contains(kind, "temporary")
	r.Reason, r.Status, r.Code, r.Diagnostic = v.reason, v.status, v.code, cutDiagnostic(diagnostic)
	rep.Recipients = append(rep.Recipients, r)
}

func (n *sesNotification) read(rep *Report) {
	add := func(email string, r Recipient) {
		if r.Email = plausibleAddress(email); r.Email != "" {
			rep.Recipients = append(rep.Recipients, r)
		}
	}
	switch n.Type {
	case "Bounce":
		for _, b := range reported(n.Bounce.Recipients) {
			_, diagnostic, _ := cutType(b.Diagnostic)
			v := interpret(diagnostic, "", "", findStatus(b.Status))
			add(b.Email, Recipient{
				Outcome: Bounced, Hard: v.hard() || v.reason == ReasonNone && n.Bounce.Type == "Permanent",
				Reason: v.reason, Status: v.status, Code: v.code, Diagnostic: cutDiagnostic(diagnostic),
			})
		}
	case "Complaint":
		rep.FeedbackType = strings.ToLower(plaintext.Truncate(plaintext.OneLine(n.Complaint.Type), maxDiagnostic))
		for _, c := range reported(n.Complaint.Recipients) {
			add(c.Email, Recipient{Outcome: Complained})
		}
	case "Delivery":
		for _, email := range reported(n.Delivery.Recipients) {
			add(email, Recipient{Outcome: Delivered})
		}
	}
}
