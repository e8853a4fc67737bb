package web

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/store"
)

// operates reports whether the user belongs to the first account, whose users see
// what is of the whole installation.
func (p *page) operates() (bool, error) {
	first, err := p.d.store.FirstAccount(p.ctx())
	return first.Seq == p.user.AccountID, err
}

// logView is the page of a log: of API requests, events or refused mail.
type logView struct {
	Tabs []messageTab
	Tab  string

	Requests []store.APIRequest
	Names    map[string]string // of callers, by ID
	Caller   string            // the filter, an ID
	Failed   bool

	Events []eventRow
	Kind   string
	Kinds  []string

	Refusals []store.SMTPRefusal
	paging
}

// eventRow is an event, with what it is about and the page of that, if there is one.
type eventRow struct {
	Type, Tone  string
	About, Path string
	Words       string // the response of the remote server
	store.Event
}

// newLog returns the page of the log with the name tab.
func (p *page) newLog(tab string) (logView, error) {
	v := logView{Tab: tab, Tabs: []messageTab{{"", "API requests"}, {"events", "Events"}}}
	all, err := p.operates()
	if all {
		v.Tabs = append(v.Tabs, messageTab{"smtp", "Refused mail"})
	}
	return v, err
}

// logPage is the page of a list that the request asks for.
func (p *page) logPage() store.Page {
	return store.Page{Limit: listSize, Cursor: p.r.URL.Query().Get("cursor")}
}

func (p *page) pagingOf(cursor string) paging {
	return p.paging(gen.NilString{Value: cursor, Null: cursor == ""})
}

func (d *Dashboard) showRequests(p *page) error {
	v, err := p.newLog("")
	if err != nil {
		return err
	}
	q := p.r.URL.Query()
	v.Caller, v.Failed = q.Get("caller"), q.Get("failed") != ""
	l, err := d.store.APIRequests(p.ctx(), p.user.AccountID, store.APIRequestFilter{Caller: v.Caller, Failed: v.Failed}, p.logPage())
	if err != nil {
		return err
	}
	if v.Names, err = d.callers(p); err != nil {
		return err
	}
	v.Requests = l.Rows
	v.paging = p.pagingOf(l.Cursor)
	return p.show("logs", v)
}

// namedCallers is how many keys and users are looked up for their names.
const namedCallers = 200

// callers returns the names of keys and users, by their IDs.
func (d *Dashboard) callers(p *page) (map[string]string, error) {
	keys, err := d.store.ListKeys(p.ctx(), p.user.AccountID, nil, store.Page{Limit: namedCallers})
	if err != nil {
		return nil, err
	}
	users, err := d.store.ListUsers(p.ctx(), p.user.AccountID, store.Page{Limit: namedCallers})
	if err != nil {
		return nil, err
	}
	names := map[string]string{}
	for _, k := range keys.Rows {
		names[k.ID] = k.Name
	}
	for _, u := range users.Rows {
		names[u.ID] = u.Name
	}
	return names, nil
}

// eventKinds are the first words of the types of events.
var eventKinds = []string{"message", "email", "draft", "domain"}

func (d *Dashboard) showEvents(p *page) error {
	v, err := p.newLog("events")
	if err != nil {
		return err
	}
	v.Kinds = eventKinds
	if kind := p.asked("kind").Value; slices.Contains(eventKinds, kind) {
		v.Kind = kind
	}
	l, err := d.store.LatestEvents(p.ctx(), p.user.AccountID, v.Kind, p.logPage())
	if err != nil {
		return err
	}
	for _, e := range l.Rows {
		v.Events = append(v.Events, newEventRow(e))
	}
	v.paging = p.pagingOf(l.Cursor)
	return p.show("logs", v)
}

// newEventRow reads what the data of an event says. Data of older versions, or of a
// deleted subject, may lack any of it.
func newEventRow(e store.Event) eventRow {
	var data struct {
		Recipient, Response, From, Domain, Email string
		DraftID                                  string `json:"draft_id"`
	}
	_ = json.Unmarshal([]byte(e.Data), &data) // what cannot be read is not shown
	kind, step, _ := strings.Cut(string(e.Type), ".")
	step, _, _ = strings.Cut(step, ".")
	row := eventRow{Type: string(e.Type), Tone: tone(step), Words: data.Response, Event: e}
	switch row.About = data.Recipient; {
	case e.Type == store.EventMessageBlocked:
		row.About, row.Tone = data.From, "warn"
		if e.InboxID != nil {
			row.Path = "/inboxes/" + *e.InboxID
		}
	case e.Type == store.EventDomainDegraded:
		row.About, row.Path, row.Tone = data.Domain, "/domains", "warn"
	case data.Email != "":
		row.About, row.Path = data.Email, "/suppressions"
	case kind == "draft":
		row.About, row.Path = data.DraftID, "/approvals/"+url.PathEscape(data.DraftID)
	case e.MessageID != nil:
		row.Path = map[bool]string{true: "/emails/", false: "/messages/"}[kind == "email"] + *e.MessageID
	}
	if row.About == "" && e.MessageID != nil {
		row.About = *e.MessageID
	}
	return row
}

func (d *Dashboard) showRefusals(p *page) error {
	v, err := p.newLog("smtp")
	if err != nil {
		return err
	}
	if len(v.Tabs) < 3 {
		return errNoPage
	}
	l, err := d.store.SMTPRefusals(p.ctx(), p.logPage())
	if err != nil {
		return err
	}
	v.Refusals, v.paging = l.Rows, p.pagingOf(l.Cursor)
	return p.show("logs", v)
}
