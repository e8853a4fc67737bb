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
var Vendor = vendorapi.Vendor{Name: "mailpit", Operations: operations, Refuse: refuse}

type (
	server struct{ vendorapi.API }
	object = vendorapi.Object
)

func operations(api vendorapi.API) map[string]vendorapi.Handler {
	s := server{api}
	all := map[string]vendorapi.Handler{
		"GET /api/v1/info":     s.info,
		"GET /api/v1/messages": s.list, "DELETE /api/v1/messages": s.delete, "PUT /api/v1/messages": vendorapi.WithBody(s.mark),
		"GET /api/v1/search": s.list, "DELETE /api/v1/search": s.delete,
		"GET /api/v1/tags": s.tags, "PUT /api/v1/tags": vendorapi.WithBody(s.tag),
		"GET /api/v1/message/{id}":             s.latest(vendorapi.Show(api, show, "messages", "{id}")),
		"GET /api/v1/message/{id}/headers":     s.latest(vendorapi.Show(api, headers, "messages", "{id}")),
		"GET /api/v1/message/{id}/raw":         s.latest(s.File("messages", "{id}", "raw")),
		"GET /api/v1/message/{id}/part/{part}": s.latest(s.File("messages", "{id}", "attachments", "{part}")),
	}
	if api.Dev { // Mailpit lets no mail out
		all["POST /api/v1/send"] = vendorapi.WithBody(s.send)
	}
	return all
}

// refuse returns an error as Mailpit does.
func refuse(e *httpapi.Error) (int, any) { return e.Status, object{"Error": e.Message} }

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
func (s server) list(_ http.ResponseWriter, r *http.Request) (any, error) {
	q, find, err := readSearch(r, "start", "limit")
	if err != nil {
		return nil, err
	}
	start, err := vendorapi.Number(q, "start", 0, 0, 1_000_000)
	if err != nil {
		return nil, err
	}
	limit, err := vendorapi.Number(q, "limit", 50, 0, 1_000_000)
	if err != nil {
		return nil, err
	}
	all, found, err := s.mailbox(r, find)
	if err != nil {
		return nil, err
	}
	messages := vendorapi.Mapped(found[min(start, len(found)):min(start+limit, len(found))], func(m *stored) object {
		item := m.summary()
		item["Read"], item["Created"], item["Attachments"], item["Snippet"] = isRead(m.Message), m.CreatedAt, len(m.Attachments), m.Snippet.Or("")
		return item
	})
	unread, tags := count(all)
	foundUnread, _ := count(found)
	return object{
		"total": len(all), "unread": unread, "count": len(messages), "messages_count": len(found), "messages_unread": foundUnread, "start": start,
		"tags": names(tags), "messages": messages,
	}, nil
}

// delete deletes what a search finds, the messages with these IDs, or all messages, with
// their copies.
func (s server) delete(_ http.ResponseWriter, r *http.Request) (any, error) {
	_, find, err := readSearch(r)
	if err == nil && len(find.terms) == 0 && strings.HasSuffix(r.URL.Path, "/search") {
		err = httpapi.Invalid("query", "is required")
	}
	if err == nil && r.ContentLength != 0 {
		err = vendorapi.Decode(r, &find.ids)
	}
	if err != nil {
		return nil, err
	}
	for all := len(find.ids.IDs) == 0 && len(find.terms) == 0; ; {
		_, found, err := s.mailbox(r, find)
		if err != nil {
			return nil, err
		}
		for _, m := range found {
			if err := s.Delete(r, vendorapi.Mapped(m.copies, func(c *gen.Message) string { return c.ID })); err != nil {
				return nil, err
			}
		}
		if !all || len(found) == 0 { // of all, mailbox returns the newest
			return done, nil
		}
	}
}

type marks struct {
	IDs  []string
	Read bool
}

// mark sets whether the messages with these IDs, or all messages, are read.
func (s server) mark(r *http.Request, in *marks) (any, error) {
	return s.change(r, in.IDs, object{"read": in.Read})
}

type tags struct{ IDs, Tags []string }

// tag replaces the tags of the messages with these IDs.
func (s server) tag(r *http.Request, in *tags) (any, error) {
	if len(in.IDs) == 0 {
		return nil, httpapi.Invalid("IDs", "is required: the IDs of messages")
	}
	return s.change(r, in.IDs, object{"labels": append([]string{}, in.Tags...)})
}

// change changes messages with their copies.
func (s server) change(r *http.Request, ids []string, patch object) (any, error) {
	var find search
	find.ids.IDs = ids
	_, found, err := s.mailbox(r, find)
	if err != nil {
		return nil, err
	}
	for _, m := range found {
		for _, c := range m.copies {
			if _, err := s.Do(r, http.MethodPatch, vendorapi.Path(r, "messages", c.ID), nil, patch); err != nil {
				return nil, err
			}
		}
	}
	return done, nil
}

func isRead(m *gen.Message) bool { _, read := m.ReadAt.Get(); return read }

// count returns how many messages are unread, and how many have each tag.
func count(all []*stored) (unread int, tags map[string]int) {
	tags = map[string]int{}
	for _, m := range all {
		if !isRead(m.Message) {
			unread++
		}
		for _, tag := range m.Labels {
			tags[tag]++
		}
	}
	return unread, tags
}

func names(tags map[string]int) []string {
	return append([]string{}, slices.Sorted(maps.Keys(tags))...)
}

// done says that an operation succeeded, as Mailpit does.
const done = vendorapi.Text("ok")

// latest returns a handler for which the ID of the newest message is "latest", too.
func (s server) latest(serve vendorapi.Handler) vendorapi.Handler {
	return func(w http.ResponseWriter, r *http.Request) (any, error) {
		if r.PathValue("id") == "latest" {
			for m, err := range s.Received(r, nil) {
				if err != nil {
					return nil, err
				}
				r.SetPathValue("id", m.ID)
				break
			}
		}
		return serve(w, r)
	}
}

func show(m *gen.Message) object {
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
	return out
}

func headers(m *gen.Message) object {
	out := object{}
	for _, h := range m.Headers {
		name := http.CanonicalHeaderKey(h.Name)
		values, _ := out[name].([]string)
		out[name] = append(values, h.Value)
	}
	return out
}

func (s server) info(_ http.ResponseWriter, r *http.Request) (any, error) {
	all, _, err := s.mailbox(r, search{})
	unread, tags := count(all)
	version := "Postroom " + s.Version
	return object{"Version": version, "LatestVersion": version, "Messages": len(all), "Unread": unread, "Tags": tags}, err
}

func (s server) tags(_ http.ResponseWriter, r *http.Request) (any, error) {
	all, _, err := s.mailbox(r, search{})
	_, tags := count(all)
	return names(tags), err
}

// email is an email to send.
type email struct {
	From                vendorapi.Address
	To, Cc, ReplyTo     []vendorapi.Address
	Bcc                 []string
	Subject, Text, HTML string
	Headers             map[string]string
	Attachments         []vendorapi.Attachment
}

func (s server) send(r *http.Request, in *email) (any, error) {
	id, err := s.Send(r, vendorapi.Email{Attachments: vendorapi.Files(in.Attachments), Fields: vendorapi.Fields{
		From: in.From, To: in.To, Cc: in.Cc, ReplyTo: in.ReplyTo, Bcc: in.Bcc, Subject: in.Subject, Text: in.Text, HTML: in.HTML, Headers: in.Headers,
	}})
	return object{"ID": id}, err
}
