package web

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/postroom/postroom/gen"
)

// listed is the number of rows on a page.
const listed = 25

// inboxForm holds the submitted values of a new inbox or of an inbox's settings.
type inboxForm struct {
	Name, Domain, DisplayName, SendPolicy, RetentionDays, Aliases string
	CatchAll                                                      bool
	Limits                                                        limitsForm
	Problem                                                       problem
}

type inboxesView struct {
	Inboxes []gen.Inbox
	Unread  map[string]int // messages, by the ID of the inbox
	paging
	Domains []string
	Form    inboxForm
	Live    string
}

func (d *Dashboard) inboxes(p *page) error { return d.showInboxes(p, http.StatusOK, inboxForm{}) }

func (d *Dashboard) showInboxes(p *page, status int, form inboxForm) error {
	list, err := d.api.ListInboxes(p.ctx(), gen.ListInboxesParams{Limit: gen.NewOptInt(listed), Cursor: p.cursor()})
	if err != nil {
		return err
	}
	v := inboxesView{Inboxes: list.Data, paging: p.paging(list.Cursor), Form: form}
	if v.Domains, err = d.ownDomains(p); err != nil {
		return err
	}
	ids := textsOf(v.Inboxes, func(in gen.Inbox) string { return in.ID })
	if v.Unread, err = d.store.UnreadInInboxes(p.ctx(), p.user.Seq, ids); err != nil {
		return err
	}
	v.Live = v.live("", gen.EventTypeMessageReceived)
	return p.showStatus(status, "inboxes", v)
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

func (d *Dashboard) createInbox(p *page) (err error) {
	f := p.inboxForm()
	req := gen.InboxCreate{Name: optional(f.Name), Domain: optional(f.Domain), SendPolicy: f.policy()}
	if f.DisplayName != "" {
		req.DisplayName = gen.NewOptNilString(f.DisplayName)
	}
	if req.RetentionDays, err = f.retention(); err != nil {
		return err
	}
	in, err := d.api.CreateInbox(p.ctx(), gen.NewOptInboxCreate(req), gen.CreateInboxParams{})
	if err != nil {
		return again(err, func(pr problem) error {
			f.Problem = pr
			return d.showInboxes(p, pr.status, f)
		})
	}
	to := "/inboxes/" + in.ID
	if p.form.Get("start") == "1" {
		to = "/"
	}
	return p.done(to, "Inbox created: "+in.Address)
}

func (p *page) inboxForm() inboxForm {
	return inboxForm{
		Name: p.field("name"), Domain: p.form.Get("domain"), DisplayName: p.field("display_name"),
		SendPolicy: p.form.Get("send_policy"), RetentionDays: p.form.Get("retention_days"),
		Aliases: p.field("aliases"), CatchAll: p.form.Get("catch_all") != "", Limits: limitsFrom(p.form),
	}
}

func (f inboxForm) policy() gen.OptSendPolicy {
	return gen.OptSendPolicy{Value: gen.SendPolicy(f.SendPolicy), Set: f.SendPolicy != ""}
}

// aliases returns the local parts, which commas or spaces separate.
func (f inboxForm) aliases() []gen.LocalPart {
	list := []gen.LocalPart{}
	for _, name := range listOf(f.Aliases) {
		list = append(list, gen.LocalPart(name))
	}
	return list
}

func (f inboxForm) retention() (gen.OptInt, error) {
	if f.RetentionDays == "" {
		return gen.OptInt{}, nil
	}
	n, err := strconv.Atoi(f.RetentionDays)
	if err != nil {
		return gen.OptInt{}, errForm
	}
	return gen.NewOptInt(n), nil
}

// inboxView is an inbox with its threads. The page of all messages searches it.
type inboxView struct {
	Inbox   *gen.Inbox
	Threads []gen.Thread
	Codes   map[string]gen.Message // with the newest code, by the ID of the thread
	Unread  map[string]bool        // threads, by ID
	paging
	Live string
	// Snippets are shown while the inbox is empty.
	Snippets []snippet
}

func (d *Dashboard) inbox(p *page) error {
	in, err := d.api.GetInbox(p.ctx(), gen.GetInboxParams{InboxID: p.r.PathValue("inbox")})
	if err != nil {
		return err
	}
	v := inboxView{Inbox: in}
	if err := d.listThreads(p, &v); err != nil {
		return err
	}
	v.Live = v.live(in.ID, gen.EventTypeMessageReceived, gen.EventTypeMessageSent, gen.EventTypeMessageDelivered,
		gen.EventTypeMessageBounced, gen.EventTypeMessageFailed)
	return p.show("inbox", v)
}

func (d *Dashboard) listThreads(p *page, v *inboxView) error {
	list, err := d.api.ListThreads(p.ctx(), gen.ListThreadsParams{InboxID: v.Inbox.ID, Limit: gen.NewOptInt(listed), Cursor: p.cursor()})
	if err != nil {
		return err
	}
	v.Threads, v.paging = list.Data, p.paging(list.Cursor)
	ids := textsOf(v.Threads, func(t gen.Thread) string { return t.ID })
	if v.Unread, err = d.store.UnreadThreads(p.ctx(), p.user.Seq, ids); err != nil {
		return err
	}
	if len(v.Threads) == 0 {
		v.Snippets = d.snippets(v.Inbox)
		return nil
	}
	newest, err := d.api.ListInboxMessages(p.ctx(), gen.ListInboxMessagesParams{
		InboxID: v.Inbox.ID, Direction: gen.NewOptDirection(gen.DirectionIn), Limit: gen.NewOptInt(2 * listed),
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
	Inbox *gen.Inbox
	Form  inboxForm
}

func (d *Dashboard) inboxSettings(p *page) error {
	in, err := d.api.GetInbox(p.ctx(), gen.GetInboxParams{InboxID: p.r.PathValue("inbox")})
	if err != nil {
		return err
	}
	form := inboxForm{
		DisplayName: in.DisplayName.Or(""), SendPolicy: in.SendPolicy, RetentionDays: strconv.Itoa(in.RetentionDays),
		Aliases: strings.Join(in.Aliases, ", "), CatchAll: in.CatchAll,
	}
	if active, ok := in.Limits.Get(); ok {
		if form.Limits, err = limitsOf(&active); err != nil {
			return err
		}
	}
	return p.show("inbox-settings", settingsView{in, form})
}

func (d *Dashboard) updateInbox(p *page) error {
	f := p.inboxForm()
	id := p.r.PathValue("inbox")
	req := gen.InboxUpdate{
		DisplayName: nameOf(f.DisplayName), Aliases: f.aliases(), CatchAll: gen.NewOptBool(f.CatchAll), SendPolicy: f.policy(),
	}
	var err error
	if req.RetentionDays, err = f.retention(); err != nil {
		return err
	}
	if req.Limits, err = f.Limits.request(); err == nil {
		_, err = d.api.UpdateInbox(p.ctx(), &req, gen.UpdateInboxParams{InboxID: id})
	}
	if err == nil {
		return p.done("/inboxes/"+id, "Settings saved.")
	}
	pr, ok := problemOf(err)
	if !ok || pr.status != http.StatusBadRequest && pr.status != http.StatusConflict {
		return err
	}
	in, err := d.api.GetInbox(p.ctx(), gen.GetInboxParams{InboxID: id})
	if err != nil {
		return err
	}
	f.Problem = pr
	return p.showStatus(pr.status, "inbox-settings", settingsView{in, f})
}

func (d *Dashboard) deleteInbox(p *page) error {
	id := p.r.PathValue("inbox")
	gone, err := d.api.DeleteInbox(p.ctx(), gen.DeleteInboxParams{InboxID: id})
	if err != nil {
		return p.refused("/inboxes/"+id+"/settings", err)
	}
	return p.done("/inboxes", "Inbox deleted: "+gone.Address)
}
