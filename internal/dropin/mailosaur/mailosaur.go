// Package mailosaur is the API of Mailosaur, with which tests wait for mail.
//
// A server of Mailosaur is a mail domain: the server abcd1234 has the mail to all addresses
// at abcd1234 and at domains that begin with "abcd1234.", among the inboxes of the key. The
// server "postroom" has the mail of all of them.
package mailosaur

import (
	"encoding/json"
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
var Vendor = vendorapi.Vendor{Name: "mailosaur", Operations: operations, Refuse: refuse}

type (
	server struct{ vendorapi.API }
	object = vendorapi.Object
)

func operations(api vendorapi.API) map[string]vendorapi.Handler {
	s := server{api}
	return map[string]vendorapi.Handler{
		"GET /api/messages": func(_ http.ResponseWriter, r *http.Request) (any, error) {
			return s.find(r, url.Values{}, func(*gen.Message) bool { return true })
		},
		"POST /api/messages/search": s.search, "DELETE /api/messages": s.delete,
		"GET /api/messages/{id}": vendorapi.Show(api, s.show, "messages", "{id}"), "DELETE /api/messages/{id}": s.delete,
		"POST /api/messages/{id}/reply": s.sendOn("reply"), "POST /api/messages/{id}/forward": s.sendOn("forward"),
		"GET /api/files/email/{id}": s.File("messages", "{id}", "raw"),
		"GET /api/files/attachments/{id}": func(w http.ResponseWriter, r *http.Request) (any, error) {
			message, attachment, _ := strings.Cut(r.PathValue("id"), ".")
			return s.File("messages", message, "attachments", attachment)(w, r)
		},
		"GET /api/servers":      func(_ http.ResponseWriter, r *http.Request) (any, error) { return s.servers(r) },
		"GET /api/servers/{id}": func(_ http.ResponseWriter, r *http.Request) (any, error) { return s.showServer(r, r.PathValue("id")) },
	}
}

// refuse returns an error as Mailosaur does. Its SDKs show the text of an error only for
// the status 400.
func refuse(e *httpapi.Error) (int, any) {
	status := e.Status
	if status == http.StatusUnprocessableEntity {
		status = http.StatusBadRequest
	}
	return status, object{"errors": []object{{"field": e.Param, "detail": []object{{"description": e.Message}}}}}
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

// find returns the messages that match of the page that the client asks for.
func (s server) find(r *http.Request, filters url.Values, match func(*gen.Message) bool) (any, error) {
	q, err := vendorapi.Query(r, "server", "page", "itemsPerPage", "receivedAfter", "dir")
	if err != nil {
		return nil, err
	}
	page, err := vendorapi.Number(q, "page", 0, 0, 1000)
	if err != nil {
		return nil, err
	}
	size, err := vendorapi.Number(q, "itemsPerPage", 50, 1, 1000)
	if err != nil {
		return nil, err
	}
	if after := q.Get("receivedAfter"); after != "" {
		filters.Set("since", after)
	}
	switch strings.ToLower(q.Get("dir")) {
	case "", "received":
	case "sent":
		filters.Set("direction", "out")
	default:
		return nil, httpapi.Invalid("dir", "must be Sent or Received")
	}
	id := q.Get("server")
	if id == "" {
		return nil, errNoServer
	}
	items, skip := []object{}, page*size
	for m, err := range s.Received(r, filters) {
		if err != nil {
			return nil, vendorapi.Renamed(err, "since", "receivedAfter")
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
	return object{"items": items}, nil
}

// delay is after how many milliseconds the SDK searches again: the last one from then on.
const delay = "200,300,500,1000"

func (s server) search(w http.ResponseWriter, r *http.Request) (any, error) {
	var c struct{ SentFrom, SentTo, Subject, Body, Match string }
	if err := vendorapi.Decode(r, &c); err != nil {
		return nil, err
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
		return nil, httpapi.Invalid("criteria", "needs sentFrom, sentTo, subject or body")
	case !anyOne && c.Match != "" && !strings.EqualFold(c.Match, "all"):
		return nil, httpapi.Invalid("match", "must be ALL or ANY")
	}
	w.Header().Set("X-Ms-Delay", delay)
	return s.find(r, filters, func(m *gen.Message) bool {
		// Of any, one test passes; of all, none fails.
		return slices.ContainsFunc(tests, func(test func(*gen.Message) bool) bool { return test(m) == anyOne }) == anyOne
	})
}

// show returns a message as a whole.
func (s server) show(m *gen.Message) object {
	_, domain, _ := strings.Cut(m.DeliveredTo.Or(m.From.Value.Email), "@")
	id, _, _ := strings.Cut(domain, ".")
	out := summary(m, id)
	links, images := linksOf(m.HTML.Or(""))
	html := content(m, m.HTML.Or(""), links)
	html["images"] = vendorapi.Mapped(images, func(l link) object { return object{"src": l.target, "alt": l.text} })
	out["html"], out["text"] = html, content(m, m.Text.Or(""), textLinks(m.Text.Or("")))
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
		"mailFrom": strings.Trim(vendorapi.Header(m, "Return-Path"), "<>"), "rcptTo": rcptTo,
	}
	return out
}

// reaction is a reply to a message, or the message forwarded.
type reaction struct {
	To          string                 `json:"to"`
	CC          string                 `json:"cc"`
	Text        *string                `json:"text"`
	HTML        *string                `json:"html"`
	Attachments []vendorapi.Attachment `json:"attachments"`
}

// sendOn returns the handler that replies to the message in the path, or forwards it. What
// needs approval has the ID of its draft.
func (s server) sendOn(action string) vendorapi.Handler {
	return vendorapi.WithBody(func(r *http.Request, in *reaction) (any, error) {
		body := object{"text": in.Text, "html": in.HTML, "attachments": vendorapi.Files(in.Attachments)}
		for name, list := range map[string]string{"to": in.To, "cc": in.CC} {
			to, err := vendorapi.Addresses(name, list)
			if err != nil {
				return nil, err
			}
			if to != nil {
				body[name] = to
			}
		}
		resp, err := s.Do(r, http.MethodPost, vendorapi.Path(r, "messages", "{id}", action), nil, body)
		if err != nil {
			return nil, err
		}
		var m gen.Message
		if resp.StatusCode != http.StatusAccepted {
			err = json.NewDecoder(resp.Body).Decode(&m)
			return s.show(&m), err
		}
		var d gen.Draft
		err = json.NewDecoder(resp.Body).Decode(&d)
		m = gen.Message{ID: d.ID, From: gen.NewNilMailAddress(d.From), To: d.To, Cc: d.Cc, Bcc: d.Bcc, Subject: d.Subject, Text: d.Text, HTML: d.HTML}
		m.CreatedAt, m.Attachments = d.CreatedAt, d.Attachments
		return s.show(&m), err
	})
}

// delete deletes a message, or all of a server.
func (s server) delete(w http.ResponseWriter, r *http.Request) (any, error) {
	q, err := vendorapi.Query(r, "server")
	if err != nil {
		return nil, err
	}
	ids := []string{r.PathValue("id")}
	if ids[0] == "" {
		ids, err = s.on(r, q.Get("server"))
		if err != nil {
			return nil, err
		}
	}
	if err := s.Delete(r, ids); err != nil {
		return nil, err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil, nil
}

// on returns the IDs of the received messages on a server.
func (s server) on(r *http.Request, id string) (ids []string, err error) {
	if id == "" {
		return nil, errNoServer
	}
	for m, err := range s.Received(r, nil) {
		if err != nil {
			return nil, err
		}
		if within(m, id) {
			ids = append(ids, m.ID)
		}
	}
	return ids, nil
}

// showServer returns a server. Each domain is one, whether it has mail or not.
func (s server) showServer(r *http.Request, id string) (any, error) {
	ids, err := s.on(r, id)
	return object{"id": id, "name": id, "users": []string{}, "messages": len(ids)}, err
}

// servers returns the server that has all mail.
func (s server) servers(r *http.Request) (any, error) {
	one, err := s.showServer(r, all)
	return object{"items": []any{one}}, err
}
