package vendorapi

import (
	"encoding/json"
	"net/http"
	"net/mail"

	"github.com/postroom/postroom/internal/httpapi"
)

// Email is an email to send, as POST /v1/emails takes it.
type Email struct {
	Fields
	Template    string          `json:"template,omitempty"`
	Data        json.RawMessage `json:"data,omitempty"`
	Attachments []File          `json:"attachments,omitempty"`
}

// Fields are those that vendors have in the same form. Addresses are texts, values of
// [Address], or lists of them.
type Fields struct {
	From        any               `json:"from"`
	To          any               `json:"to"`
	Cc          any               `json:"cc,omitempty"`
	Bcc         any               `json:"bcc,omitempty"`
	ReplyTo     any               `json:"reply_to,omitempty"`
	Subject     string            `json:"subject,omitempty"`
	HTML        string            `json:"html,omitempty"`
	Text        string            `json:"text,omitempty"`
	Headers     map[string]string `json:"headers,omitempty"`
	Tags        any               `json:"tags,omitempty"`
	ScheduledAt string            `json:"scheduled_at,omitempty"`
}

// Address is an address with a name, which may be empty.
type Address struct {
	Email string `json:"email"`
	Name  string `json:"name,omitempty"`
}

// File is a file to attach, in base64. With a ContentID the HTML shows it.
type File struct {
	Filename    string `json:"filename"`
	Content     string `json:"content"`
	ContentType string `json:"content_type,omitempty"`
	ContentID   string `json:"content_id,omitempty"`
}

// Attachment is a [File] in requests of vendors whose names differ in case.
type Attachment struct{ Filename, Content, ContentType, ContentID string }

// Files converts attachments.
func Files(all []Attachment) []File { return Mapped(all, func(a Attachment) File { return File(a) }) }

// Send sends an email and returns its ID.
func (a API) Send(r *http.Request, e Email) (string, error) {
	sent, err := Call[struct {
		ID string `json:"id"`
	}](r, a, http.MethodPost, "/v1/emails", nil, e)
	return sent.ID, err
}

// Addresses parses a list of addresses with names, separated by commas.
func Addresses(field, list string) ([]Address, error) {
	if list == "" {
		return nil, nil
	}
	parsed, err := mail.ParseAddressList(list)
	if err != nil {
		return nil, httpapi.Invalid(field, "must be email addresses separated by commas")
	}
	out := make([]Address, len(parsed))
	for i, p := range parsed {
		out[i] = Address{Email: p.Address, Name: p.Name}
	}
	return out, nil
}
