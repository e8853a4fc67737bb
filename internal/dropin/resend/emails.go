package resend

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/dropin/vendorapi"
	"github.com/postroom/postroom/internal/httpapi"
)

// fields are those of an email that our API has in the same form.
type fields struct {
	From        string            `json:"from"`
	To          list              `json:"to"`
	Cc          list              `json:"cc,omitempty"`
	Bcc         list              `json:"bcc,omitempty"`
	ReplyTo     list              `json:"reply_to,omitempty"`
	Subject     string            `json:"subject,omitempty"`
	HTML        string            `json:"html,omitempty"`
	Text        string            `json:"text,omitempty"`
	Headers     map[string]string `json:"headers,omitempty"`
	Tags        []tag             `json:"tags,omitempty"`
	ScheduledAt string            `json:"scheduled_at,omitempty"`
}

// email is an email to send.
type email struct {
	fields
	Attachments []file `json:"attachments"`
	Template    *struct {
		ID        string          `json:"id"`
		Variables json.RawMessage `json:"variables"`
	} `json:"template"`
	TopicID unsupported `json:"topic_id"`
}

type tag struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type file struct {
	Filename    string      `json:"filename"`
	Content     content     `json:"content"`
	ContentType string      `json:"content_type"`
	ContentID   string      `json:"content_id"`
	OldID       string      `json:"inline_content_id"`
	Path        unsupported `json:"path"`
}

// content is the content of a file, in base64. SDKs send it as base64, as a list of bytes,
// or as Node writes a Buffer.
type content string

// UnmarshalJSON implements json.Unmarshaler.
func (c *content) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, (*string)(c))
	}
	var buffer struct {
		Type string          `json:"type"`
		Data json.RawMessage `json:"data"`
	}
	if len(b) > 0 && b[0] == '{' {
		if err := json.Unmarshal(b, &buffer); err != nil {
			return err
		}
		b = buffer.Data
	}
	var numbers []uint16 // not bytes, which JSON writes as base64
	if err := json.Unmarshal(b, &numbers); err != nil {
		return err
	}
	decoded := make([]byte, len(numbers))
	for i, n := range numbers {
		if n > 255 {
			return errors.New("content has a number that is not a byte")
		}
		decoded[i] = byte(n)
	}
	*c = content(base64.StdEncoding.EncodeToString(decoded))
	return nil
}

// outgoing is an email as POST /v1/emails takes it.
type outgoing struct {
	fields
	Attachments []vendorapi.File `json:"attachments,omitempty"`
	Template    string           `json:"template,omitempty"`
	Data        json.RawMessage  `json:"data,omitempty"`
}

// ours converts an email to one of our API.
func (e *email) ours() (*outgoing, error) {
	out := &outgoing{fields: e.fields}
	if e.From == "" {
		return nil, required("from")
	}
	if err := cmp.Or(checkTime(e.ScheduledAt), unsupportedAmong("topic_id", e.TopicID)); err != nil {
		return nil, err
	}
	if t := e.Template; t != nil {
		out.Template, out.Data = t.ID, t.Variables
	} else if e.Subject == "" {
		return nil, required("subject")
	}
	for i, f := range e.Attachments {
		place := fmt.Sprintf("attachments[%d].", i)
		if f.Path.given {
			return nil, vendorapi.Unsupported(place + "path")
		}
		out.Attachments = append(out.Attachments, vendorapi.File{
			Filename: cmp.Or(f.Filename, "attachment"), Content: string(f.Content), ContentType: f.ContentType, ContentID: cmp.Or(f.ContentID, f.OldID),
		})
	}
	return out, nil
}

func required(field string) error {
	return &httpapi.Error{Status: http.StatusUnprocessableEntity, Code: gen.ErrorCodeInvalidRequest, Param: field, Message: field + " is required"}
}

// checkTime refuses a time in words, such as "in 1 min".
func checkTime(at string) error {
	if at == "" {
		return nil
	}
	if _, err := time.Parse(time.RFC3339, at); err != nil {
		return &httpapi.Error{
			Status: http.StatusUnprocessableEntity, Code: gen.ErrorCodeInvalidRequest, Param: "scheduled_at",
			Message: "scheduled_at must be a time in ISO 8601 with an offset, like 2027-01-31T10:00:00Z: Postroom reads no times in words",
		}
	}
	return nil
}

// deliver sends an email and returns its ID, or that of the draft that it became.
func (s server) deliver(r *http.Request, e *email) (string, error) {
	out, err := e.ours()
	if err != nil {
		return "", err
	}
	sent, err := vendorapi.Call[struct {
		ID string `json:"id"`
	}](r, s.API, http.MethodPost, "/v1/emails", nil, out)
	return sent.ID, err
}

func (s server) send(w http.ResponseWriter, r *http.Request) error {
	var in email
	if err := vendorapi.Decode(r, &in); err != nil {
		return err
	}
	id, err := s.deliver(r, &in)
	if err != nil {
		return err
	}
	return vendorapi.JSON(w, http.StatusOK, object{"id": id})
}

// maxBatch is how many emails a batch may have.
const maxBatch = 100

// batch sends emails one after the other. Each has its own idempotency key, so a repeated
// batch goes on where the first one ended.
func (s server) batch(w http.ResponseWriter, r *http.Request) error {
	var all []email
	if err := vendorapi.Decode(r, &all); err != nil {
		return err
	}
	if len(all) == 0 || len(all) > maxBatch {
		return httpapi.Invalid("emails", "must be 1 to %d", maxBatch)
	}
	permissive := r.Header.Get("X-Batch-Validation") == "permissive"
	for i := range all { // what can be checked before any is sent
		if _, err := all[i].ours(); err != nil && !permissive {
			return atIndex(i, 0, err)
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
			return atIndex(i, len(sent), err)
		default:
			failed = append(failed, object{"index": i, "message": e.Message})
		}
	}
	out := object{"data": sent}
	if permissive {
		out["errors"] = failed
	}
	return vendorapi.JSON(w, http.StatusOK, out)
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
		return url.Values{}, nil
	}
	e, err := vendorapi.Call[gen.Email](r, s.API, http.MethodGet, vendorapi.Path("emails", after), nil, nil)
	return url.Values{"until": {e.CreatedAt.Add(time.Millisecond).Format(time.RFC3339Nano)}}, err
}

func (s server) email(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if strings.HasPrefix(id, "drf_") {
		return s.draft(w, r, id)
	}
	e, err := vendorapi.Call[gen.Email](r, s.API, http.MethodGet, vendorapi.Path("emails", id), nil, nil)
	if err != nil {
		return err
	}
	out := showEmail(&e)
	out["object"], out["html"], out["text"], out["topic_id"] = "email", e.HTML, e.Text, nil
	tags := []tag{}
	for name, value := range e.Tags {
		var text string
		if json.Unmarshal(value, &text) != nil {
			text = string(value)
		}
		tags = append(tags, tag{name, text})
	}
	out["tags"] = tags
	return vendorapi.JSON(w, http.StatusOK, out)
}

// draft shows an email that needs approval.
func (s server) draft(w http.ResponseWriter, r *http.Request, id string) error {
	d, err := vendorapi.Call[gen.Draft](r, s.API, http.MethodGet, vendorapi.Path("drafts", id), nil, nil)
	if err != nil {
		return err
	}
	status := d.Status
	if sent, ok := d.MessageID.Get(); ok {
		m, err := vendorapi.Call[gen.Message](r, s.API, http.MethodGet, vendorapi.Path("messages", sent), nil, nil)
		if err != nil {
			return err
		}
		status = m.Status
	}
	return vendorapi.JSON(w, http.StatusOK, object{
		"object": "email", "id": d.ID, "message_id": "", "from": mailbox(d.From), "to": mailboxes(d.To), "cc": mailboxes(d.Cc), "bcc": mailboxes(d.Bcc),
		"reply_to": mailboxes(d.ReplyTo), "subject": d.Subject, "html": d.HTML, "text": d.Text, "created_at": d.CreatedAt, "scheduled_at": nil,
		"last_event": lastEvent(status, nil), "tags": []tag{}, "topic_id": nil,
	})
}

func (s server) reschedule(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		ID          string `json:"id"` // of the path; the Go SDK sends it
		ScheduledAt string `json:"scheduled_at"`
	}
	if err := vendorapi.Decode(r, &in); err != nil {
		return err
	}
	if in.ScheduledAt == "" {
		return required("scheduled_at")
	}
	if err := checkTime(in.ScheduledAt); err != nil {
		return err
	}
	return s.patch(w, r, "email", "emails", object{"scheduled_at": in.ScheduledAt})
}

// patch changes a resource of ours.
func (s server) patch(w http.ResponseWriter, r *http.Request, name, resource string, body object) error {
	if _, err := s.Do(r, http.MethodPatch, vendorapi.Path(resource, r.PathValue("id")), nil, body); err != nil {
		return err
	}
	return vendorapi.JSON(w, http.StatusOK, object{"object": name, "id": r.PathValue("id")})
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

func (s server) received(w http.ResponseWriter, r *http.Request) error {
	q, err := vendorapi.Query(r, "html_format")
	if err != nil {
		return err
	}
	if format := q.Get("html_format"); format != "" && format != "cid" {
		return httpapi.Invalid("html_format", "must be cid, the form that Postroom returns")
	}
	m, err := s.message(r)
	if err != nil {
		return err
	}
	out, headers := showReceived(m), map[string]string{}
	for _, h := range m.Headers {
		if _, known := headers[strings.ToLower(h.Name)]; !known {
			headers[strings.ToLower(h.Name)] = h.Value
		}
	}
	link, err := s.link(r, vendorapi.Path("messages", m.ID, "raw"))
	if err != nil {
		return err
	}
	out["object"], out["html"], out["text"], out["headers"], out["raw"] = "email", m.HTML, m.Text, headers, link
	return vendorapi.JSON(w, http.StatusOK, out)
}

func (s server) message(r *http.Request) (*gen.Message, error) {
	m, err := vendorapi.Call[gen.Message](r, s.API, http.MethodGet, vendorapi.Path("messages", r.PathValue("id")), nil, nil)
	if err == nil && m.Direction != "in" {
		err = notFound("received email " + m.ID)
	}
	return &m, err
}

// link returns the signed link of an operation and when it ends.
func (s server) link(r *http.Request, operation string) (object, error) {
	resp, err := s.Do(r, http.MethodGet, operation, nil, nil)
	if err != nil {
		return nil, err
	}
	var file struct {
		URL       string     `json:"download_url"`
		ExpiresAt *time.Time `json:"expires_at"`
	}
	if to := resp.Header.Get("Location"); to != "" {
		ends := time.Now().Add(time.Minute) // links work for longer
		file.URL, file.ExpiresAt = to, &ends
	} else if err := json.NewDecoder(resp.Body).Decode(&file); err != nil {
		return nil, err
	}
	return object{"download_url": file.URL, "expires_at": file.ExpiresAt}, nil
}

// attachments shows the attachments of a received email, or the one in the path.
func (s server) attachments(w http.ResponseWriter, r *http.Request) error {
	m, err := s.message(r)
	if err != nil {
		return err
	}
	data, one := []object{}, r.PathValue("attachment")
	for _, a := range m.Attachments {
		if one != "" && a.ID != one {
			continue
		}
		shown := showAttachment(a)
		link, err := s.link(r, vendorapi.Path("messages", m.ID, "attachments", a.ID))
		if err != nil {
			return err
		}
		maps.Copy(shown, link)
		data = append(data, shown)
	}
	switch {
	case one == "":
		return writeList(w, data, false)
	case len(data) == 0:
		return notFound("attachment " + one)
	}
	data[0]["object"] = "attachment"
	return vendorapi.JSON(w, http.StatusOK, data[0])
}

func notFound(what string) error {
	return &httpapi.Error{Status: http.StatusNotFound, Code: gen.ErrorCodeNotFound, Message: what + " not found"}
}
