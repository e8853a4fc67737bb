package web

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/postroom/postroom/gen"
)

// mailFunctions are the template functions for messages.
var mailFunctions = template.FuncMap{
	"sender":      senderOf,
	"result":      func(result string) string { return cmp.Or(results[result], result) },
	"mailbox":     mailbox,
	"initial":     initial,
	"fileSize":    fileSize,
	"fileIcon":    fileIcon,
	"hasText":     hasText,
	"authSummary": authSummary,
	"seen":        seen,
	"subject":     subject,
	"policy":      func(policy string) string { return policies[policy] },
	"shorten":     shortened,
	"files":       files,
	"days":        func(n int) string { return plural(n, "day", "days") },
}

// mailbox formats an address with its display name.
func mailbox(a gen.MailAddress) string {
	if name := strings.TrimSpace(a.Name.Or("")); name != "" {
		return name + " <" + a.Email + ">"
	}
	return a.Email
}

// initial returns the letter that represents a sender.
func initial(name string) string {
	for _, r := range strings.TrimLeft(name, `"'<(`) {
		return strings.ToUpper(string(r))
	}
	return "?"
}

// subject returns the subject, or a placeholder if it is empty.
func subject(s string) string {
	if strings.TrimSpace(s) == "" {
		return "(no subject)"
	}
	return s
}

// files returns the attachments to list below a message: those that its document
// does not show.
func files(all []gen.Attachment, f *frame) []gen.Attachment {
	if f == nil {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(at gen.Attachment) bool { return at.Inline && at.ContentID.Or("") != "" })
}

// fileSize formats a number of bytes.
func fileSize(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d bytes", n)
	case n < 1_000_000:
		return fmt.Sprintf("%.0f kB", float64(n)/1e3)
	case n < 1_000_000_000:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}

// policies are the display names of send policies.
var policies = map[string]string{
	string(gen.SendPolicyOpen): "Open", string(gen.SendPolicyReplyOnly): "Replies only", string(gen.SendPolicyApproval): "Needs approval",
}

// fileIcon returns the name of the icon for files of a media type.
func fileIcon(contentType string) string {
	kind, _, _ := strings.Cut(contentType, "/")
	switch {
	case kind == "image":
		return "image"
	case contentType == "text/calendar":
		return "calendar"
	case contentType == "text/csv", strings.Contains(contentType, "spreadsheet"), strings.Contains(contentType, "excel"):
		return "sheet"
	case strings.Contains(contentType, "zip"), strings.Contains(contentType, "compressed"), strings.HasSuffix(contentType, "tar"):
		return "archive"
	}
	return "file"
}
