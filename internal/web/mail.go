package web

import (
	"slices"
	"strings"

	"github.com/postroom/postroom/gen"
)

func (d *Dashboard) mailPages() {
	d.get("/inboxes/{inbox}/threads/{thread}", d.thread)
	d.get("/messages/{mail}", d.message)
	d.get("/messages/{mail}/view", d.messageFrame)
	d.get("/messages/{mail}/raw", d.downloadRaw)
	d.get("/messages/{mail}/attachments/{attachment}", d.downloadAttachment)
	d.post("/messages/{mail}/delete", d.deleteMessage)
	d.get("/messages/{mail}/reply", d.replyForm)
	d.post("/messages/{mail}/reply", d.reply)
	d.get("/inboxes/{inbox}/write", d.writeForm)
	d.post("/inboxes/{inbox}/write", d.write)
	d.open("GET /mail-images/{token}", d.mailImage)
	d.get("/live", d.live)
}

// conversation is how many messages of a thread a page shows, the latest ones.
const conversation = 10

type threadView struct {
	Inbox    *gen.Inbox
	Subject  string
	Mails    []mailView // oldest first
	Earlier  string     // URL of the earlier messages; empty if there are none
	Found    *found
	Live     string
	ThreadID string
}

// mailView is a message as a page shows it.
type mailView struct {
	*gen.Message
	Frame *frame // nil: the page shows Text
	// Here is the URL path of the page.
	Here string
	Open bool
}

// found is the verification code or link of a message.
type found struct {
	Code   string   // verification code
	Others []string // other possible codes
	Link   string   // verification link
	Links  []string
	From   string // id of the message
}

// foundIn returns the codes and link of the latest received message that has any,
// or nil.
func foundIn(mails []mailView) *found {
	for _, m := range slices.Backward(mails) {
		if m.Direction != "in" || m.Extracted.Null {
			continue
		}
		x := m.Extracted.Value
		f := &found{Code: x.Otp.Or(""), Link: x.ActionLink.Or(""), From: m.ID}
		for _, c := range x.Codes {
			if c != f.Code {
				f.Others = append(f.Others, c)
			}
		}
		for _, l := range x.Links {
			if l != f.Link {
				f.Links = append(f.Links, l)
			}
		}
		if f.Code != "" || f.Link != "" || len(f.Others) > 0 || len(f.Links) > 0 {
			return f
		}
	}
	return nil
}

// thread shows the latest messages of a thread as a conversation.
func (d *Dashboard) thread(p *page) error {
	in, err := d.api.GetInbox(p.ctx(), gen.GetInboxParams{InboxID: p.r.PathValue("inbox")})
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
		v.Mails = append(v.Mails, m)
	}
	v.Mails[len(v.Mails)-1].Open = true
	v.Subject, v.Found = v.Mails[0].Subject, foundIn(v.Mails)
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
	here := p.r.URL.Path
	return mailView{Message: m, Frame: p.frameOf(source, remote), Here: here, Open: remote}, nil
}

type messageView struct {
	Mail  mailView
	Inbox *gen.Inbox
	Found *found
}

// message shows one message with all its details.
func (d *Dashboard) message(p *page) error {
	m, err := d.mailView(p, p.r.PathValue("mail"))
	if err != nil {
		return err
	}
	in, err := d.api.GetInbox(p.ctx(), gen.GetInboxParams{InboxID: m.InboxID})
	if err != nil {
		return err
	}
	return p.show("message", messageView{m, in, foundIn([]mailView{m})})
}

func (d *Dashboard) messageFrame(p *page) error {
	m, err := d.getMessage(p, p.r.PathValue("mail"))
	if err != nil {
		return err
	}
	return p.showFrame(messageSource(m))
}

func (d *Dashboard) deleteMessage(p *page) error {
	id := p.r.PathValue("mail")
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
