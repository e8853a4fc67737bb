package web

import (
	"cmp"
	"html/template"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"unicode"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/store"
)

// allView is the page of the messages of all inboxes, with a search.
type allView struct {
	list[gen.Message]
	Unread    map[string]bool // by ID
	Inboxes   []gen.Inbox
	Addresses map[string]string // of the inboxes, by ID
	Live      string
}

// Filtered reports whether the list is filtered.
func (v allView) Filtered() bool {
	return v.Form.Get("q")+v.Form.Get("from")+v.Form.Get("inbox")+v.Form.Get("direction")+v.Form.Get("label") != ""
}

// inboxChoices returns the newest 100 inboxes, to choose from, and adds their addresses
// to a map by ID.
func (d *Dashboard) inboxChoices(p *page, addresses map[string]string) ([]gen.Inbox, error) {
	l, err := d.api.ListInboxes(p.ctx(), gen.ListInboxesParams{Limit: gen.NewOptInt(100)})
	if err != nil {
		return nil, err
	}
	for _, in := range l.Data {
		addresses[in.ID] = in.Address
	}
	return l.Data, nil
}

func (d *Dashboard) allMessages(p *page) (err error) {
	q := p.r.URL.Query()
	v := allView{Addresses: map[string]string{}}
	v.Form.Values = q
	if v.Inboxes, err = d.inboxChoices(p, v.Addresses); err != nil {
		return err
	}
	params := gen.ListMessagesParams{
		Limit: limit(), Cursor: p.cursor(), Q: p.asked("q"), From: p.asked("from"), InboxID: p.asked("inbox"),
		Direction: gen.OptDirection{Value: gen.Direction(q.Get("direction")), Set: q.Get("direction") != ""}, Label: gen.OptLabel{Value: gen.Label(q.Get("label")), Set: q.Get("label") != ""},
	}
	l, err := d.api.ListMessages(p.ctx(), params)
	if err != nil {
		return err
	}
	v.Rows, v.paging = l.Data, p.paging(l.Cursor)
	if v.Unread, err = p.unread(v.Rows); err != nil {
		return err
	}
	v.Live = v.live("", gen.EventTypeMessageReceived, gen.EventTypeMessageSent)
	return p.show("messages", v)
}

// marked returns a text in which the words that begin with one of a search are marked.
func marked(text, search string) template.HTML {
	words := strings.FieldsFunc(search, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
	if len(words) == 0 {
		return template.HTML(template.HTMLEscapeString(text)) //nolint:gosec // escaped
	}
	found := regexp.MustCompile(`(?i)(^|[^\pL\pN])((?:` + strings.Join(words, "|") + `)[\pL\pN]*)`) // letters and digits mean themselves
	text = template.HTMLEscapeString(found.ReplaceAllString(text, "$1\x02$2\x03"))
	return template.HTML(strings.NewReplacer("\x02", "<mark>", "\x03", "</mark>").Replace(text)) //nolint:gosec // escaped
}

// unread returns which of these messages the signed-in user has not read, by ID.
func (p *page) unread(messages []gen.Message) (map[string]bool, error) {
	return p.d.store.UnreadMessages(p.ctx(), p.user.Seq, textsOf(messages, func(m gen.Message) string { return m.ID }))
}

// markRead notes that the signed-in user has read messages, if the page is shown.
func (p *page) markRead(ids ...string) error {
	if p.r.Method != http.MethodGet {
		return nil
	}
	return p.d.store.MarkRead(p.ctx(), p.user.Seq, ids)
}

func (d *Dashboard) markAllRead(p *page) error {
	if err := d.store.MarkAllRead(p.ctx(), p.user.Seq); err != nil {
		return err
	}
	return p.done("/messages", "All messages are marked as read.")
}

// markUnread returns to the inbox, because the page of the message would read it again.
func (d *Dashboard) markUnread(p *page) error {
	m, err := d.getMessage(p, p.id())
	if err == nil {
		err = d.store.MarkUnread(p.ctx(), p.user.Seq, m.ID)
	}
	if err != nil {
		return err
	}
	return p.done("/inboxes/"+m.InboxID, "Marked as unread: “"+shortened(m.Subject, 60)+"”")
}

// deleteMessages deletes the selected messages of a list.
func (d *Dashboard) deleteMessages(p *page) error {
	to := "/messages"
	if in := p.form.Get("inbox"); in != "" {
		to += "?inbox=" + url.QueryEscape(in)
	}
	return p.decide(to, "message", "to delete", "deleted", func(id string) error {
		_, err := d.api.DeleteMessage(p.ctx(), gen.DeleteMessageParams{MessageID: id})
		return err
	})
}

// placesShown is how many inboxes the page lists.
const placesShown = 8

// messagesFound is how many messages with the words the page lists.
const messagesFound = 5

// goView lists where a text may lead: pages, inboxes, and a search for it.
type goView struct {
	Q      string
	Places []place
}

// place is a link with its icon. Kind says what it is, unless it is a page.
type place struct{ Path, Title, Icon, Kind string }

// places finds the pages of the menu and the inboxes that contain the text q.
func (d *Dashboard) places(p *page) error {
	v := goView{Q: shortened(p.r.URL.Query().Get("q"), 200)}
	fold := strings.ToLower(v.Q)
	var pages []navItem
	for _, g := range navigationOf(p.user.Role) {
		pages = append(pages, g.Items...)
	}
	if fold != "" {
		pages = append(pages, visible(subPages, p.user.Role)...)
	}
	for _, i := range pages {
		if strings.Contains(strings.ToLower(i.Title), fold) {
			v.Places = append(v.Places, place{Path: i.Path, Title: i.Title, Icon: i.Icon})
		}
	}
	inboxes, err := d.store.InboxesLike(p.ctx(), p.user.AccountID, v.Q, placesShown)
	if err != nil {
		return err
	}
	for _, in := range inboxes {
		v.Places = append(v.Places, place{"/inboxes/" + in.ID, in.Address, "inbox", "Inbox"})
		if fold != "" && p.user.Role == store.RoleAdmin {
			v.Places = append(v.Places, place{"/write?inbox=" + in.ID, in.Address, "send", "New message"})
		}
	}
	if v.Q != "" {
		found, err := d.api.ListMessages(p.ctx(), gen.ListMessagesParams{Limit: gen.NewOptInt(messagesFound), Q: gen.NewOptString(v.Q)})
		if _, refused := problemOf(err); err != nil && !refused { // such as a text without words
			return err
		}
		if found != nil {
			for _, m := range found.Data {
				v.Places = append(v.Places, place{"/messages/" + m.ID, cmp.Or(m.Subject, "(no subject)"), "file", cmp.Or(m.From.Value.Email, "Message") + " · " + ago(d.now().Sub(m.CreatedAt))})
			}
		}
		v.Places = append(v.Places, place{"/messages?q=" + url.QueryEscape(v.Q), "Search messages for “" + v.Q + "”", "search", ""})
	}
	return p.show("go", v)
}
