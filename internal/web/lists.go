package web

import (
	"errors"
	"strings"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/store"
)

// listsPage is the page of the entries of lists, with the form for a new one.
type listsPage struct {
	Entries   []gen.ListEntry
	Addresses map[string]string // of the inboxes, by ID
	Inboxes   []gen.Inbox       // to choose from
	paging
	Form    entryForm
	Problem problem
}

// entryForm holds the submitted values.
type entryForm struct{ Direction, Action, Pattern, Inbox string }

// entryWords says what an entry does, by its direction and action.
var entryWords = map[string]string{
	"outbound block": "Never write to", "outbound approve": "Ask a person before writing to", "outbound allow": "Write only to",
	"inbound block": "Refuse mail from", "inbound approve": "Quarantine mail from", "inbound allow": "Receive only from",
}

// entryChoices are the keys of entryWords, in the order of the form.
var entryChoices = []string{"outbound block", "outbound approve", "outbound allow", "inbound block", "inbound approve", "inbound allow"}

func (d *Dashboard) showLists(p *page) (listsPage, error) {
	l, err := d.api.ListListEntries(p.ctx(), gen.ListListEntriesParams{Limit: limit(), Cursor: p.cursor()})
	if err != nil {
		return listsPage{}, err
	}
	v := listsPage{
		Entries: l.Data, Addresses: map[string]string{}, paging: p.paging(l.Cursor), Form: entryForm{Direction: "outbound", Action: "block"},
	}
	if v.Inboxes, err = d.inboxChoices(p, v.Addresses); err != nil {
		return listsPage{}, err
	}
	return v, p.addInboxes(v.Addresses, textsOf(l.Data, func(e gen.ListEntry) string { return e.InboxID.Or("") })...)
}

// addInboxes adds the addresses of inboxes to a map by ID. That of a deleted one is empty.
func (p *page) addInboxes(to map[string]string, ids ...string) error {
	for _, id := range ids {
		if id == "" || to[id] != "" {
			continue
		}
		in, err := p.d.store.Inbox(p.ctx(), p.user.AccountID, id)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		to[id] = in.Address
	}
	return nil
}

func (d *Dashboard) addEntry(p *page) error {
	f := entryForm{Pattern: p.field("pattern"), Inbox: p.field("inbox")}
	f.Direction, f.Action, _ = strings.Cut(p.form.Get("rule"), " ")
	made, err := d.createEntry(p, f)
	if err != nil {
		return showFault(p, "lists", err, d.showLists, func(v *listsPage, pr problem) { v.Form, v.Problem = f, pr })
	}
	return p.done("/lists", entryWords[made.Direction+" "+made.Action]+" "+made.Pattern+": added.")
}

func (d *Dashboard) createEntry(p *page, f entryForm) (*gen.ListEntry, error) {
	req := &gen.ListEntryCreate{Direction: gen.ListDirection(f.Direction), Action: gen.ListAction(f.Action), Pattern: f.Pattern}
	if f.Inbox != "" {
		id, err := d.inboxNamed(p, "inbox_id", f.Inbox)
		if err != nil {
			return nil, err
		}
		req.InboxID = gen.NewOptNilString(id)
	}
	return d.api.CreateListEntry(p.ctx(), req, gen.CreateListEntryParams{})
}

// inboxNamed returns the ID of the account's inbox with an address, or a problem of the
// field. It returns names without an @ unchanged, because they are IDs, which the API
// checks.
func (d *Dashboard) inboxNamed(p *page, field, name string) (string, error) {
	if !strings.Contains(name, "@") {
		return name, nil
	}
	in, err := d.store.InboxAt(p.ctx(), p.user.AccountID, strings.ToLower(name))
	if errors.Is(err, store.ErrNotFound) || err == nil && in.AccountID != p.user.AccountID {
		return "", noInbox(field, name)
	}
	return in.ID, err
}

func noInbox(field, name string) problem {
	return fieldProblem(field, "No inbox "+name+" in this account.")
}

func (d *Dashboard) deleteEntry(p *page) error {
	_, err := d.api.DeleteListEntry(p.ctx(), gen.DeleteListEntryParams{ListID: p.r.PathValue("id")})
	return p.result(err, "/lists", "/lists", "Entry deleted.")
}

// quarantinePage lists the messages in quarantine.
type quarantinePage struct {
	Messages  []gen.Message
	Addresses map[string]string // of the inboxes, by ID
	paging
	Live string
}

func (d *Dashboard) quarantine(p *page) error {
	l, err := d.api.ListMessages(p.ctx(), gen.ListMessagesParams{
		Limit: gen.NewOptInt(listed), Cursor: p.cursor(), Status: gen.NewOptMessageStatus(gen.MessageStatusQuarantined),
	})
	if err != nil {
		return err
	}
	v := quarantinePage{Messages: l.Data, paging: p.paging(l.Cursor), Addresses: map[string]string{}}
	if err := p.addInboxes(v.Addresses, textsOf(l.Data, func(m gen.Message) string { return m.InboxID })...); err != nil {
		return err
	}
	v.Live = v.live("", gen.EventTypeMessageQuarantined)
	return p.show("quarantine", v)
}

func (d *Dashboard) releaseMessages(p *page) error {
	return p.decide("/quarantine", "first", "released", func(id string) error {
		_, err := d.api.ReleaseMessage(p.ctx(), gen.ReleaseMessageParams{MessageID: id})
		return err
	})
}

func (d *Dashboard) dropMessages(p *page) error {
	return p.decide("/quarantine", "first", "dropped", func(id string) error {
		_, err := d.api.DeleteMessage(p.ctx(), gen.DeleteMessageParams{MessageID: id})
		return err
	})
}

// decide does something with the selected messages of the list at a path. when ends the
// request to select some, and done is the word for what was done.
func (p *page) decide(path, when, done string, do func(id string) error) error {
	ids := p.form["message"]
	if len(ids) == 0 {
		return p.failed(path, "Select the messages "+when+".")
	}
	n := 0
	for _, id := range ids[:min(len(ids), listed)] {
		err := do(id)
		if isMissing(err) {
			continue // decided in the meantime
		}
		if err != nil {
			return p.refused(path, err)
		}
		n++
	}
	return p.done(path, plural(n, "message ", "messages ")+done+".")
}
