// Package mailpit is the API of Mailpit, a mail catcher for development and tests.
//
// Its mailbox is the received mail of all inboxes of the key. Mail that several inboxes
// received is one message, as in Mailpit.
package mailpit

import (
	"cmp"
	"net/http"
	netmail "net/mail"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/dropin/vendorapi"
	"github.com/postroom/postroom/internal/httpapi"
)

// Vendor is the API.
var Vendor = vendorapi.Vendor{Name: "mailpit", New: newHandler, Refuse: refuse}

type server struct{ vendorapi.API }

func newHandler(api vendorapi.API) http.Handler {
	s, m := server{api}, api.NewMux(refuse)
	m.Handle("GET /api/v1/info", s.info)
	m.Handle("GET /api/v1/messages", s.list)
	m.Handle("DELETE /api/v1/messages", s.deleteMessages)
	m.Handle("GET /api/v1/search", s.list)
	m.Handle("DELETE /api/v1/search", s.deleteFound)
	m.Handle("GET /api/v1/message/{id}", s.one(s.show))
	m.Handle("GET /api/v1/message/{id}/headers", s.one(s.headers))
	m.Handle("GET /api/v1/message/{id}/raw", s.one(func(w http.ResponseWriter, r *http.Request, m *gen.Message) error {
		return s.ServeRaw(w, r, m.ID)
	}))
	m.Handle("GET /api/v1/message/{id}/part/{part}", s.one(func(w http.ResponseWriter, r *http.Request, m *gen.Message) error {
		return s.ServeAttachment(w, r, m.ID, r.PathValue("part"))
	}))
	m.Handle("POST /api/v1/send", s.send)
	m.Handle("GET /view/{file}", s.view)
	return m
}

// refuse writes an error as Mailpit does.
func refuse(w http.ResponseWriter, e *httpapi.Error) {
	_ = vendorapi.JSON(w, e.Status, map[string]string{"Error": e.Message}) // strings always encode
}

// stored is a message, with the copies of it that other inboxes received.
type stored struct {
	*gen.Message
	copies []*gen.Message // with the message itself
}

// mailbox returns all messages that match, newest first.
func (s server) mailbox(r *http.Request, find search) ([]*stored, error) {
	filters := url.Values{}
	if find.text {
		filters.Set("include", "text")
	}
	var all []*stored
	byID := map[string]*stored{}
	for m, err := range s.Received(r, filters) {
		if err != nil {
			return nil, err
		}
		if !find.matches(m) {
			continue
		}
		first := byID[m.RfcMessageID.Value]
		if first == nil || slices.ContainsFunc(first.copies, func(c *gen.Message) bool { return c.InboxID == m.InboxID }) {
			first = &stored{Message: m}
			all = append(all, first)
			if id, ok := m.RfcMessageID.Get(); ok {
				byID[id] = first
			}
		}
		first.copies = append(first.copies, m)
	}
	return all, nil
}

type (
	address struct {
		Name    string
		Address string
	}
	item struct {
		ID          string
		MessageID   string
		Read        bool
		From        *address
		To          []address
		Cc          []address
		Bcc         []address
		ReplyTo     []address
		Subject     string
		Created     time.Time
		Tags        []string
		Size        int64
		Attachments int
		Snippet     string
	}
	items struct {
		Total          int      `json:"total"`
		Unread         int      `json:"unread"`
		Count          int      `json:"count"`
		MessagesCount  int      `json:"messages_count"`
		MessagesUnread int      `json:"messages_unread"`
		Start          int      `json:"start"`
		Tags           []string `json:"tags"`
		Messages       []item   `json:"messages"`
	}
)

func addresses(list []gen.MailAddress) []address {
	out := make([]address, len(list))
	for i, a := range list {
		out[i] = address{a.Name.Or(""), a.Email}
	}
	return out
}

func sender(m *gen.Message) *address {
	if from, ok := m.From.Get(); ok {
		return &address{from.Name.Or(""), from.Email}
	}
	return nil
}

// bcc returns the addresses that copies reached and the header does not have.
func (m *stored) bcc() []address {
	out := []address{}
	for _, c := range m.copies {
		to, ok := c.DeliveredTo.Get()
		named := func(a gen.MailAddress) bool { return strings.EqualFold(a.Email, to) }
		if ok && !slices.ContainsFunc(m.To, named) && !slices.ContainsFunc(m.Cc, named) {
			out = append(out, address{"", to})
		}
	}
	return out
}

// messageID returns the Message-ID without its brackets.
func messageID(m *gen.Message) string { return strings.Trim(m.RfcMessageID.Or(""), "<>") }

// list implements the list of messages and the search.
func (s server) list(w http.ResponseWriter, r *http.Request) error {
	q, err := vendorapi.Query(r, "start", "limit", "query", "tz", "before")
	if err != nil {
		return err
	}
	start, err := strconv.Atoi(cmp.Or(q.Get("start"), "0"))
	if err != nil || start < 0 {
		return httpapi.Invalid("start", "must be a number from 0")
	}
	limit, err := strconv.Atoi(cmp.Or(q.Get("limit"), "50"))
	if err != nil || limit < 0 {
		return httpapi.Invalid("limit", "must be a number from 0")
	}
	find, err := parseSearch(q.Get("query"), q.Get("tz"))
	if err != nil {
		return err
	}
	found, err := s.mailbox(r, find)
	if err != nil {
		return err
	}
	total := len(found)
	if len(find.terms) > 0 {
		everything, err := s.mailbox(r, search{})
		if err != nil {
			return err
		}
		total = len(everything)
	}
	out := items{Total: total, Unread: total, MessagesCount: len(found), MessagesUnread: len(found), Start: start, Tags: []string{}, Messages: []item{}}
	for _, m := range found[min(start, len(found)):min(start+limit, len(found))] {
		out.Messages = append(out.Messages, item{
			ID: m.ID, MessageID: messageID(m.Message), From: sender(m.Message), To: addresses(m.To), Cc: addresses(m.Cc), Bcc: m.bcc(),
			ReplyTo: addresses(m.ReplyTo), Subject: m.Subject, Created: m.CreatedAt, Tags: []string{}, Size: m.Size,
			Attachments: len(m.Attachments), Snippet: m.Snippet.Or(""),
		})
	}
	out.Count = len(out.Messages)
	return vendorapi.JSON(w, http.StatusOK, out)
}

func ok(w http.ResponseWriter) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, err := w.Write([]byte("ok"))
	return err
}

// deleteMessages deletes messages by their IDs, or all.
func (s server) deleteMessages(w http.ResponseWriter, r *http.Request) error {
	var in struct{ IDs []string }
	if r.ContentLength != 0 {
		if err := vendorapi.Decode(r, &in); err != nil {
			return err
		}
	}
	return s.deleteThose(w, r, search{}, in.IDs)
}

func (s server) deleteFound(w http.ResponseWriter, r *http.Request) error {
	q, err := vendorapi.Query(r, "query", "tz")
	if err != nil {
		return err
	}
	find, err := parseSearch(q.Get("query"), q.Get("tz"))
	if err == nil && len(find.terms) == 0 {
		err = httpapi.Invalid("query", "is required")
	}
	if err != nil {
		return err
	}
	return s.deleteThose(w, r, find, nil)
}

// deleteThose deletes the messages with these IDs, or all, that match, with their copies.
func (s server) deleteThose(w http.ResponseWriter, r *http.Request, find search, ids []string) error {
	found, err := s.mailbox(r, find)
	if err != nil {
		return err
	}
	var all []string
	for _, m := range found {
		var copies []string
		for _, c := range m.copies {
			copies = append(copies, c.ID)
		}
		if len(ids) == 0 || slices.ContainsFunc(copies, func(id string) bool { return slices.Contains(ids, id) }) {
			all = append(all, copies...)
		}
	}
	if err := s.Delete(r, all); err != nil {
		return err
	}
	return ok(w)
}

// one returns the handler of a message, which may be called "latest".
func (s server) one(f func(http.ResponseWriter, *http.Request, *gen.Message) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		m, err := s.get(r, r.PathValue("id"))
		if err != nil {
			return err
		}
		return f(w, r, m)
	}
}

func (s server) get(r *http.Request, id string) (*gen.Message, error) {
	if id == "latest" {
		id = ""
		for m, err := range s.Received(r, nil) {
			if err != nil {
				return nil, err
			}
			id = m.ID
			break
		}
		if id == "" {
			return nil, httpapi.ErrNotFound
		}
	}
	m, err := vendorapi.Call[gen.Message](r, s.API, http.MethodGet, "/v1/messages/"+url.PathEscape(id), nil, nil)
	return &m, err
}

type (
	part struct {
		PartID      string
		FileName    string
		ContentType string
		ContentID   string
		Size        int64
	}
	unsubscribe struct {
		Header     string
		Links      []string
		Errors     string
		HeaderPost string
	}
	whole struct {
		ID              string
		MessageID       string
		From            *address
		To              []address
		Cc              []address
		Bcc             []address
		ReplyTo         []address
		ReturnPath      string
		Subject         string
		ListUnsubscribe unsubscribe
		Date            time.Time
		Tags            []string
		Text            string
		HTML            string
		Size            int64
		Inline          []part
		Attachments     []part
	}
)

// headerOf returns the first value of a header field.
func headerOf(m *gen.Message, name string) string {
	for _, h := range m.Headers {
		if strings.EqualFold(h.Name, name) {
			return h.Value
		}
	}
	return ""
}

func (s server) show(w http.ResponseWriter, _ *http.Request, m *gen.Message) error {
	one := stored{m, []*gen.Message{m}}
	out := whole{
		ID: m.ID, MessageID: messageID(m), From: sender(m), To: addresses(m.To), Cc: addresses(m.Cc), Bcc: one.bcc(), ReplyTo: addresses(m.ReplyTo),
		ReturnPath: strings.Trim(headerOf(m, "Return-Path"), "<>"), Subject: m.Subject, Date: m.CreatedAt, Tags: []string{},
		ListUnsubscribe: unsubscribe{Header: headerOf(m, "List-Unsubscribe"), HeaderPost: headerOf(m, "List-Unsubscribe-Post"), Links: []string{}},
		Text:            m.Text.Or(""), HTML: m.HTML.Or(""), Size: m.Size, Inline: []part{}, Attachments: []part{},
	}
	if sent, err := netmail.ParseDate(headerOf(m, "Date")); err == nil {
		out.Date = sent
	}
	for link := range strings.SplitSeq(out.ListUnsubscribe.Header, ",") {
		if link = strings.Trim(link, " <>"); link != "" {
			out.ListUnsubscribe.Links = append(out.ListUnsubscribe.Links, link)
		}
	}
	for _, a := range m.Attachments {
		p := part{a.ID, a.Filename, a.ContentType, a.ContentID.Or(""), a.Size}
		if a.Inline {
			out.Inline = append(out.Inline, p)
		} else {
			out.Attachments = append(out.Attachments, p)
		}
	}
	return vendorapi.JSON(w, http.StatusOK, out)
}

func (s server) headers(w http.ResponseWriter, _ *http.Request, m *gen.Message) error {
	out := http.Header{}
	for _, h := range m.Headers {
		out.Add(h.Name, h.Value)
	}
	return vendorapi.JSON(w, http.StatusOK, out)
}

// view serves the body of a message, in a sandbox: it comes from strangers.
func (s server) view(w http.ResponseWriter, r *http.Request) error {
	id, form, _ := strings.Cut(r.PathValue("file"), ".")
	if form != "html" && form != "txt" {
		return httpapi.ErrNotFound
	}
	m, err := s.get(r, id)
	if err != nil {
		return err
	}
	body, kind := m.HTML, "text/html"
	if form == "txt" {
		body, kind = m.Text, "text/plain"
	}
	if body.Null {
		return httpapi.ErrNotFound
	}
	h := w.Header()
	h.Set("Content-Type", kind+"; charset=utf-8")
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:")
	h.Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write([]byte(body.Value)) // the client may have gone
	return nil
}

func (s server) info(w http.ResponseWriter, r *http.Request) error {
	all, err := s.mailbox(r, search{})
	if err != nil {
		return err
	}
	return vendorapi.JSON(w, http.StatusOK, struct {
		Version, LatestVersion, Database string
		Messages, Unread                 int
		Tags                             map[string]int
	}{"Postroom " + s.Version, "Postroom " + s.Version, "Postroom", len(all), len(all), map[string]int{}})
}

// send sends an email.
func (s server) send(w http.ResponseWriter, r *http.Request) error {
	type person struct{ Name, Email string }
	var in struct {
		From                person
		To, Cc, ReplyTo     []person
		Bcc, Tags           []string
		Subject, Text, HTML string
		Headers             map[string]string
		Attachments         []struct{ Content, ContentID, ContentType, Filename string }
	}
	if err := vendorapi.Decode(r, &in); err != nil {
		return err
	}
	if in.Tags != nil {
		return vendorapi.Unsupported("Tags")
	}
	people := func(list []person) []vendorapi.Address {
		var out []vendorapi.Address
		for _, p := range list {
			out = append(out, vendorapi.Address{Email: p.Email, Name: p.Name})
		}
		return out
	}
	mail := vendorapi.Email{
		From: people([]person{in.From})[0], To: people(in.To), Cc: people(in.Cc), ReplyTo: people(in.ReplyTo),
		Subject: in.Subject, Text: in.Text, HTML: in.HTML, Headers: in.Headers,
	}
	for _, to := range in.Bcc {
		mail.Bcc = append(mail.Bcc, vendorapi.Address{Email: to})
	}
	for _, a := range in.Attachments {
		mail.Attachments = append(mail.Attachments, vendorapi.File{Filename: a.Filename, Content: a.Content, ContentType: a.ContentType, ContentID: a.ContentID})
	}
	id, err := s.Send(r, mail)
	if err != nil {
		return err
	}
	return vendorapi.JSON(w, http.StatusOK, struct{ ID string }{id})
}
