package web

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/postroom/postroom/gen"
)

type inboxesView struct {
	list[gen.Inbox]
	Unread  map[string]int // messages, by the ID of the inbox
	Domains []string
	Total   int
	Live    string
}

func (d *Dashboard) inboxes(p *page) error {
	l, err := d.api.ListInboxes(p.ctx(), gen.ListInboxesParams{Limit: limit(), Cursor: p.cursor()})
	if err != nil {
		return err
	}
	v := inboxesView{list: list[gen.Inbox]{l.Data, p.paging(l.Cursor), p.formOf(url.Values{"q": {p.asked("q").Value}})}}
	if q := p.asked("q").Value; q != "" {
		if v.list, err = d.inboxesLike(p, q, v.Form); err != nil {
			return err
		}
	}
	usage, err := d.api.GetUsage(p.ctx())
	if err != nil {
		return err
	}
	v.Total = usage.Inboxes.Used
	if v.Domains, err = d.ownDomains(p); err != nil {
		return err
	}
	ids := textsOf(v.Rows, func(in gen.Inbox) string { return in.ID })
	if v.Unread, err = d.store.UnreadInInboxes(p.ctx(), p.user.Seq, ids); err != nil {
		return err
	}
	v.Live = v.live("", gen.EventTypeMessageReceived)
	return p.show("inboxes", v)
}

// inboxesLike returns the newest inboxes whose address contains a text.
func (d *Dashboard) inboxesLike(p *page, text string, f form) (list[gen.Inbox], error) {
	found, err := d.store.InboxesLike(p.ctx(), p.user.AccountID, text, listSize)
	l := list[gen.Inbox]{Form: f}
	for _, one := range found {
		in, err := d.api.GetInbox(p.ctx(), gen.GetInboxParams{InboxID: one.ID})
		if err != nil {
			return l, err
		}
		l.Rows = append(l.Rows, *in)
	}
	return l, err
}

// ownDomains returns the verified domains of the account, without the default
// domain.
func (d *Dashboard) ownDomains(p *page) ([]string, error) {
	list, err := d.api.ListDomains(p.ctx(), gen.ListDomainsParams{Limit: gen.NewOptInt(100)})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, o := range list.Data {
		if o.Status == "verified" {
			names = append(names, o.Domain)
		}
	}
	return names, nil
}

func (d *Dashboard) createInbox(p *page) error {
	req := gen.InboxCreate{Name: optional(p.field("name")), Domain: optional(p.form.Get("domain")), SendPolicy: p.sendPolicy()}
	if name := p.field("display_name"); name != "" {
		req.DisplayName = gen.NewOptNilString(name)
	}
	in, err := d.api.CreateInbox(p.ctx(), gen.NewOptInboxCreate(req), gen.CreateInboxParams{})
	if err != nil {
		return p.again(err, d.inboxes)
	}
	to := "/inboxes/" + in.ID
	if p.form.Get("start") == "1" {
		to = "/"
	}
	return p.done(to, "Inbox created: "+in.Address)
}

func (p *page) sendPolicy() gen.OptSendPolicy {
	policy := p.form.Get("send_policy")
	return gen.OptSendPolicy{Value: gen.SendPolicy(policy), Set: policy != ""}
}

// inboxView is an inbox with its threads. The page of all messages searches it.
type inboxView struct {
	Inbox   *gen.Inbox
	Threads []gen.Thread
	Codes   map[string]gen.Message // with the newest code, by the ID of the thread
	Unread  map[string]bool        // threads, by ID
	paging
	Live  string
	Label gen.OptLabel // of the threads that are listed; all if it is not set
	// Snippets are shown while the inbox is empty.
	Snippets []snippet
}

func (d *Dashboard) inbox(p *page) error {
	in, err := d.api.GetInbox(p.ctx(), gen.GetInboxParams{InboxID: p.id()})
	if err != nil {
		return err
	}
	v := inboxView{Inbox: in, Label: gen.OptLabel{Value: gen.Label(p.asked("label").Value), Set: p.asked("label").Set}}
	if err := d.listThreads(p, &v); err != nil {
		return err
	}
	v.Live = v.live(in.ID, gen.EventTypeMessageReceived, gen.EventTypeMessageSent, gen.EventTypeMessageDelivered,
		gen.EventTypeMessageBounced, gen.EventTypeMessageFailed)
	return p.show("inbox", v)
}

func (d *Dashboard) listThreads(p *page, v *inboxView) error {
	list, err := d.api.ListThreads(p.ctx(), gen.ListThreadsParams{InboxID: v.Inbox.ID, Limit: limit(), Cursor: p.cursor(), Label: v.Label})
	if err != nil {
		return err
	}
	v.Threads, v.paging = list.Data, p.paging(list.Cursor)
	ids := textsOf(v.Threads, func(t gen.Thread) string { return t.ID })
	if v.Unread, err = d.store.UnreadThreads(p.ctx(), p.user.Seq, ids); err != nil {
		return err
	}
	if len(v.Threads) == 0 {
		v.Snippets = d.snippets(*v.Inbox)
		return nil
	}
	newest, err := d.api.ListInboxMessages(p.ctx(), gen.ListInboxMessagesParams{
		InboxID: v.Inbox.ID, Direction: gen.NewOptDirection(gen.DirectionIn), Limit: gen.NewOptInt(100),
	})
	if err != nil {
		return err
	}
	v.Codes = map[string]gen.Message{}
	for _, m := range slices.Backward(newest.Data) {
		if m.Extracted.Value.Otp.Value != "" {
			v.Codes[m.ThreadID] = m
		}
	}
	return nil
}

type settingsView struct {
	Inbox   *gen.Inbox
	Form    form
	Control control
}

func (d *Dashboard) inboxSettings(p *page) error {
	in, err := d.api.GetInbox(p.ctx(), gen.GetInboxParams{InboxID: p.id()})
	if err != nil {
		return err
	}
	values := url.Values{
		"display_name": {in.DisplayName.Or("")}, "send_policy": {in.SendPolicy}, "retention_days": {strconv.Itoa(in.RetentionDays)},
		"aliases": {strings.Join(in.Aliases, ", ")},
	}
	if in.CatchAll {
		values.Set("catch_all", "1")
	}
	if active, ok := in.Limits.Get(); ok {
		if err := addLimits(values, &active); err != nil {
			return err
		}
	}
	c, err := d.control(p, in.ID)
	if err != nil {
		return err
	}
	return p.show("inbox-settings", settingsView{in, p.formOf(values), c})
}

func (d *Dashboard) updateInbox(p *page) error {
	days, err := strconv.Atoi(p.field("retention_days"))
	if err != nil {
		return errForm
	}
	req := gen.InboxUpdate{
		DisplayName: nameOf(p.field("display_name")), CatchAll: gen.NewOptBool(p.form.Has("catch_all")), SendPolicy: p.sendPolicy(),
		RetentionDays: gen.NewOptInt(days), Aliases: []gen.LocalPart{},
	}
	for _, name := range listOf(p.form.Get("aliases")) {
		req.Aliases = append(req.Aliases, gen.LocalPart(name))
	}
	if req.Limits, err = limitsIn(p.form); err == nil {
		_, err = d.api.UpdateInbox(p.ctx(), &req, gen.UpdateInboxParams{InboxID: p.id()})
	}
	if err != nil {
		return p.again(err, d.inboxSettings)
	}
	return p.done("/inboxes/"+p.id(), "Settings saved.")
}

func (d *Dashboard) deleteInbox(p *page) error {
	id := p.id()
	gone, err := d.api.DeleteInbox(p.ctx(), gen.DeleteInboxParams{InboxID: id})
	if err != nil {
		return p.refused("/inboxes/"+id+"/settings", err)
	}
	return p.done("/inboxes", "Inbox deleted: "+gone.Address)
}
