package vendorapi

import (
	"encoding/json"
	"net/http"
	"net/mail"

	"github.com/postroom/postroom/internal/httpapi"
)

// Email is an email to send, as POST /v1/emails takes it.
type Email struct {
	From        Address           `json:"from"`
	To          []Address         `json:"to"`
	Cc          []Address         `json:"cc,omitempty"`
	Bcc         []Address         `json:"bcc,omitempty"`
	ReplyTo     []Address         `json:"replyTo,omitempty"`
	Subject     string            `json:"subject,omitempty"`
	HTML        string            `json:"html,omitempty"`
	Text        string            `json:"text,omitempty"`
	Template    string            `json:"template,omitempty"`
	Data        json.RawMessage   `json:"data,omitempty"`
	Attachments []File            `json:"attachments,omitempty"`
	Headers     map[string]string `json:"headers,omitempty"`
	ScheduledAt string            `json:"scheduledAt,omitempty"`
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
	ContentType string `json:"contentType,omitempty"`
	ContentID   string `json:"contentId,omitempty"`
}

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
