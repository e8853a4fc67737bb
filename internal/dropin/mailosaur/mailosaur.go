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
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/dropin/vendorapi"
	"github.com/postroom/postroom/internal/httpapi"
)

// Vendor is the API.
var Vendor = vendorapi.Vendor{Name: "mailosaur", New: newHandler, Refuse: refuse}

type server struct{ vendorapi.API }

func newHandler(api vendorapi.API) http.Handler {
	s, m := server{api}, api.NewMux(refuse)
	m.Handle("GET /api/servers", s.servers)
	m.Handle("GET /api/servers/{server}", s.server)
	m.Handle("GET /api/messages", s.list)
	m.Handle("POST /api/messages", s.create)
	m.Handle("DELETE /api/messages", s.deleteAll)
	m.Handle("POST /api/messages/search", s.search)
	m.Handle("GET /api/messages/{id}", s.message)
	m.Handle("DELETE /api/messages/{id}", s.delete)
	m.Handle("POST /api/messages/{id}/reply", s.reply)
	m.Handle("POST /api/messages/{id}/forward", s.forward)
	m.Handle("GET /api/files/email/{id}", func(w http.ResponseWriter, r *http.Request) error {
		return s.ServeRaw(w, r, r.PathValue("id"))
	})
	m.Handle("GET /api/files/attachments/{id}", func(w http.ResponseWriter, r *http.Request) error {
		message, attachment, _ := strings.Cut(r.PathValue("id"), ".")
		return s.ServeAttachment(w, r, message, attachment)
	})
	return m
}

type (
	fault struct {
		Field  string        `json:"field"`
		Detail []faultDetail `json:"detail"`
	}
	faultDetail struct {
		Description string `json:"description"`
	}
)

// refuse writes an error as Mailosaur does. Its SDKs show the text of an error only for
// the status 400.
func refuse(w http.ResponseWriter, e *httpapi.Error) {
	status := e.Status
	if status == http.StatusUnprocessableEntity {
		status = http.StatusBadRequest
	}
	body := struct {
		Errors []fault `json:"errors"`
	}{[]fault{{e.Param, []faultDetail{{e.Message}}}}}
	_ = vendorapi.JSON(w, status, body) // strings always encode
}

// all is the server that has the mail of all inboxes of the key.
const all = "postroom"

type serverInfo struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	Users    []string `json:"users"`
	Messages int      `json:"messages"`
}

func (s server) servers(w http.ResponseWriter, r *http.Request) error {
	if _, err := vendorapi.Query(r); err != nil {
		return err
	}
	info, err := s.count(r, all)
	if err != nil {
		return err
	}
	return vendorapi.JSON(w, http.StatusOK, map[string][]serverInfo{"items": {info}})
}

func (s server) server(w http.ResponseWriter, r *http.Request) error {
	info, err := s.count(r, r.PathValue("server"))
	if err != nil {
		return err
	}
	return vendorapi.JSON(w, http.StatusOK, info)
}

func (s server) count(r *http.Request, id string) (serverInfo, error) {
	info := serverInfo{ID: id, Name: id, Users: []string{}}
	for m, err := range s.Received(r, nil) {
		if err != nil {
			return info, err
		}
		if within(m, id) {
			info.Messages++
		}
	}
	return info, nil
}

// within reports whether a message is on a server.
func within(m *gen.Message, server string) bool {
	if server == all {
		return true
	}
	server = strings.ToLower(server)
	on := vendorapi.Recipients(m)
	if m.Direction == "out" {
		on = []string{m.From.Value.Email}
	}
	return slices.ContainsFunc(on, func(address string) bool {
		_, domain, _ := strings.Cut(strings.ToLower(address), "@")
		return domain == server || strings.HasPrefix(domain, server+".")
	})
}

// page is the part of a list that a client asks for.
type page struct {
	server       string
	first, items int
	filters      url.Values
}

func readPage(r *http.Request) (p page, err error) {
	q, err := vendorapi.Query(r, "server", "page", "itemsPerPage", "receivedAfter", "dir")
	if err != nil {
		return p, err
	}
	p = page{server: q.Get("server"), filters: url.Values{}}
	if p.server == "" {
		return p, httpapi.Invalid("server", "is required: the id of a server")
	}
	number, err := strconv.Atoi(cmp.Or(q.Get("page"), "0"))
	if err != nil || number < 0 || number > 1000 {
		return p, httpapi.Invalid("page", "must be a number from 0 to 1000")
	}
	if p.items, err = strconv.Atoi(cmp.Or(q.Get("itemsPerPage"), "50")); err != nil || p.items < 1 || p.items > 1000 {
		return p, httpapi.Invalid("itemsPerPage", "must be a number from 1 to 1000")
	}
	p.first = number * p.items
	if after := q.Get("receivedAfter"); after != "" {
		if _, err := time.Parse(time.RFC3339, after); err != nil {
			return p, httpapi.Invalid("receivedAfter", "must be a time as in 2026-01-31T08:00:00Z")
		}
		p.filters.Set("since", after)
	}
	switch dir := q.Get("dir"); {
	case strings.EqualFold(dir, "sent"):
		p.filters.Set("direction", "out")
	case dir != "" && !strings.EqualFold(dir, "received"):
		return p, httpapi.Invalid("dir", "must be Sent or Received")
	}
	return p, nil
}

type summary struct {
	ID          string    `json:"id"`
	Type        string    `json:"type"`
	Server      string    `json:"server"`
	From        []address `json:"from"`
	To          []address `json:"to"`
	Cc          []address `json:"cc"`
	Bcc         []address `json:"bcc"`
	Received    time.Time `json:"received"`
	Subject     string    `json:"subject"`
	Summary     string    `json:"summary"`
	Attachments int       `json:"attachments"`
}

type address struct {
	Name  string `json:"name"`
	Email string `json:"email"`
}

func addresses(list []gen.MailAddress) []address {
	out := make([]address, len(list))
	for i, a := range list {
		out[i] = address{a.Name.Or(""), a.Email}
	}
	return out
}

func sender(m *gen.Message) []address {
	if from, ok := m.From.Get(); ok {
		return addresses([]gen.MailAddress{from})
	}
	return []address{}
}

// find writes the messages of a page that match.
func (s server) find(w http.ResponseWriter, r *http.Request, p page, match func(*gen.Message) bool) error {
	items, found := []summary{}, 0
	for m, err := range s.Received(r, p.filters) {
		if err != nil {
			return err
		}
		if !within(m, p.server) || !match(m) {
			continue
		}
		if found++; found <= p.first {
			continue
		}
		items = append(items, summary{
			ID: m.ID, Type: "Email", Server: p.server, From: sender(m), To: addresses(m.To), Cc: addresses(m.Cc), Bcc: addresses(m.Bcc),
			Received: m.CreatedAt, Subject: m.Subject, Summary: m.Snippet.Or(""), Attachments: len(m.Attachments),
		})
		if len(items) == p.items {
			break
		}
	}
	return vendorapi.JSON(w, http.StatusOK, map[string][]summary{"items": items})
}

func (s server) list(w http.ResponseWriter, r *http.Request) error {
	p, err := readPage(r)
	if err != nil {
		return err
	}
	return s.find(w, r, p, func(*gen.Message) bool { return true })
}

// delay is how often the SDK searches again: after these milliseconds, the last one from
// then on.
const delay = "200,300,500,1000"

func (s server) search(w http.ResponseWriter, r *http.Request) error {
	p, err := readPage(r)
	if err != nil {
		return err
	}
	var c struct {
		SentFrom string `json:"sentFrom"`
		SentTo   string `json:"sentTo"`
		Subject  string `json:"subject"`
		Body     string `json:"body"`
		Match    string `json:"match"`
	}
	if err := vendorapi.Decode(r, &c); err != nil {
		return err
	}
	var tests []func(*gen.Message) bool
	if c.SentFrom != "" {
		tests = append(tests, func(m *gen.Message) bool { return strings.EqualFold(m.From.Value.Email, c.SentFrom) })
	}
	if c.SentTo != "" {
		tests = append(tests, func(m *gen.Message) bool {
			return slices.ContainsFunc(vendorapi.Recipients(m), func(to string) bool { return strings.EqualFold(to, c.SentTo) })
		})
	}
	if c.Subject != "" {
		tests = append(tests, func(m *gen.Message) bool { return vendorapi.Contains(m.Subject, c.Subject) })
	}
	if c.Body != "" {
		p.filters.Set("include", "text")
		tests = append(tests, func(m *gen.Message) bool { return vendorapi.Contains(m.Text.Or(""), c.Body) })
	}
	if len(tests) == 0 {
		return httpapi.Invalid("criteria", "needs sentFrom, sentTo, subject or body")
	}
	anyOne := strings.EqualFold(c.Match, "any")
	if !anyOne && c.Match != "" && !strings.EqualFold(c.Match, "all") {
		return httpapi.Invalid("match", "must be ALL or ANY")
	}
	if !p.filters.Has("since") {
		p.filters.Set("since", time.Now().Add(-time.Hour).UTC().Format(time.RFC3339))
	}
	w.Header().Set("X-Ms-Delay", delay)
	return s.find(w, r, p, func(m *gen.Message) bool {
		// Of any, one test passes; of all, none fails.
		return slices.ContainsFunc(tests, func(test func(*gen.Message) bool) bool { return test(m) == anyOne }) == anyOne
	})
}

func (s server) message(w http.ResponseWriter, r *http.Request) error {
	return s.show(w, r, r.PathValue("id"))
}

func (s server) delete(w http.ResponseWriter, r *http.Request) error {
	if _, err := s.Do(r, http.MethodDelete, "/v1/messages/"+url.PathEscape(r.PathValue("id")), nil, nil); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s server) deleteAll(w http.ResponseWriter, r *http.Request) error {
	q, err := vendorapi.Query(r, "server")
	if err != nil {
		return err
	}
	if q.Get("server") == "" {
		return httpapi.Invalid("server", "is required: the id of a server")
	}
	var ids []string
	for m, err := range s.Received(r, nil) {
		if err != nil {
			return err
		}
		if within(m, q.Get("server")) {
			ids = append(ids, m.ID)
		}
	}
	if err := s.Delete(r, ids); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
