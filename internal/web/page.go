package web

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/passhash"
	"github.com/postroom/postroom/store"
)

// page is one request to the dashboard and its response.
type page struct {
	d         *Dashboard
	w         http.ResponseWriter
	r         *http.Request
	requestID string
	user      store.User // the signed-in user; without an id if there is none
	form      url.Values // of a POST request, without the URL's query
	problem   problem    // of the request, which the page shows
}

// ctx returns the context for the page's calls. API calls run as the user.
func (p *page) ctx() context.Context { return p.r.Context() }

// failure is an error page.
type failure struct {
	status        int
	title, detail string
}

func (f *failure) Error() string { return f.title }

var (
	errForeignForm = &failure{http.StatusForbidden, "Request from another site", "The form was not sent from this dashboard. Nothing was changed."}
	errFailed      = &failure{http.StatusInternalServerError, "Something went wrong", "The server had an error. The log has the details under the request ID."}
	errNoPage      = &failure{http.StatusNotFound, "Page not found", "It may have been deleted."}
	errRole        = &failure{http.StatusForbidden, "Not allowed", "Your role does not include this. Ask an admin of the account."}
	errBusy        = &failure{http.StatusServiceUnavailable, "Too many sign-ins right now", "Try again in a moment."}
	errForm        = &failure{http.StatusBadRequest, "Invalid form", "The form is too large or malformed. Nothing was changed."}
)

// view is what the templates receive. Data depends on the page.
type view struct {
	User   string // name of the signed-in user, or empty
	Role   store.Role
	Theme  string // "light", "dark", or empty for that of the system
	Path   string
	Notice notice
	// Pending is the number of drafts that wait for approval.
	Pending int
	// Stopped reports whether a person stopped sending for the account.
	Stopped bool
	Data    any
}

// show renders the named page with data.
func (p *page) show(name string, data any) error {
	of := p.d.pages[name]
	if of == nil {
		return fmt.Errorf("no template %q", name)
	}
	t, err := of()
	if err != nil {
		return fmt.Errorf("read the template %s: %w", name, err)
	}
	v := view{User: p.user.Name, Role: p.user.Role, Theme: p.theme(), Path: p.r.URL.Path, Data: data}
	if p.user.ID != "" {
		v.Pending, v.Stopped, _ = p.d.store.Waiting(p.ctx(), p.user.AccountID) // the page is still shown
	}
	status := cmp.Or(p.problem.status, http.StatusOK)
	if status == http.StatusOK {
		v.Notice = p.takeNotice()
	}
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, "layout", v); err != nil {
		return fmt.Errorf("render page %s: %w", name, err)
	}
	p.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	p.w.WriteHeader(status)
	_, _ = b.WriteTo(p.w) // the client may have disconnected
	return nil
}

// form is what a page shows in its form: the values, and what is wrong with them.
type form struct {
	url.Values
	problem
}

// formOf returns the form of a page with its first values. After a problem it has the
// submitted values instead.
func (p *page) formOf(first url.Values) form {
	if p.problem.status == 0 {
		return form{Values: first}
	}
	return form{p.form, p.problem}
}

// newForm is formOf for a form that creates something. Its field "once" is an
// idempotency key. It stays the same after a problem, because an earlier click may still
// be in progress, unless another request has used it.
func (p *page) newForm(first url.Values) form {
	f := p.formOf(first)
	if f.Values == nil {
		f.Values = url.Values{}
	}
	if f.Get("once") == "" || f.code == gen.ErrorCodeIdempotencyKeyReused {
		f.Set("once", store.NewID("form_", p.d.now()))
	}
	return f
}

// once is the idempotency key of the submitted form.
func (p *page) once() gen.OptString { return optional(p.form.Get("once")) }

// again shows the page of a form once more, with what is wrong with the form. It returns
// other errors, and the one that the object of the form is missing.
func (p *page) again(err error, show func(*page) error) error {
	pr, ok := refusal(err)
	if !ok || pr.status == http.StatusNotFound {
		return err
	}
	p.problem = pr
	return show(p)
}

// list is a page of a list, with the form of its filters or of a new entry.
type list[Row any] struct {
	Rows []Row
	paging
	Form form
}

// done redirects to another page after a successful form, and shows the notice
// there.
func (p *page) done(to, text string) error {
	p.leaveNotice(notice{Text: text})
	return p.goTo(to)
}

// failed redirects to another page, which shows what is wrong.
func (p *page) failed(to, text string) error {
	p.leaveNotice(notice{Text: text, Bad: true})
	return p.goTo(to)
}

// refused handles an API error of a form that has no page of its own: it
// redirects to another page, which shows the error. It returns other errors.
func (p *page) refused(to string, err error) error {
	pr, ok := refusal(err)
	if !ok {
		return err
	}
	return p.failed(to, pr.Message)
}

// result is done if err is nil, and otherwise refused with the page back.
func (p *page) result(err error, back, to, text string) error {
	if err != nil {
		return p.refused(back, err)
	}
	return p.done(to, text)
}

// goTo redirects to another page of the dashboard.
func (p *page) goTo(to string) error {
	http.Redirect(p.w, p.r, to, http.StatusSeeOther)
	return nil
}

// fail writes an error page.
func (p *page) fail(err error) {
	f := p.failureOf(err)
	p.problem = problem{status: f.status}
	data := struct {
		Status                   int
		Title, Detail, RequestID string
	}{f.status, f.title, f.detail, p.requestID}
	if err := p.show("error", data); err != nil {
		p.d.log.ErrorContext(p.ctx(), "show error page", "error", err, "request_id", p.requestID)
		http.Error(p.w, f.title, f.status)
	}
}

func (p *page) failureOf(err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	pr, refused := refusal(err)
	switch {
	case errors.Is(err, store.ErrNotFound), refused && pr.status == http.StatusNotFound:
		return errNoPage
	case refused:
		return &failure{pr.status, "Request refused", pr.Message}
	case errors.Is(err, passhash.ErrBusy):
		return errBusy
	case errors.Is(err, store.ErrCursor):
		return &failure{http.StatusBadRequest, "Request refused", "The link is not of a page of this list."}
	}
	if p.ctx().Err() == nil {
		p.d.log.ErrorContext(p.ctx(), "page failed", "path", p.r.Pattern, "error", err, "request_id", p.requestID)
	}
	if errors.Is(err, store.ErrUnavailable) {
		return &failure{http.StatusServiceUnavailable, "Database unavailable", "Try again in a moment."}
	}
	return errFailed
}

// withForm returns f for a page whose form is parsed, if it has at most so many bytes.
func withForm(most int64, f func(*page) error) func(*page) error {
	return func(p *page) error {
		if p.r.Method == http.MethodPost {
			p.r.Body = http.MaxBytesReader(p.w, p.r.Body, most)
			if err := p.r.ParseMultipartForm(most); err != nil && !errors.Is(err, http.ErrNotMultipart) {
				return errForm
			}
			p.form = p.r.PostForm
		}
		return f(p)
	}
}

// id returns the ID in the path of the page.
func (p *page) id() string { return p.r.PathValue("id") }

// field returns the value of a field of the form without the space around it.
func (p *page) field(name string) string { return strings.TrimSpace(p.form.Get(name)) }

// problem is an error response of the API, or what is wrong with a field of a form. The
// zero value means no error.
type problem struct {
	Message string
	status  int
	code    string
	fields  map[string]string
}

func (p problem) Error() string { return p.Message }

// refusal returns the problem in err, if the request is at fault.
func refusal(err error) (problem, bool) {
	pr, ok := problemOf(err)
	return pr, ok && pr.status < http.StatusInternalServerError
}

// isMissing reports whether the API did not find what it was asked for.
func isMissing(err error) bool {
	pr, ok := problemOf(err)
	return ok && pr.status == http.StatusNotFound
}

// problemOf returns the problem in err, if the API or the form has one.
func problemOf(err error) (problem, bool) {
	if p, ok := errors.AsType[problem](err); ok {
		return p, true
	}
	refused, ok := errors.AsType[*gen.ErrorStatusCodeWithHeaders](err)
	if !ok {
		return problem{}, false
	}
	e := refused.Response.Error
	p := problem{Message: plainFault(e.Message), status: refused.StatusCode, code: e.Code, fields: map[string]string{}}
	if e.Param.Value != "" {
		p.fields[fieldOf(e.Param.Value)] = p.Message
	}
	for _, d := range e.Details {
		p.fields[fieldOf(d.Param)] = plainFault(d.Message)
	}
	return p, true
}

// fieldProblem returns the problem of one field of a form.
func fieldProblem(field, message string) problem {
	return problem{Message: message, status: http.StatusBadRequest, fields: map[string]string{field: message}}
}

// fieldOf returns the form field of an API parameter: "to" for "to[1].email".
func fieldOf(param string) string {
	if i := strings.IndexAny(param, "[."); i > 0 {
		return param[:i]
	}
	return param
}

// Rest returns the error of the request as a whole, or of a field that is not
// among fields. It is empty when fields cover all errors.
func (p problem) Rest(fields ...string) string {
	for name := range p.fields {
		if !slices.Contains(fields, name) {
			return p.Message
		}
	}
	if len(p.fields) > 0 {
		return ""
	}
	return p.Message
}

// Of returns the error of a field, or "".
func (p problem) Of(field string) string { return p.fields[field] }

// items are the names that pages use for the list entries of a request.
var items = map[string]string{
	"to": "Recipient", "cc": "Cc recipient", "bcc": "Bcc recipient", "allowed_ips": "Address",
	"inbox_ids": "Inbox", "scopes": "Scope", "events": "Event",
}

// itemPlace matches the list entry at the start of an API error.
var itemPlace = regexp.MustCompile(`^([a-z_]+)\[(\d{1,3})\](?:\.email)? `)

// plainFault rewrites an API error for users who do not see the request: "Recipient 2" for
// "to[1]".
func plainFault(text string) string {
	m := itemPlace.FindStringSubmatch(text)
	if m == nil || items[m[1]] == "" {
		return text
	}
	n, _ := strconv.Atoi(m[2]) // the pattern has only digits
	return fmt.Sprintf("%s %d %s", items[m[1]], n+1, text[len(m[0]):])
}

// listSize is the number of rows on a list page.
const listSize = 50

// paging holds the links to the other pages of a list.
type paging struct {
	First string // first page; empty on the first page
	Next  string // next page; empty on the last page
}

// limit is the page size for API calls.
func limit() gen.OptInt { return gen.NewOptInt(listSize) }

// cursor is the cursor of the current page.
func (p *page) cursor() gen.OptString { return p.asked("cursor") }

// asked returns a parameter of the page's URL, such as a filter.
func (p *page) asked(name string) gen.OptString {
	return optional(strings.TrimSpace(p.r.URL.Query().Get(name)))
}

// paging returns the links to the other pages, with the same filters.
func (p *page) paging(next gen.NilString) paging {
	var to paging
	q := p.r.URL.Query()
	at := func() string { return (&url.URL{Path: p.r.URL.Path, RawQuery: q.Encode()}).String() }
	if q.Get("cursor") != "" {
		q.Del("cursor")
		to.First = at()
	}
	if !next.Null && next.Value != "" {
		q.Set("cursor", next.Value)
		to.Next = at()
	}
	return to
}

// live returns the URL of the events that change the first page of a list, and an empty
// one on the other pages.
func (g paging) live(inbox string, types ...gen.EventType) string {
	if g.First != "" {
		return ""
	}
	return livePath(inbox, types...)
}

// textsOf returns a text of each item.
func textsOf[T any](items []T, of func(T) string) []string {
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = of(item)
	}
	return texts
}

// optional returns a parameter that is left out when empty.
func optional(s string) gen.OptString {
	if s == "" {
		return gen.OptString{}
	}
	return gen.NewOptString(s)
}

// tone returns the colour class of a status.
func tone(status string) string {
	switch status {
	case "delivered", "opened", "clicked", "verified", "succeeded", "active", "pass":
		return "good"
	case "scheduled", "pending", "delayed", "suppressed", "softfail", "temperror", "suspended", "expired":
		return "warn"
	case "bounced", "complained", "failed", "missing", "off", "fail", "permerror", "rejected":
		return "bad"
	}
	return ""
}
