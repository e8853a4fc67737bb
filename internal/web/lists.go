package web

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/store"
)

// listsPage is the page of the entries of lists, with the form for a new one.
type listsPage struct {
	list[gen.ListEntry]
	Addresses map[string]string // of the inboxes, by ID
	Inboxes   []gen.Inbox       // to choose from
}

// entryWords says what an entry does, by its direction and action.
var entryWords = map[string]string{
	"outbound block": "Never write to", "outbound approve": "Ask a person before writing to", "outbound allow": "Write only to",
	"inbound block": "Refuse mail from", "inbound approve": "Quarantine mail from", "inbound allow": "Receive only from",
}

// entryChoices are the keys of entryWords, in the order of the form.
var entryChoices = []string{"outbound block", "outbound approve", "outbound allow", "inbound block", "inbound approve", "inbound allow"}

func (d *Dashboard) showLists(p *page) error {
	l, err := d.api.ListListEntries(p.ctx(), gen.ListListEntriesParams{Limit: limit(), Cursor: p.cursor()})
	if err != nil {
		return err
	}
	v := listsPage{list[gen.ListEntry]{l.Data, p.paging(l.Cursor), p.formOf(url.Values{"rule": {entryChoices[0]}})}, map[string]string{}, nil}
	if v.Inboxes, err = d.inboxChoices(p, v.Addresses); err != nil {
		return err
	}
	if err := p.addInboxes(v.Addresses, textsOf(l.Data, func(e gen.ListEntry) string { return e.InboxID.Or("") })...); err != nil {
		return err
	}
	return p.show("lists", v)
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

func (d *Dashboard) addEntry(p *page) (err error) {
	rule := p.form.Get("rule")
	direction, action, _ := strings.Cut(rule, " ")
	req := &gen.ListEntryCreate{Direction: gen.ListDirection(direction), Action: gen.ListAction(action), Pattern: p.field("pattern")}
	if name := p.field("inbox"); name != "" {
		req.InboxID.Set = true
		req.InboxID.Value, err = d.inboxNamed(p, "inbox_id", name)
	}
	var made *gen.ListEntry
	if err == nil {
		made, err = d.api.CreateListEntry(p.ctx(), req, gen.CreateListEntryParams{})
	}
	if err != nil {
		return p.again(err, d.showLists)
	}
	return p.done("/lists", entryWords[rule]+" "+made.Pattern+": added.")
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
		return "", fieldProblem(field, "No inbox "+name+" in this account.")
	}
	return in.ID, err
}

func (d *Dashboard) deleteEntry(p *page) error {
	_, err := d.api.DeleteListEntry(p.ctx(), gen.DeleteListEntryParams{ListID: p.id()})
	return p.result(err, "/lists", "/lists", "Entry deleted.")
}

func (d *Dashboard) quarantine(p *page) error {
	l, err := d.api.ListMessages(p.ctx(), gen.ListMessagesParams{
		Limit: limit(), Cursor: p.cursor(), Status: gen.NewOptMessageStatus(gen.MessageStatusQuarantined),
	})
	if err != nil {
		return err
	}
	v := allView{list: list[gen.Message]{Rows: l.Data, paging: p.paging(l.Cursor)}, Addresses: map[string]string{}}
	if err := p.addInboxes(v.Addresses, textsOf(l.Data, func(m gen.Message) string { return m.InboxID })...); err != nil {
		return err
	}
	v.Live = v.live("", gen.EventTypeMessageQuarantined)
	return p.show("quarantine", v)
}

func (d *Dashboard) releaseMessages(p *page) error {
	return p.decide("/quarantine", "message", "first", "released", func(id string) error {
		_, err := d.api.ReleaseMessage(p.ctx(), gen.ReleaseMessageParams{MessageID: id})
		return err
	})
}

func (d *Dashboard) dropMessages(p *page) error {
	return p.decide("/quarantine", "message", "first", "dropped", func(id string) error {
		_, err := d.api.DeleteMessage(p.ctx(), gen.DeleteMessageParams{MessageID: id})
		return err
	})
}

// decide does something with the selected messages or drafts of the list at a path: with the
// values of a field of the form. when ends the request to select some, and done is the word
// for what was done.
func (p *page) decide(path, field, when, done string, do func(value string) error) error {
	values := p.form[field]
	if len(values) == 0 {
		return p.failed(path, "Select the "+field+"s "+when+".")
	}
	n, kept, why := 0, 0, ""
	for _, value := range values[:min(len(values), listSize)] {
		err := do(value)
		pr, known := refusal(err)
		switch {
		case err == nil:
			n++
		case isMissing(err): // decided in the meantime
		case known:
			kept, why = kept+1, cmp.Or(why, pr.Message)
		default:
			return err
		}
	}
	text := plural(n, field+" ", field+"s ") + done
	if kept > 0 {
		return p.failed(path, fmt.Sprintf("%s, %d not: %s", text, kept, why))
	}
	return p.done(path, text+".")
}
