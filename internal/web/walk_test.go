package web_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/oauth"
	"github.com/postroom/postroom/internal/web"
	"github.com/postroom/postroom/store"
)

// TestEveryLinkAndFormWorks sets a password with a one-time link, signs in, follows
// every link and submits every form of every page. No response may have a status of
// 400 or more, no form may be refused by a notice, every route must be used, and every form
// that deletes something is behind a first click.
func TestEveryLinkAndFormWorks(t *testing.T) {
	s := openSite(t, options{undo: undoInWalk})
	hooks, inbox := fillForWalk(t, s)
	link, token := web.NewLink(s.clock.Now())
	_, err := s.store.CreateUser(t.Context(), s.account, "walker@example.com", store.RoleAdmin, link)
	must(t, err)
	w := newWalk(t, s)
	w.hooks, w.inbox = hooks, inbox
	w.visit("/setup/"+token, "the test")
	s.connect(t, "Walk client")
	w.addLink(s.authorization(t, "Another client", "https://client.example/callback"), "/")
	w.run()
	for _, route := range routes(t) {
		if !w.used[route] {
			t.Errorf("no link or form of the pages that were visited leads to %s", route)
		}
	}
	if len(w.asking) != 11 {
		t.Errorf("the forms that delete are %v, want 11 kinds", w.asking)
	}
	usage, err := s.api.GetUsage(s.asUser(t))
	must(t, err)
	if usage.Stopped {
		t.Error("sending is still stopped after the walk")
	}
	t.Logf("%d addresses visited, %d forms submitted", len(w.visited), w.submitted)
}

// undoInWalk is longer than the walk takes from an approval to its undo, during
// which each request moves the clock by a second.
const undoInWalk = 10 * time.Minute

// fillForWalk stores something for every kind of page to show.
// It returns an address that receives webhooks, and the ID of an inbox.
func fillForWalk(t *testing.T, s *site) (hooks, inbox string) {
	t.Helper()
	pictures := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "image/png")
		_, _ = w.Write(picture(10, 10)) // the client may be gone
	}))
	t.Cleanup(pictures.Close)
	ctx := s.asUser(t)
	to := newReceiver(t)
	_, err := s.api.CreateWebhook(ctx, &gen.WebhookCreate{URL: gen.WebhookUrl(to.url)})
	must(t, err)
	s.send(t, "gone@nowhere.example", "Your invoice", func(e *gen.EmailSend) { e.HTML = gen.NewOptNilString("<p>See <b>below</b></p>") })
	s.send(t, "slow@careful.example", "Your table")
	s.send(t, "ann@out.example", "See you tomorrow", func(e *gen.EmailSend) {
		e.ScheduledAt = gen.NewOptNilDateTime(s.clock.Now().Add(24 * time.Hour))
	})
	in, held := s.newInbox(t, "walk", gen.SendPolicyOpen), s.newInbox(t, "held", gen.SendPolicyApproval)
	s.put(t, in, codeMail)
	s.put(t, in, htmlMail("Your order has shipped", "The Shop", "order.pdf",
		strings.ReplaceAll(newsletter, "https://pixel.example", pictures.URL)))
	s.put(t, in, withFiles())
	invited := s.put(t, in, invitationMail("REQUEST", ":20261206T100000Z", ""))
	_, err = s.api.UpdateMessage(ctx, &gen.Marks{AddLabels: []gen.Label{"later", gen.Label(strings.Repeat("long", 16))}}, gen.UpdateMessageParams{MessageID: invited.ID})
	must(t, err)
	s.put(t, in, "From: Ann <ann@out.example>\r\nTo: OWN\r\nSubject: Long\r\n\r\n"+strings.Repeat("A line of a long text.\r\n", 2000))
	_, err = s.api.SendMessage(ctx, mailTo("ann@out.example", "Hello", "Hello Ann"), gen.SendMessageParams{InboxID: in.ID})
	must(t, err)
	for _, subject := range []string{"First draft", "Second draft", "Third draft"} {
		m := mailTo("ann@out.example", subject, "Hello Ann")
		m.HTML = gen.NewOptNilString("<p>Hello <b>Ann</b></p>")
		m.Attachments = []gen.MessageAttachmentInput{{Filename: "note.txt", Content: []byte("A note")}}
		s.hold(t, held, m)
	}
	_, err = s.api.CreateDomain(ctx, &gen.DomainCreate{Domain: "own.example"}, gen.CreateDomainParams{})
	must(t, err)
	_, err = s.api.CreateTemplate(ctx, &gen.TemplateCreate{Name: "welcome", Subject: "Welcome {{name}}", HTML: gen.NewOptNilString("<p>Hello</p>")}, gen.CreateTemplateParams{})
	must(t, err)
	_, err = s.api.CreateContact(ctx, &gen.ContactCreate{Email: "ann@out.example"}, gen.CreateContactParams{})
	must(t, err)
	for i := range 51 { // two pages of a list
		_, err = s.api.CreateSuppression(ctx, &gen.SuppressionCreate{Email: gen.EmailAddress(fmt.Sprintf("gone%d@out.example", i))}, gen.CreateSuppressionParams{})
		must(t, err)
	}
	_, err = s.api.CreateApiKey(ctx, &gen.ApiKeyCreate{Name: "nightly build"})
	must(t, err)
	s.quarantine(t, in, "odd.example", 3)
	s.record(t, []store.APIRequest{{Caller: "key_gone", Method: "GET", Path: "/v1/usage", Status: 200}}, store.SMTPRefusal{Reply: "550 5.1.1 No such inbox here"})
	s.handOver(t)
	s.deliver(t)
	return to.url, in.ID
}

// mostOfAKind is how many forms of one route are submitted: a reply, for one, can be
// replied to.
const mostOfAKind = 3

// mostVisited bounds the addresses of a walk: no page may have a link that differs
// each time.
const mostVisited = 700

// walk visits a site.
type walk struct {
	t         *testing.T
	v         *visitor
	hooks     string // receives webhooks
	inbox     string // the ID of an inbox
	base      *url.URL
	visited   map[string]bool
	links     []foundAt // to visit
	forms     []foundForm
	known     map[string]bool // forms, by key
	counts    map[string]int  // submitted forms, by the route
	used      map[string]bool // routes
	asking    map[string]bool // routes that delete something
	submitted int
}

// foundAt is an address, and the page that has a link to it.
type foundAt struct{ address, page string }

// foundForm is a form that is still to be submitted.
type foundForm struct{ page, key, route string }

func newWalk(t *testing.T, s *site) *walk {
	t.Helper()
	base, err := url.Parse(s.url)
	must(t, err)
	return &walk{
		t: t, v: s.visit(t), base: base,
		visited: map[string]bool{}, known: map[string]bool{}, counts: map[string]int{}, used: map[string]bool{}, asking: map[string]bool{},
	}
}

// run visits and submits until nothing is left.
func (w *walk) run() {
	for len(w.links) > 0 || len(w.forms) > 0 {
		for len(w.links) > 0 {
			l := w.links[0]
			w.links = w.links[1:]
			w.visit(l.address, l.page)
		}
		if len(w.forms) > 0 {
			w.submitNext()
		}
	}
}

// last says how late a form comes: what others need goes last, and the sign-out
// after everything that needs a session. Sending resumes before anything else, so
// that it is not stopped for the rest of the walk.
func last(route string) int {
	if strings.HasSuffix(route, "/resume") {
		return -20
	}
	for class, suffixes := range [][]string{
		{"/sign-in"}, {"/sign-out"}, {"/inboxes/{id}/delete"}, {"/delete", "/revoke", "/cancel", "/remove"}, {"/approve", "/reject", "/active"},
	} {
		if slices.ContainsFunc(suffixes, func(s string) bool { return strings.HasSuffix(route, s) }) {
			return -class
		}
	}
	return -10
}

// submitNext submits the form that comes next: of forms of one kind, one that goes
// to a route that was used less.
func (w *walk) submitNext() {
	slices.SortStableFunc(w.forms, func(a, b foundForm) int {
		return cmp.Or(cmp.Compare(last(a.route), last(b.route)), cmp.Compare(w.counts[a.route], w.counts[b.route]))
	})
	f := w.forms[0]
	w.forms = w.forms[1:]
	if w.counts[f.route] == mostOfAKind {
		return
	}
	page, _ := w.fetch(http.MethodGet, f.page, nil)
	if page.status == http.StatusNotFound {
		return // an earlier form deleted what the page shows
	}
	for _, form := range formsOf(w.parse(page.body)) {
		if key, _ := w.keyOf(form, f.page); key == f.key {
			w.submit(form, f)
			return
		}
	}
}

// submit fills a form in, sends it, and visits the page that follows.
func (w *walk) submit(form *html.Node, f foundForm) {
	w.t.Helper()
	w.submitted++
	w.counts[f.route]++
	values := w.fill(form, f.page)
	to, method := w.target(form, f.page)
	if method == http.MethodGet {
		w.links = append(w.links, foundAt{to + "?" + values.Encode(), "a form of " + f.page})
		return
	}
	for n := range form.Descendants() { // buttons that send the form elsewhere
		if other := attr(n, "formaction"); other != "" {
			if a, _ := w.fetch(http.MethodPost, other, values); a.status >= http.StatusBadRequest {
				w.t.Errorf("POST %s of %s: status %d\n%s", other, f.page, a.status, a.body)
			}
		}
	}
	a, at := w.fetch(http.MethodPost, to, values)
	if a.status >= http.StatusBadRequest {
		w.t.Errorf("POST %s of %s: status %d\n%s", to, f.page, a.status, a.body)
		return
	}
	if strings.Contains(a.body, `class="notice bad" role="status"`) && !strings.HasSuffix(to, "/verify") { // no DNS here
		w.t.Errorf("POST %s of %s: refused\n%s", to, f.page, a.body)
	}
	w.collect(a, at)
}

// visit gets an address once.
func (w *walk) visit(address, page string) {
	w.t.Helper()
	if w.visited[address] {
		return
	}
	w.visited[address] = true
	if len(w.visited) > mostVisited {
		w.t.Fatalf("more than %d addresses; the last ones are %q, linked from %q", mostVisited, address, page)
	}
	a, at := w.fetch(http.MethodGet, address, nil)
	if a.status >= http.StatusBadRequest {
		w.t.Errorf("GET %s, linked from %s: status %d\n%s", address, page, a.status, a.body)
		return
	}
	w.visited[at] = true
	w.collect(a, at)
}

// fetch makes a request and follows redirects within the site. It returns the last
// response, and its address.
func (w *walk) fetch(method, address string, form url.Values) (got response, at string) {
	w.t.Helper()
	w.v.site.clock.Add(time.Second) // rate limits are per minute
	for range 5 {
		u, err := url.Parse(address)
		must(w.t, err)
		r, err := http.NewRequestWithContext(w.t.Context(), method, address, http.NoBody)
		must(w.t, err)
		w.used[web.PatternOf(w.v.site.dashboard, r)] = true
		got = w.request(method, u, form)
		to := got.header.Get("Location")
		if got.status < 300 || got.status >= 400 || to == "" {
			return got, address
		}
		next, err := u.Parse(to)
		must(w.t, err)
		if next.IsAbs() && next.Host != w.base.Host {
			return got, address
		}
		next.Fragment = ""
		method, form, address = http.MethodGet, nil, next.RequestURI()
	}
	w.t.Errorf("%s redirects without end", address)
	return got, address
}

// request makes one request as a browser does. Of a stream of events it reads the
// status only.
func (w *walk) request(method string, u *url.URL, form url.Values) response {
	w.t.Helper()
	if u.Path != "/live" {
		return w.v.do(method, u.RequestURI(), form.Encode(), []string{"Accept", "text/html,*/*"})
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, w.base.Scheme+"://"+w.base.Host+u.RequestURI(), http.NoBody)
	must(w.t, err)
	res, err := w.v.client.Do(r)
	must(w.t, err)
	cancel()
	_, _ = io.Copy(io.Discard, res.Body) // ends with the canceled request
	_ = res.Body.Close()
	return response{status: res.StatusCode, header: res.Header}
}

// collect notes the links and forms of a page.
func (w *walk) collect(a response, at string) {
	w.t.Helper()
	if !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") {
		return
	}
	doc := w.parse(a.body)
	for n := range doc.Descendants() {
		for _, name := range []string{"href", "src", "data-live"} {
			if to := attr(n, name); to != "" {
				w.addLink(to, at)
			}
		}
	}
	for _, form := range formsOf(doc) {
		key, route := w.keyOf(form, at)
		if slices.Contains([]string{"delete", "revoke", "cancel", "rotate"}, route[strings.LastIndexByte(route, '/')+1:]) {
			w.asking[route] = true
			if !isFolded(form) {
				w.t.Errorf("%s: %s does not ask for confirmation", at, route)
			}
		}
		if !w.known[key] {
			w.known[key] = true
			w.forms = append(w.forms, foundForm{at, key, route})
		}
	}
}

func (w *walk) addLink(to, page string) {
	from, err := w.base.Parse(page)
	must(w.t, err)
	u, err := from.Parse(to)
	if err != nil || u.Host != w.base.Host || u.Path == "/docs" {
		return // a link in a message, or the reference, which is not part of the dashboard
	}
	w.links = append(w.links, foundAt{u.RequestURI(), page})
}

// keyOf is what makes a form another one: where it goes, and what is hidden in it
// unless that differs each time. It also returns the route of the form.
func (w *walk) keyOf(form *html.Node, page string) (key, route string) {
	to, method := w.target(form, page)
	key = method + " " + to
	for n := range form.Descendants() {
		name := attr(n, "name")
		if n.Data == "input" && attr(n, "type") == "hidden" && name != "version" && name != "once" && !strings.HasPrefix(name, "seen_") {
			key += " " + name + "=" + attr(n, "value")
		}
	}
	r, err := http.NewRequestWithContext(w.t.Context(), method, to, http.NoBody)
	must(w.t, err)
	return key, web.PatternOf(w.v.site.dashboard, r)
}

// target is where a form goes.
func (w *walk) target(form *html.Node, page string) (to, method string) {
	from, err := w.base.Parse(page)
	must(w.t, err)
	u, err := from.Parse(attr(form, "action"))
	must(w.t, err)
	if method = strings.ToUpper(attr(form, "method")); method != http.MethodPost {
		return u.Path, http.MethodGet
	}
	return u.RequestURI(), method
}

// filling is what the test writes into empty fields.
var filling = map[string]string{
	"password": "correct horse battery staple", "again": "correct horse battery staple", "to": "ann@out.example", "subject": "A subject",
	"text": "A text", "email": "new@out.example", "domain": "new.example", "name": "walker@example.com",
	"current":      "correct horse battery staple",
	"display_name": "The walk", "pattern": "*@walk.example", "reason": "Not now", "q": "order",
	"html": "<p>Hello {{name}}</p>", "data": `{"name": "Ann"}`,
}

// leftEmpty are fields that may be empty.
var leftEmpty = []string{
	"sends_per_minute", "sends_per_hour", "sends_per_day", "recipients_per_day", "new_recipients_per_day", "per_recipient_per_day",
	"similar_per_hour", "aliases", "tag", "cc", "bcc", "from", "until", "first_name", "last_name", "tags", "metadata", "allowed_ips", "expires_at", "other_inboxes", "inbox", "label",
}

// fill returns what is sent with a form.
func (w *walk) fill(form *html.Node, page string) url.Values {
	w.t.Helper()
	values := url.Values{}
	add := func(name, value string) {
		if value == "" {
			value = filling[name]
		}
		switch {
		case name == "url":
			value = w.hooks
		case name == "inbox_ids":
			value = cmp.Or(value, w.inbox)
		case name == "name" && slices.Contains([]string{"/inboxes", "/settings/people"}, attr(form, "action")):
			value = fmt.Sprint("made-by-walk-", w.submitted)
		}
		if value == "" && !slices.Contains(leftEmpty, name) {
			w.t.Errorf("%s: the test has nothing to write into the field %q", page, name)
		}
		values.Add(name, value)
	}
	for n := range form.Descendants() {
		name := attr(n, "name")
		if name == "" || attr(n, "type") == "file" {
			continue
		}
		switch {
		case n.Data == "select":
			values.Set(name, chosen(n))
		case n.Data == "textarea":
			add(name, strings.TrimPrefix(textOf(n), "\n"))
		case n.Data == "input" && slices.Contains([]string{"checkbox", "radio"}, attr(n, "type")):
			if has(n, "checked") {
				values.Add(name, cmp.Or(attr(n, "value"), "on"))
			}
		case n.Data == "input" && attr(n, "type") == "hidden", n.Data == "button" && !has(n, "formaction"):
			values.Add(name, attr(n, "value"))
		case n.Data == "input":
			add(name, attr(n, "value"))
		}
	}
	if attr(form, "action") == oauth.AuthorizePath {
		values.Set("inboxes", "all") // the forms before may have deleted some
	}
	if box := elsewhere(form); box != nil {
		values.Add(attr(box, "name"), attr(box, "value"))
	}
	return values
}

// elsewhere returns the first checkbox outside a form that belongs to it: the form
// acts on what is selected in a list. It returns nil if there is none.
func elsewhere(form *html.Node) *html.Node {
	id, root := attr(form, "id"), form
	if id == "" {
		return nil
	}
	for root.Parent != nil {
		root = root.Parent
	}
	for n := range root.Descendants() {
		if n.Data == "input" && attr(n, "type") == "checkbox" && attr(n, "form") == id {
			return n
		}
	}
	return nil
}

func (w *walk) parse(page string) *html.Node {
	w.t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	must(w.t, err)
	return doc
}

func formsOf(doc *html.Node) []*html.Node {
	var forms []*html.Node
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode && n.Data == "form" && attr(n, "method") != "dialog" {
			forms = append(forms, n)
		}
	}
	return forms
}

// chosen is the value of a select.
func chosen(sel *html.Node) string {
	var first *html.Node
	for n := range sel.Descendants() {
		if n.Data != "option" {
			continue
		}
		if has(n, "selected") {
			first = n
			break
		}
		if first == nil {
			first = n
		}
	}
	switch {
	case first == nil:
		return ""
	case has(first, "value"):
		return attr(first, "value")
	}
	return textOf(first)
}

func textOf(n *html.Node) string {
	var b strings.Builder
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			b.WriteString(c.Data)
		}
	}
	return b.String()
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func has(n *html.Node, name string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
}

// routes reads the routes from the source of the dashboard.
func routes(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	must(t, err)
	route := regexp.MustCompile(`d\.(get|post|open|mux\.Handle)(?:For)?\((?:store\.Role\w+, )?"([A-Z]+ )?(/[^"]*)"`)
	var all []string
	for _, file := range files {
		source, err := os.ReadFile(file)
		must(t, err)
		for _, m := range route.FindAllStringSubmatch(string(source), -1) {
			all = append(all, cmp.Or(strings.TrimSpace(m[2]), strings.ToUpper(m[1]))+" "+m[3])
		}
	}
	if len(all) < 50 {
		t.Fatalf("only %d routes found in the source: %v", len(all), all)
	}
	return all
}

// isFolded reports whether a form is in a closed <details>, which a click opens.
func isFolded(form *html.Node) bool {
	for n := range form.Ancestors() {
		if n.Data == "details" && !has(n, "open") {
			return true
		}
	}
	return false
}
