// Package mailosaur is the API of Mailosaur, with which tests wait for mail.
//
// A server of Mailosaur is a mail domain: the server abcd1234 has the mail to all addresses
// at abcd1234 and at domains that begin with "abcd1234.", among the inboxes of the key. The
// server "postroom" has the mail of all of them.
package mailosaur

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/dropin/vendorapi"
	"github.com/postroom/postroom/internal/httpapi"
)

// Vendor is the API.
var Vendor = vendorapi.Vendor{Name: "mailosaur", New: newHandler, Refuse: refuse}

type (
	server struct{ vendorapi.API }
	object = vendorapi.Object
)

func newHandler(api vendorapi.API) http.Handler {
	s, m := server{api}, api.NewMux(refuse)
	m.Handle("GET /api/messages", func(w http.ResponseWriter, r *http.Request) error {
		return s.find(w, r, url.Values{}, func(*gen.Message) bool { return true })
	})
	m.Handle("DELETE /api/messages", s.delete)
	m.Handle("POST /api/messages/search", s.search)
	m.Handle("GET /api/messages/{id}", s.show)
	m.Handle("DELETE /api/messages/{id}", s.delete)
	m.Handle("GET /api/files/email/{id}", func(w http.ResponseWriter, r *http.Request) error {
		return s.ServeFile(w, r, vendorapi.Path("messages", r.PathValue("id"), "raw"))
	})
	m.Handle("GET /api/files/attachments/{id}", func(w http.ResponseWriter, r *http.Request) error {
		message, attachment, _ := strings.Cut(r.PathValue("id"), ".")
		return s.ServeFile(w, r, vendorapi.Path("messages", message, "attachments", attachment))
	})
	return m
}

// refuse writes an error as Mailosaur does. Its SDKs show the text of an error only for
// the status 400.
func refuse(w http.ResponseWriter, e *httpapi.Error) {
	status := e.Status
	if status == http.StatusUnprocessableEntity {
		status = http.StatusBadRequest
	}
	_ = vendorapi.JSON(w, status, object{"errors": []object{{"field": e.Param, "detail": []object{{"description": e.Message}}}}})
}

// all is the server that has the mail of all inboxes of the key.
const all = "postroom"

var errNoServer = httpapi.Invalid("server", "is required: the id of a server")

// within reports whether a message is on a server.
func within(m *gen.Message, server string) bool {
	if server == all {
		return true
	}
	on := vendorapi.Recipients(m)
	if m.Direction == "out" {
		on = []string{m.From.Value.Email}
	}
	return slices.ContainsFunc(on, func(address string) bool {
		_, domain, _ := strings.Cut(strings.ToLower(address), "@")
		return strings.HasPrefix(domain+".", strings.ToLower(server)+".")
	})
}

func person(a gen.MailAddress) object { return object{"name": a.Name.Or(""), "email": a.Email} }

// summary returns the fields that a message has in lists and alone.
func summary(m *gen.Message, server string) object {
	return object{
		"id": m.ID, "type": "Email", "server": server, "received": m.CreatedAt, "subject": m.Subject,
		"from": vendorapi.Mapped(vendorapi.From(m), person), "to": vendorapi.Mapped(m.To, person),
		"cc": vendorapi.Mapped(m.Cc, person), "bcc": vendorapi.Mapped(m.Bcc, person),
	}
}

// find writes the messages that match of the page that the client asks for.
func (s server) find(w http.ResponseWriter, r *http.Request, filters url.Values, match func(*gen.Message) bool) error {
	q, err := vendorapi.Query(r, "server", "page", "itemsPerPage", "receivedAfter", "dir")
	if err != nil {
		return err
	}
	page, err := vendorapi.Number(q, "page", 0, 0, 1000)
	if err != nil {
		return err
	}
	size, err := vendorapi.Number(q, "itemsPerPage", 50, 1, 1000)
	if err != nil {
		return err
	}
	if after := q.Get("receivedAfter"); after != "" {
		filters.Set("since", after)
	}
	switch strings.ToLower(q.Get("dir")) {
	case "", "received":
	case "sent":
		filters.Set("direction", "out")
	default:
		return httpapi.Invalid("dir", "must be Sent or Received")
	}
	id := q.Get("server")
	if id == "" {
		return errNoServer
	}
	items, skip := []object{}, page*size
	for m, err := range s.Received(r, filters) {
		if err != nil {
			return err
		}
		if !within(m, id) || !match(m) {
			continue
		}
		if skip--; skip >= 0 {
			continue
		}
		item := summary(m, id)
		item["summary"], item["attachments"] = m.Snippet.Or(""), len(m.Attachments)
		if items = append(items, item); len(items) == size {
			break
		}
	}
	return vendorapi.JSON(w, http.StatusOK, object{"items": items})
}

// delay is after how many milliseconds the SDK searches again: the last one from then on.
const delay = "200,300,500,1000"

func (s server) search(w http.ResponseWriter, r *http.Request) error {
	var c struct{ SentFrom, SentTo, Subject, Body, Match string }
	if err := vendorapi.Decode(r, &c); err != nil {
		return err
	}
	filters := url.Values{"since": {time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)}}
	if c.Body != "" {
		filters.Set("include", "text")
	}
	var tests []func(*gen.Message) bool
	for _, t := range []struct {
		want string
		of   func(*gen.Message) []string
		is   func(text, want string) bool
	}{
		{c.SentFrom, func(m *gen.Message) []string { return []string{m.From.Value.Email} }, strings.EqualFold},
		{c.SentTo, vendorapi.Recipients, strings.EqualFold},
		{c.Subject, func(m *gen.Message) []string { return []string{m.Subject} }, vendorapi.Contains},
		{c.Body, func(m *gen.Message) []string { return []string{m.Text.Or("")} }, vendorapi.Contains},
	} {
		if t.want != "" {
			tests = append(tests, func(m *gen.Message) bool {
				return slices.ContainsFunc(t.of(m), func(text string) bool { return t.is(text, t.want) })
			})
		}
	}
	anyOne := strings.EqualFold(c.Match, "any")
	switch {
	case len(tests) == 0:
		return httpapi.Invalid("criteria", "needs sentFrom, sentTo, subject or body")
	case !anyOne && c.Match != "" && !strings.EqualFold(c.Match, "all"):
		return httpapi.Invalid("match", "must be ALL or ANY")
	}
	w.Header().Set("X-Ms-Delay", delay)
	return s.find(w, r, filters, func(m *gen.Message) bool {
		// Of any, one test passes; of all, none fails.
		return slices.ContainsFunc(tests, func(test func(*gen.Message) bool) bool { return test(m) == anyOne }) == anyOne
	})
}

// show writes a message as a whole.
func (s server) show(w http.ResponseWriter, r *http.Request) error {
	m, err := vendorapi.Call[gen.Message](r, s.API, http.MethodGet, vendorapi.Path("messages", r.PathValue("id")), nil, nil)
	if err != nil {
		return err
	}
	_, domain, _ := strings.Cut(m.DeliveredTo.Or(m.From.Value.Email), "@")
	id, _, _ := strings.Cut(domain, ".")
	out := summary(&m, id)
	links, images := vendorapi.Links(m.HTML.Or(""))
	out["html"] = content(&m, m.HTML.Or(""), links)
	out["html"].(object)["images"] = vendorapi.Mapped(images, func(l vendorapi.Link) object { return object{"src": l.Target, "alt": l.Text} })
	out["text"] = content(&m, m.Text.Or(""), vendorapi.TextLinks(m.Text.Or("")))
	out["attachments"] = vendorapi.Mapped(m.Attachments, func(a gen.Attachment) object {
		file := m.ID + "." + a.ID
		return object{
			"id": file, "contentType": a.ContentType, "fileName": a.Filename, "contentId": a.ContentID.Or(""), "length": a.Size,
			"url": s.BaseURL + "/api/files/attachments/" + file,
		}
	})
	rcptTo := []object{}
	if to, ok := m.DeliveredTo.Get(); ok {
		rcptTo = append(rcptTo, object{"email": to})
	}
	out["metadata"] = object{
		"headers":  vendorapi.Mapped(m.Headers, func(h gen.HeaderField) object { return object{"field": h.Name, "value": h.Value} }),
		"mailFrom": strings.Trim(vendorapi.Header(&m, "Return-Path"), "<>"), "rcptTo": rcptTo,
	}
	return vendorapi.JSON(w, http.StatusOK, out)
}

// content returns a body with the codes and links in it.
func content(m *gen.Message, body string, links []vendorapi.Link) object {
	return object{
		"body":  body,
		"codes": vendorapi.Mapped(vendorapi.Codes(m, body), func(code string) object { return object{"value": code} }),
		"links": vendorapi.Mapped(links, func(l vendorapi.Link) object {
			return object{"href": l.Target, "text": strings.TrimSpace(l.Text)}
		}),
	}
}

// delete deletes a message, or all of a server.
func (s server) delete(w http.ResponseWriter, r *http.Request) error {
	q, err := vendorapi.Query(r, "server")
	ids := []string{r.PathValue("id")}
	if ids[0] == "" {
		if q.Get("server") == "" && err == nil {
			err = errNoServer
		}
		ids = nil
		for m, failed := range s.Received(r, nil) {
			if err = cmp.Or(err, failed); err != nil {
				break
			}
			if within(m, q.Get("server")) {
				ids = append(ids, m.ID)
			}
		}
	}
	if err == nil {
		err = s.Delete(r, ids)
	}
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}
