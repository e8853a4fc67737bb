package web

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/store"
)

func (d *Dashboard) listPages() {
	d.get("/lists", pageOf("lists", d.showLists))
	d.post("/lists", d.addEntry)
	d.post("/lists/{id}/delete", d.deleteEntry)
	d.get("/quarantine", d.quarantine)
	d.post("/quarantine/release", d.releaseMessages)
	d.post("/quarantine/drop", d.dropMessages)
}

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
	v := listsPage{Entries: l.Data, paging: p.paging(l.Cursor), Form: entryForm{Direction: "outbound", Action: "block"}}
	in, err := d.api.ListInboxes(p.ctx(), gen.ListInboxesParams{Limit: gen.NewOptInt(inboxChoices)})
	if err != nil {
		return listsPage{}, err
	}
	v.Inboxes = in.Data
	v.Addresses, err = d.addressesOf(p, in.Data, l.Data)
	return v, err
}

// addressesOf returns the addresses of the inboxes of entries, by ID.
func (d *Dashboard) addressesOf(p *page, known []gen.Inbox, entries []gen.ListEntry) (map[string]string, error) {
	all := map[string]string{}
	for _, in := range known {
		all[in.ID] = in.Address
	}
	for _, e := range entries {
		id := e.InboxID.Or("")
		if id == "" || all[id] != "" {
			continue
		}
		in, err := d.store.Inbox(p.ctx(), p.user.AccountID, id)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
		all[id] = in.Address
	}
	return all, nil
}

func (d *Dashboard) addEntry(p *page) error {
	sent, err := p.form()
	if err != nil {
		return err
	}
	f := entryForm{Pattern: strings.TrimSpace(sent.Get("pattern")), Inbox: strings.TrimSpace(sent.Get("inbox"))}
	f.Direction, f.Action, _ = strings.Cut(sent.Get("rule"), " ")
	again := func(v *listsPage, pr problem) { v.Form, v.Problem = f, pr }
	req := &gen.ListEntryCreate{Direction: gen.ListDirection(f.Direction), Action: gen.ListAction(f.Action), Pattern: f.Pattern}
	if f.Inbox != "" {
		id, ok, err := d.inboxNamed(p, f.Inbox)
		if err != nil {
			return err
		}
		if !ok {
			v, err := d.showLists(p)
			if err != nil {
				return err
			}
			again(&v, fieldProblem("inbox_id", "No inbox "+f.Inbox+" in this account."))
			return p.showStatus(http.StatusBadRequest, "lists", v)
		}
		req.InboxID = gen.NewOptNilString(id)
	}
	made, err := d.api.CreateListEntry(p.ctx(), req, gen.CreateListEntryParams{})
	if err != nil {
		return showFault(p, "lists", err, d.showLists, again)
	}
	return p.done("/lists", entryWords[made.Direction+" "+made.Action]+" "+made.Pattern+": added.")
}

// inboxNamed returns the ID of the account's inbox with an address. It returns
// names without an @ unchanged, because they are IDs, which the API checks.
func (d *Dashboard) inboxNamed(p *page, name string) (id string, ok bool, err error) {
	if !strings.Contains(name, "@") {
		return name, true, nil
	}
	in, err := d.store.InboxAt(p.ctx(), p.user.AccountID, strings.ToLower(name))
	if errors.Is(err, store.ErrNotFound) || err == nil && in.AccountID != p.user.AccountID {
		return "", false, nil
	}
	return in.ID, true, err
}

func (d *Dashboard) deleteEntry(p *page) error {
	if _, err := d.api.DeleteListEntry(p.ctx(), gen.DeleteListEntryParams{ListID: p.r.PathValue("id")}); err != nil {
		return p.refused("/lists", err)
	}
	return p.done("/lists", "Entry deleted.")
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
	for _, m := range l.Data {
		if v.Addresses[m.InboxID] != "" {
			continue
		}
		in, err := d.store.Inbox(p.ctx(), p.user.AccountID, m.InboxID)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		v.Addresses[m.InboxID] = in.Address
	}
	if v.First == "" {
		v.Live = livePath("", gen.EventTypeMessageQuarantined)
	}
	return p.show("quarantine", v)
}

func (d *Dashboard) releaseMessages(p *page) error {
	return p.decide("released", func(id string) error {
		_, err := d.api.ReleaseMessage(p.ctx(), gen.ReleaseMessageParams{MessageID: id})
		return err
	})
}

func (d *Dashboard) dropMessages(p *page) error {
	return p.decide("dropped", func(id string) error {
		_, err := d.api.DeleteMessage(p.ctx(), gen.DeleteMessageParams{MessageID: id})
		return err
	})
}

// decide does something with the selected messages in quarantine. done is the word
// for it.
func (p *page) decide(done string, do func(id string) error) error {
	form, err := p.form()
	if err != nil {
		return err
	}
	ids := form["message"]
	if len(ids) == 0 {
		p.leaveNotice(notice{Text: "Select the messages first.", Bad: true})
		return p.goTo("/quarantine")
	}
	n := 0
	for _, id := range ids[:min(len(ids), listed)] {
		err := do(id)
		if pr, ok := problemOf(err); ok && pr.status == http.StatusNotFound {
			continue // decided in the meantime
		}
		if err != nil {
			return p.refused("/quarantine", err)
		}
		n++
	}
	if n == 1 {
		return p.done("/quarantine", "1 message "+done+".")
	}
	return p.done("/quarantine", fmt.Sprintf("%d messages %s.", n, done))
}
