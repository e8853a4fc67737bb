package web

import (
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/postroom/postroom/gen"
)

// mailFunctions are what templates of mail can call.
var mailFunctions = template.FuncMap{
	"sender":   senderOf,
	"result":   resultText,
	"mailbox":  mailbox,
	"initial":  initial,
	"fileSize": fileSize,
	"seen":     seen,
	"subject":  subject,
	"policy":   policyText,
	"shorten":  shortened,
	"files":    files,
	"days":     days,
}

// mailbox writes an address with its name.
func mailbox(a gen.MailAddress) string {
	if name := strings.TrimSpace(a.Name.Or("")); name != "" {
		return name + " <" + a.Email + ">"
	}
	return a.Email
}

// initial is the letter that stands for a sender.
func initial(name string) string {
	for _, r := range strings.TrimLeft(name, `"'<(`) {
		return strings.ToUpper(string(r))
	}
	return "?"
}

// subject is one that can be clicked.
func subject(s string) string {
	if strings.TrimSpace(s) == "" {
		return "(no subject)"
	}
	return s
}

// files are the attachments to list below a mail: not those that its document
// shows.
func files(all []gen.Attachment, f *frame) []gen.Attachment {
	if f == nil {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(at gen.Attachment) bool { return at.Inline && at.ContentID.Or("") != "" })
}

func fileSize(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d bytes", n)
	case n < 1_000_000:
		return fmt.Sprintf("%.0f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// days writes a number of days.
func days(n int) string {
	if n == 1 {
		return "1 day"
	}
	return fmt.Sprintf("%d days", n)
}

// policyText is the name of a send policy on the screen.
func policyText(policy string) string {
	switch gen.SendPolicy(policy) {
	case gen.SendPolicyOpen:
		return "Open"
	case gen.SendPolicyReplyOnly:
		return "Replies only"
	case gen.SendPolicyApproval:
		return "Needs approval"
	}
	return policy
}
