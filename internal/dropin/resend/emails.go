package resend

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/dropin/vendorapi"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/timeform"
)

// email is an email to send.
type email struct {
	vendorapi.Fields
	Attachments []file `json:"attachments"`
	Template    *struct {
		ID        string          `json:"id"`
		Variables json.RawMessage `json:"variables"`
	} `json:"template"`
}

type file struct {
	Filename    string           `json:"filename"`
	Content     content          `json:"content"`
	ContentType string           `json:"content_type"`
	ContentID   string           `json:"content_id"`
	OldID       string           `json:"inline_content_id"`
	Path        *json.RawMessage `json:"path"`
}

// content is the content of a file, in base64. SDKs send it as base64, as a list of bytes,
// or as Node writes a Buffer.
type content string

// UnmarshalJSON implements json.Unmarshaler.
func (c *content) UnmarshalJSON(b []byte) error {
	if b[0] == '"' {
		return json.Unmarshal(b, (*string)(c))
	}
	var buffer struct {
		Type string `json:"type"`
		Data []byte `json:"data"`
	}
	to := any(&buffer.Data)
	if b[0] == '{' {
		to = &buffer
	}
	err := json.Unmarshal(b, to)
	*c = content(base64.StdEncoding.EncodeToString(buffer.Data))
	return err
}

// ours converts an email to one of our API.
func (e *email) ours() (out vendorapi.Email, err error) {
	out.Fields = e.Fields
	if e.From == nil || e.From == "" {
		return out, httpapi.Invalid("from", "is required")
	}
	if t := e.Template; t != nil {
		out.Template, out.Data = t.ID, t.Variables
	} else if e.Subject == "" {
		return out, httpapi.Invalid("subject", "is required")
	}
	if _, ok := timeform.Parse(e.ScheduledAt); e.ScheduledAt != "" && !ok {
		return out, httpapi.Invalid("scheduled_at", "is not a time with a date and an offset, like 2027-01-31T10:00:00Z, but %q", e.ScheduledAt)
	}
	for i, f := range e.Attachments {
		if f.Path != nil {
			return out, vendorapi.Unsupported(fmt.Sprintf("attachments[%d].path", i))
		}
		out.Attachments = append(out.Attachments, vendorapi.File{
			Filename: cmp.Or(f.Filename, "attachment"), Content: string(f.Content), ContentType: f.ContentType, ContentID: cmp.Or(f.ContentID, f.OldID),
		})
	}
	return out, nil
}

// deliver sends an email and returns its ID, or that of the draft that it became.
func (s server) deliver(r *http.Request, e *email) (string, error) {
	out, err := e.ours()
	if err != nil {
		return "", err
	}
	return s.Send(r, out)
}

func (s server) send(r *http.Request, in *email) (any, error) {
	id, err := s.deliver(r, in)
	return object{"id": id}, err
}

// maxBatch is how many emails a batch may have.
const maxBatch = 100

// batch sends emails one after the other. Each has its own idempotency key, so a repeated
// batch goes on where the first one ended.
func (s server) batch(r *http.Request, in *[]email) (any, error) {
	all := *in
	if len(all) == 0 || len(all) > maxBatch {
		return nil, httpapi.Invalid("emails", "must be 1 to %d", maxBatch)
	}
	permissive := r.Header.Get("X-Batch-Validation") == "permissive"
	for i := range all { // what can be checked before any is sent
		if _, err := all[i].ours(); err != nil && !permissive {
			return nil, atIndex(i, 0, err)
		}
	}
	sent, failed := []object{}, []object{}
	for i := range all {
		one := r.Clone(r.Context())
		if key := r.Header.Get("Idempotency-Key"); key != "" {
			one.Header.Set("Idempotency-Key", fmt.Sprintf("%s/%d", key, i))
		}
		id, err := s.deliver(one, &all[i])
		e, refused := errors.AsType[*httpapi.Error](err)
		switch {
		case err == nil:
			sent = append(sent, object{"id": id})
		case !refused || !permissive:
			return nil, atIndex(i, len(sent), err)
		default:
			failed = append(failed, object{"index": i, "message": e.Message})
		}
	}
	out := object{"data": sent}
	if permissive {
		out["errors"] = failed
	}
	return out, nil
}

// atIndex says which email of a batch an error is about, and how many were sent before it.
func atIndex(i, sent int, err error) error {
	e, ok := errors.AsType[*httpapi.Error](err)
	if !ok {
		return err
	}
	at := *e
	at.Message = fmt.Sprintf("email %d of the batch: %s", i, e.Message)
	if sent > 0 {
		at.Message += fmt.Sprintf(" (%d emails before it are sent; a batch with the same idempotency key does not send them again)", sent)
	}
	return &at
}

// lastEvents are Resend's words for our states.
var lastEvents = map[string]string{"sending": "queued", "cancelled": "canceled", "pending": "queued", "rejected": "canceled"}

func lastEvent(status string, recipients []gen.Recipient) string {
	suppressed := len(recipients) > 0
	for _, r := range recipients {
		suppressed = suppressed && r.Status == "suppressed"
	}
	if suppressed {
		return "suppressed"
	}
	return cmp.Or(lastEvents[status], status)
}

func showEmail(e *gen.Email) object {
	return object{
		"id": e.ID, "message_id": e.RfcMessageID, "from": e.From, "to": e.To, "cc": e.Cc, "bcc": e.Bcc, "reply_to": e.ReplyTo, "subject": e.Subject,
		"created_at": e.CreatedAt, "scheduled_at": e.ScheduledAt, "last_event": lastEvent(e.Status, e.Recipients),
	}
}

// fromEmail returns the filter by which a list begins near the email that it is to follow.
func fromEmail(s server, r *http.Request) (url.Values, error) {
	after := r.URL.Query().Get("after")
	if after == "" {
		return nil, nil
	}
	e, err := vendorapi.Get[gen.Email](r, s.API, "emails", after)
	return url.Values{"until": {e.CreatedAt.Add(time.Millisecond).Format(time.RFC3339Nano)}}, err
}

func showWholeEmail(e *gen.Email) object {
	out, tags := showEmail(e), []object{}
	for name, value := range e.Tags {
		var text string
		if json.Unmarshal(value, &text) != nil {
			text = string(value)
		}
		tags = append(tags, object{"name": name, "value": text})
	}
	out["object"], out["html"], out["text"], out["tags"], out["topic_id"] = "email", e.HTML, e.Text, tags, nil
	return out
}

// email shows an email, or the draft of one that needs approval.
func (s server) email(w http.ResponseWriter, r *http.Request) (any, error) {
	if !strings.HasPrefix(r.PathValue("id"), "drf_") {
		return vendorapi.Show(s.API, showWholeEmail, "emails", "{id}")(w, r)
	}
	d, err := vendorapi.Get[gen.Draft](r, s.API, "drafts", "{id}")
	if err != nil {
		return nil, err
	}
	e := gen.Email{
		ID: d.ID, From: mailbox(d.From), To: mailboxes(d.To), Cc: mailboxes(d.Cc), Bcc: mailboxes(d.Bcc), ReplyTo: mailboxes(d.ReplyTo),
		Subject: d.Subject, HTML: d.HTML, Text: d.Text, CreatedAt: d.CreatedAt, Status: d.Status,
	}
	if sent, ok := d.MessageID.Get(); ok {
		m, err := vendorapi.Get[gen.Message](r, s.API, "messages", sent)
		if err != nil {
			return nil, err
		}
		e.Status = m.Status
	}
	return showWholeEmail(&e), nil
}

type reschedule struct {
	ID          string `json:"id"` // of the path; the Go SDK sends it
	ScheduledAt string `json:"scheduled_at"`
}

func (s server) reschedule(r *http.Request, in *reschedule) (any, error) {
	if in.ScheduledAt == "" {
		return nil, httpapi.Invalid("scheduled_at", "is required")
	}
	return s.patch(r, "email", "emails", object{"scheduled_at": in.ScheduledAt})
}

// Received emails.

func mailbox(a gen.MailAddress) string {
	if name, ok := a.Name.Get(); ok && name != "" {
		return name + " <" + a.Email + ">"
	}
	return a.Email
}

func mailboxes(as []gen.MailAddress) []string { return vendorapi.Mapped(as, mailbox) }

func showReceived(m *gen.Message) object {
	from := ""
	if f, ok := m.From.Get(); ok {
		from = mailbox(f)
	}
	to, _ := m.DeliveredTo.Get()
	return object{
		"id": m.ID, "message_id": m.RfcMessageID.Value, "from": from, "to": mailboxes(m.To), "cc": mailboxes(m.Cc), "bcc": mailboxes(m.Bcc),
		"reply_to": mailboxes(m.ReplyTo), "received_for": []string{to}, "subject": m.Subject, "created_at": m.CreatedAt,
		"attachments": vendorapi.Mapped(m.Attachments, showAttachment),
	}
}

func showAttachment(a gen.Attachment) object {
	disposition := "attachment"
	if a.Inline {
		disposition = "inline"
	}
	return object{
		"id": a.ID, "filename": a.Filename, "size": a.Size, "content_type": a.ContentType, "content_id": a.ContentID, "content_disposition": disposition,
	}
}

// received is the filter for received messages.
func received(server, *http.Request) (url.Values, error) { return url.Values{"direction": {"in"}}, nil }

func (s server) received(_ http.ResponseWriter, r *http.Request) (any, error) {
	q, err := vendorapi.Query(r, "html_format")
	if err != nil {
		return nil, err
	}
	if format := q.Get("html_format"); format != "" && format != "cid" {
		return nil, httpapi.Invalid("html_format", "must be cid, the form that Postroom returns")
	}
	m, err := s.message(r)
	if err != nil {
		return nil, err
	}
	out, headers := showReceived(m), map[string]string{}
	for _, h := range m.Headers {
		if _, known := headers[strings.ToLower(h.Name)]; !known {
			headers[strings.ToLower(h.Name)] = h.Value
		}
	}
	link, err := s.Link(r, "messages", m.ID, "raw")
	out["object"], out["html"], out["text"], out["headers"], out["raw"] = "email", m.HTML, m.Text, headers, link
	return out, err
}

func (s server) message(r *http.Request) (*gen.Message, error) {
	m, err := vendorapi.Get[gen.Message](r, s.API, "messages", r.PathValue("id"))
	if err == nil && m.Direction != "in" {
		err = vendorapi.NotFound("received email " + m.ID)
	}
	return m, err
}

// attachments shows the attachments of a received email, or the one in the path.
func (s server) attachments(_ http.ResponseWriter, r *http.Request) (any, error) {
	m, err := s.message(r)
	if err != nil {
		return nil, err
	}
	data, one := []object{}, r.PathValue("attachment")
	for _, a := range m.Attachments {
		if one != "" && a.ID != one {
			continue
		}
		shown := showAttachment(a)
		link, err := s.Link(r, "messages", m.ID, "attachments", a.ID)
		if err != nil {
			return nil, err
		}
		shown["download_url"], shown["expires_at"] = link.URL, link.ExpiresAt
		data = append(data, shown)
	}
	switch {
	case one == "":
		return list(data, false), nil
	case len(data) == 0:
		return nil, vendorapi.NotFound("attachment " + one)
	}
	data[0]["object"] = "attachment"
	return data[0], nil
}
