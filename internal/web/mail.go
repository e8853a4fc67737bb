package web

import (
	"slices"
	"strings"

	"github.com/postroom/postroom/gen"
)

// conversation is how many messages of a thread a page shows, the latest ones.
const conversation = 10

type threadView struct {
	Inbox          *gen.Inbox
	Subject        string
	Messages       []mailView // oldest first
	Earlier        string     // URL of the earlier messages; empty if there are none
	Found          *gen.Extracted
	Live, ThreadID string
}

// mailView is a message as a page shows it.
type mailView struct {
	*gen.Message
	Frame *frame // nil: the page shows Text
	// Here is the URL path of the page.
	Here string
	Open bool
}

// foundIn returns what was found in the latest received message that has codes or links,
// or nil.
func foundIn(mails []mailView) *gen.Extracted {
	for _, m := range slices.Backward(mails) {
		if x := m.Extracted.Value; m.Direction == "in" && len(x.Codes)+len(x.Links) > 0 {
			return &x
		}
	}
	return nil
}

// thread shows the latest messages of a thread as a conversation.
func (d *Dashboard) thread(p *page) error {
	in, err := d.api.GetInbox(p.ctx(), gen.GetInboxParams{InboxID: p.id()})
	if err != nil {
		return err
	}
	id := p.r.PathValue("thread")
	list, err := d.api.ListInboxMessages(p.ctx(), gen.ListInboxMessagesParams{
		InboxID: in.ID, ThreadID: gen.NewOptString(id), Limit: gen.NewOptInt(conversation), Cursor: p.cursor(),
	})
	if err != nil {
		return err
	}
	if len(list.Data) == 0 {
		return errNoPage
	}
	v := threadView{Inbox: in, ThreadID: id, Earlier: p.paging(list.Cursor).Next}
	for _, listed := range slices.Backward(list.Data) { // newest first
		m, err := d.mailView(p, listed.ID)
		if err != nil {
			return err
		}
		v.Messages = append(v.Messages, m)
	}
	if err := p.markRead(textsOf(v.Messages, func(m mailView) string { return m.ID })...); err != nil {
		return err
	}
	v.Messages[len(v.Messages)-1].Open = true
	v.Subject, v.Found = v.Messages[0].Subject, foundIn(v.Messages)
	if !p.r.URL.Query().Has("cursor") {
		v.Live = livePath(in.ID, gen.EventTypeMessageReceived)
	}
	return p.show("thread", v)
}

// mailView reads a message with its HTML.
func (d *Dashboard) mailView(p *page, id string) (mailView, error) {
	m, err := d.getMessage(p, id)
	if err != nil {
		return mailView{}, err
	}
	source := messageSource(m)
	remote := p.asksRemote(source)
	return mailView{Message: m, Frame: p.frameOf(source, remote), Here: p.r.URL.Path, Open: remote}, nil
}

type messageView struct {
	Mail  mailView
	Inbox *gen.Inbox
	Found *gen.Extracted
	source
	delivery // of a sent message
	Live     string
	Previews []preview // the attached images
	Form     form      // that answers an invitation
}

// messageTab is a view of a message: the query parameter and its title.
type messageTab struct{ Name, Title string }

// preview is an attached image as the page shows it.
type preview struct{ ID, Filename, Src string }

// mostPreviews is how many attached images a page shows.
const mostPreviews = 8

// mostShown is how many bytes of a source a page shows.
const mostShown = 100_000

// quarantined is the status of a message in quarantine.
const quarantined = string(gen.MessageStatusQuarantined)

// Quarantined reports whether the message waits in quarantine.
func (v messageView) Quarantined() bool { return v.Mail.Status == quarantined }

// bodyTabs returns the tabs of the content of a message.
func bodyTabs(text, html string) []messageTab {
	tabs := []messageTab{{"", "Preview"}}
	if html != "" {
		if text != "" {
			tabs = append(tabs, messageTab{"text", "Text"})
		}
		tabs = append(tabs, messageTab{"html", "HTML source"})
	}
	return tabs
}

// tabsOf returns the tabs of a message.
func tabsOf(m *gen.Message) []messageTab {
	if m.Expired {
		return nil
	}
	tabs := append(bodyTabs(m.Text.Or(""), m.HTML.Or("")), messageTab{"headers", "Headers"})
	if m.Status == quarantined { // the API serves no files of it
		return tabs
	}
	return append(tabs, messageTab{"raw", "Raw"})
}

// contentOf returns the text of a tab. The preview and the headers have none.
func (d *Dashboard) contentOf(p *page, m *gen.Message, tab string) (string, error) {
	if tab != "raw" {
		return map[string]string{"text": m.Text.Or(""), "html": m.HTML.Or("")}[tab], nil
	}
	raw, err := d.api.GetMessageRaw(p.ctx(), gen.GetMessageRawParams{MessageID: m.ID})
	if err != nil {
		return "", err
	}
	return d.fileText(p.ctx(), raw.Location)
}

// previewsOf returns the attached images. The server checks that each is a raster
// image when it serves it.
func (p *page) previewsOf(m *gen.Message) []preview {
	var all []preview
	if m.Status == quarantined {
		return nil
	}
	for _, at := range m.Attachments {
		embedded := at.Inline && at.ContentID.Or("") != ""
		if rasterImages[at.ContentType] && at.Size <= maxImage && len(all) < mostPreviews && !embedded {
			all = append(all, preview{at.ID, at.Filename, p.imageLink(m.ID, at.ID)})
		}
	}
	return all
}

// message shows one message with all its details.
func (d *Dashboard) message(p *page) error {
	m, err := d.mailView(p, p.id())
	if err != nil {
		return err
	}
	in, err := d.api.GetInbox(p.ctx(), gen.GetInboxParams{InboxID: m.InboxID})
	if err != nil {
		return err
	}
	if err := p.markRead(m.ID); err != nil {
		return err
	}
	v := messageView{Mail: m, Inbox: in, Found: foundIn([]mailView{m}), source: p.sourceOf(tabsOf(m.Message)), Previews: p.previewsOf(m.Message), Form: p.newForm(nil)}
	v.Mail.Here = "/messages/" + m.ID // also after a form
	content, err := d.contentOf(p, m.Message, v.Tab)
	if err != nil {
		return err
	}
	v.Content, v.Cut = cutSource(content)
	if m.Direction == string(gen.DirectionOut) {
		kept, err := d.store.Message(p.ctx(), p.user.AccountID, m.ID)
		if err != nil {
			return err
		}
		if v.delivery, err = d.delivery(p, kept, nil); err != nil {
			return err
		}
		v.Live = livePath(m.InboxID, changesOfMessages...)
	}
	return p.show("message", v)
}

func (d *Dashboard) messageFrame(p *page) error {
	m, err := d.getMessage(p, p.id())
	if err != nil {
		return err
	}
	return p.showFrame(messageSource(m))
}

func (d *Dashboard) deleteMessage(p *page) error {
	id := p.id()
	m, err := d.getMessage(p, id)
	if err == nil {
		_, err = d.api.DeleteMessage(p.ctx(), gen.DeleteMessageParams{MessageID: id})
	}
	if err != nil {
		return p.refused("/messages/"+id, err)
	}
	return p.done("/inboxes/"+m.InboxID, "Message deleted: “"+shortened(m.Subject, 60)+"”")
}

// shortened truncates s with an ellipsis.
func shortened(s string, most int) string {
	r := []rune(strings.TrimSpace(s))
	if len(r) <= most {
		return string(r)
	}
	return string(r[:most]) + "…"
}

// getMessage returns a message through the API.
func (d *Dashboard) getMessage(p *page, id string) (*gen.Message, error) {
	m, err := d.api.GetMessage(p.ctx(), gen.GetMessageParams{MessageID: id})
	return &m.Message, err
}
