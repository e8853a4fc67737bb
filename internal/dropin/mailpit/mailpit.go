// Package mailpit is the API of Mailpit, a mail catcher for development and tests.
//
// Its mailbox is the received mail of all inboxes of the key. Mail that several inboxes
// received is one message, as in Mailpit.
package mailpit

import (
	"maps"
	"net/http"
	netmail "net/mail"
	"net/url"
	"slices"
	"strings"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/dropin/vendorapi"
	"github.com/postroom/postroom/internal/httpapi"
)

// Vendor is the API.
var Vendor = vendorapi.Vendor{Name: "mailpit", New: newHandler, Refuse: refuse}

type (
	server struct{ vendorapi.API }
	object = vendorapi.Object
)

func newHandler(api vendorapi.API) http.Handler {
	s, m := server{api}, api.NewMux(refuse)
	m.Handle("GET /api/v1/info", s.info)
	m.Handle("GET /api/v1/messages", s.list)
	m.Handle("DELETE /api/v1/messages", s.delete)
	m.Handle("PUT /api/v1/messages", s.mark)
	m.Handle("PUT /api/v1/tags", s.tag)
	m.Handle("GET /api/v1/search", s.list)
	m.Handle("DELETE /api/v1/search", s.delete)
	m.Handle("GET /api/v1/message/{id}", s.one(s.show))
	m.Handle("GET /api/v1/message/{id}/headers", s.one(s.headers))
	m.Handle("GET /api/v1/message/{id}/raw", s.one(func(w http.ResponseWriter, r *http.Request, m *gen.Message) error {
		return s.ServeFile(w, r, vendorapi.Path("messages", m.ID, "raw"))
	}))
	m.Handle("GET /api/v1/message/{id}/part/{part}", s.one(func(w http.ResponseWriter, r *http.Request, m *gen.Message) error {
		return s.ServeFile(w, r, vendorapi.Path("messages", m.ID, "attachments", r.PathValue("part")))
	}))
	if api.Dev { // Mailpit lets no mail out
		m.Handle("POST /api/v1/send", s.send)
	}
	return m
}

// refuse writes an error as Mailpit does.
func refuse(w http.ResponseWriter, e *httpapi.Error) {
	_ = vendorapi.JSON(w, e.Status, object{"Error": e.Message})
}

// stored is a message, with the copies of it that other inboxes received.
type stored struct {
	*gen.Message
	copies []*gen.Message // with the message itself
	found  bool           // one of them
}

// mailbox returns all messages, and those that a search finds, newest first.
func (s server) mailbox(r *http.Request, find search) (all, found []*stored, err error) {
	filters := url.Values{}
	if find.text {
		filters.Set("include", "text")
	}
	// A stranger may choose the Message-ID of another message: copies have the same sender
	// and subject too.
	type mail struct{ id, from, subject string }
	seen := map[mail]*stored{}
	for m, err := range s.Received(r, filters) {
		if err != nil {
			return nil, nil, err
		}
		key := mail{messageID(m), m.From.Value.Email, m.Subject}
		first := seen[key]
		if first == nil || key.id == "" || slices.ContainsFunc(first.copies, func(c *gen.Message) bool { return c.InboxID == m.InboxID }) {
			first = &stored{Message: m}
			all, seen[key] = append(all, first), first
		}
		first.copies = append(first.copies, m)
		first.found = first.found || find.matches(m)
		m.Text, m.ExtractedText = gen.NilString{}, gen.NilString{} // which may be large
	}
	return all, slices.DeleteFunc(slices.Clone(all), func(m *stored) bool { return !m.found }), nil
}

func person(a gen.MailAddress) object { return object{"Name": a.Name.Or(""), "Address": a.Email} }

// messageID returns the Message-ID without its brackets.
func messageID(m *gen.Message) string { return strings.Trim(m.RfcMessageID.Or(""), "<>") }

// summary returns the fields that a message has in lists and alone. Bcc are the addresses
// that copies reached and the header does not have.
func (m *stored) summary() object {
	hidden := []object{}
	for _, c := range m.copies {
		for _, to := range bcc(c) {
			hidden = append(hidden, object{"Name": "", "Address": to})
		}
	}
	out := object{
		"ID": m.ID, "MessageID": messageID(m.Message), "From": nil, "To": vendorapi.Mapped(m.To, person), "Cc": vendorapi.Mapped(m.Cc, person),
		"Bcc": hidden, "ReplyTo": vendorapi.Mapped(m.ReplyTo, person), "Subject": m.Subject, "Tags": append([]string{}, m.Labels...), "Size": m.Size,
	}
	if from, ok := m.From.Get(); ok {
		out["From"] = person(from)
	}
	return out
}

// list implements the list of messages and the search.
func (s server) list(w http.ResponseWriter, r *http.Request) error {
	q, find, err := readSearch(r, "start", "limit")
	if err != nil {
		return err
	}
	start, err := vendorapi.Number(q, "start", 0, 0, 1_000_000)
	if err != nil {
		return err
	}
	limit, err := vendorapi.Number(q, "limit", 50, 0, 1_000_000)
	if err != nil {
		return err
	}
	all, found, err := s.mailbox(r, find)
	if err != nil {
		return err
	}
	messages := vendorapi.Mapped(found[min(start, len(found)):min(start+limit, len(found))], func(m *stored) object {
		item := m.summary()
		item["Read"], item["Created"], item["Attachments"], item["Snippet"] = isRead(m.Message), m.CreatedAt, len(m.Attachments), m.Snippet.Or("")
		return item
	})
	return vendorapi.JSON(w, http.StatusOK, object{
		"total": len(all), "unread": unread(all), "count": len(messages), "messages_count": len(found), "messages_unread": unread(found), "start": start,
		"tags": append([]string{}, slices.Sorted(maps.Keys(tags(all)))...), "messages": messages,
	})
}

// delete deletes what a search finds, the messages with these IDs, or all messages, with
// their copies.
func (s server) delete(w http.ResponseWriter, r *http.Request) error {
	_, find, err := readSearch(r)
	if err == nil && len(find.terms) == 0 && strings.HasSuffix(r.URL.Path, "/search") {
		err = httpapi.Invalid("query", "is required")
	}
	if err == nil && r.ContentLength != 0 {
		err = vendorapi.Decode(r, &find.ids)
	}
	if err != nil {
		return err
	}
	for all := len(find.ids.IDs) == 0 && len(find.terms) == 0; ; {
		_, found, err := s.mailbox(r, find)
		if err != nil {
			return err
		}
		for _, m := range found {
			if err := s.Delete(r, vendorapi.Mapped(m.copies, func(c *gen.Message) string { return c.ID })); err != nil {
				return err
			}
		}
		if !all || len(found) == 0 { // of all, mailbox returns the newest
			return ok(w)
		}
	}
}

// mark sets whether the messages with these IDs, or all messages, are read.
func (s server) mark(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		IDs  []string
		Read bool
	}
	if err := vendorapi.Decode(r, &in); err != nil {
		return err
	}
	return s.change(w, r, in.IDs, object{"read": in.Read})
}

// tag replaces the tags of the messages with these IDs.
func (s server) tag(w http.ResponseWriter, r *http.Request) error {
	var in struct{ IDs, Tags []string }
	if err := vendorapi.Decode(r, &in); err != nil {
		return err
	}
	if len(in.IDs) == 0 {
		return httpapi.Invalid("IDs", "is required: the IDs of messages")
	}
	return s.change(w, r, in.IDs, object{"labels": append([]string{}, in.Tags...)})
}

// change changes messages with their copies.
func (s server) change(w http.ResponseWriter, r *http.Request, ids []string, patch object) error {
	var find search
	find.ids.IDs = ids
	_, found, err := s.mailbox(r, find)
	if err != nil {
		return err
	}
	for _, m := range found {
		for _, c := range m.copies {
			if _, err := s.Do(r, http.MethodPatch, vendorapi.Path("messages", c.ID), nil, patch); err != nil {
				return err
			}
		}
	}
	return ok(w)
}

func isRead(m *gen.Message) bool { _, read := m.ReadAt.Get(); return read }

func unread(all []*stored) (n int) {
	for _, m := range all {
		if !isRead(m.Message) {
			n++
		}
	}
	return n
}

// tags returns how many messages have each tag.
func tags(all []*stored) map[string]int {
	out := map[string]int{}
	for _, m := range all {
		for _, tag := range m.Labels {
			out[tag]++
		}
	}
	return out
}

func ok(w http.ResponseWriter) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("ok")) // the client may have gone
	return nil
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
		for m, err := range s.Received(r, nil) {
			if err != nil {
				return nil, err
			}
			id = m.ID
			break
		}
	}
	m, err := vendorapi.Call[gen.Message](r, s.API, http.MethodGet, vendorapi.Path("messages", id), nil, nil)
	return &m, err
}

func (s server) show(w http.ResponseWriter, _ *http.Request, m *gen.Message) error {
	one := &stored{Message: m, copies: []*gen.Message{m}}
	out := one.summary()
	out["Text"], out["HTML"], out["Date"] = m.Text.Or(""), m.HTML.Or(""), m.CreatedAt
	if sent, err := netmail.ParseDate(vendorapi.Header(m, "Date")); err == nil {
		out["Date"] = sent
	}
	out["ReturnPath"] = strings.Trim(vendorapi.Header(m, "Return-Path"), "<>")
	list := vendorapi.Header(m, "List-Unsubscribe")
	links := strings.FieldsFunc(list, func(r rune) bool { return strings.ContainsRune("<>, ", r) })
	out["ListUnsubscribe"] = object{"Header": list, "Links": append([]string{}, links...), "Errors": "", "HeaderPost": vendorapi.Header(m, "List-Unsubscribe-Post")}
	parts := map[bool][]object{true: {}, false: {}} // by whether they are inline
	for _, a := range m.Attachments {
		parts[a.Inline] = append(parts[a.Inline], object{
			"PartID": a.ID, "FileName": a.Filename, "ContentType": a.ContentType, "ContentID": a.ContentID.Or(""), "Size": a.Size,
		})
	}
	out["Inline"], out["Attachments"] = parts[true], parts[false]
	return vendorapi.JSON(w, http.StatusOK, out)
}

func (s server) headers(w http.ResponseWriter, _ *http.Request, m *gen.Message) error {
	out := http.Header{}
	for _, h := range m.Headers {
		out.Add(h.Name, h.Value)
	}
	return vendorapi.JSON(w, http.StatusOK, out)
}

func (s server) info(w http.ResponseWriter, r *http.Request) error {
	all, _, err := s.mailbox(r, search{})
	if err != nil {
		return err
	}
	version := "Postroom " + s.Version
	return vendorapi.JSON(w, http.StatusOK, object{"Version": version, "LatestVersion": version, "Messages": len(all), "Unread": unread(all), "Tags": tags(all)})
}

// send sends an email.
func (s server) send(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		From                vendorapi.Address
		To, Cc, ReplyTo     []vendorapi.Address
		Bcc                 []string
		Subject, Text, HTML string
		Headers             map[string]string
		Attachments         []vendorapi.File
	}
	if err := vendorapi.Decode(r, &in); err != nil {
		return err
	}
	id, err := s.Send(r, vendorapi.Email{
		From: in.From, To: in.To, Cc: in.Cc, ReplyTo: in.ReplyTo, Subject: in.Subject, Text: in.Text, HTML: in.HTML, Headers: in.Headers,
		Bcc: vendorapi.Mapped(in.Bcc, func(to string) vendorapi.Address { return vendorapi.Address{Email: to} }), Attachments: in.Attachments,
	})
	if err != nil {
		return err
	}
	return vendorapi.JSON(w, http.StatusOK, object{"ID": id})
}
