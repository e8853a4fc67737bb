package web

import (
	"errors"
	"io"
	"net/mail"
	"net/url"
	"slices"
	"strings"

	"github.com/postroom/postroom/gen"
)

// writeView is the page on which a user writes a message.
type writeView struct {
	Kind    string // new, reply or forward
	Inbox   *gen.Inbox
	Inboxes []gen.Inbox  // to choose from, for a new message
	To      *gen.Message // the message that is replied to or forwarded; nil for a new one
	Form    form
	Action  string
	Back    string
}

// writeForm shows the form of a new message, from the inbox that the request names or the
// newest one.
func (d *Dashboard) writeForm(p *page) (err error) {
	q := p.r.URL.Query()
	v := writeView{Kind: "new", Action: "/write", Back: "/inboxes", Form: p.newForm(url.Values{"to": {q.Get("to")}, "inbox": {q.Get("inbox")}})}
	if v.Inboxes, err = d.inboxChoices(p, map[string]string{}); err != nil {
		return err
	}
	id := v.Form.Get("inbox")
	if id == "" && len(v.Inboxes) == 0 {
		return p.failed("/inboxes", "Create an inbox first.")
	} else if id == "" {
		id = v.Inboxes[0].ID
	}
	if v.Inbox, err = d.api.GetInbox(p.ctx(), gen.GetInboxParams{InboxID: id}); err != nil {
		return err
	}
	if !slices.ContainsFunc(v.Inboxes, func(in gen.Inbox) bool { return in.ID == id }) {
		v.Inboxes = append(v.Inboxes, *v.Inbox)
	}
	return p.show("write", v)
}

// write sends a new message, and reply and forward send a response to one.
func (d *Dashboard) write(p *page) error {
	return d.send(p, d.writeForm, func(text gen.OptNilString, files gen.MessageAttachmentInputs) (any, error) {
		return d.api.SendMessage(p.ctx(), &gen.MessageSend{
			To: p.recipients("to"), Cc: p.optionalAddresses("cc"), Bcc: p.optionalAddresses("bcc"), Subject: p.field("subject"), Text: text, Attachments: files,
		}, gen.SendMessageParams{InboxID: p.form.Get("inbox"), IdempotencyKey: p.once()})
	})
}

func (d *Dashboard) reply(p *page) error {
	return d.send(p, d.replyForm, func(text gen.OptNilString, files gen.MessageAttachmentInputs) (any, error) {
		return d.api.ReplyToMessage(p.ctx(), &gen.MessageReply{
			ReplyAll: gen.NewOptBool(p.form.Has("reply_all")), Cc: p.optionalAddresses("cc"), Bcc: p.optionalAddresses("bcc"), Text: text, Attachments: files,
		}, gen.ReplyToMessageParams{MessageID: p.id(), IdempotencyKey: p.once()})
	})
}

func (d *Dashboard) forward(p *page) error {
	return d.send(p, d.forwardForm, func(text gen.OptNilString, files gen.MessageAttachmentInputs) (any, error) {
		return d.api.ForwardMessage(p.ctx(), &gen.MessageForward{
			To: p.recipients("to"), Cc: p.optionalAddresses("cc"), Bcc: p.optionalAddresses("bcc"), Text: text, Attachments: files,
		}, gen.ForwardMessageParams{MessageID: p.id(), IdempotencyKey: p.once()})
	})
}

// answer accepts or declines an invitation.
func (d *Dashboard) answer(p *page) error {
	return d.send(p, d.message, func(gen.OptNilString, gen.MessageAttachmentInputs) (any, error) {
		return d.api.ReplyToInvitation(p.ctx(), &gen.CalendarReply{Response: gen.CalendarReplyResponse(p.form.Get("response"))}, gen.ReplyToInvitationParams{MessageID: p.id(), IdempotencyKey: p.once()})
	})
}

// send sends the text and the files of the form. If the API refuses it, show shows the form
// again.
func (d *Dashboard) send(p *page, show func(*page) error, call func(text gen.OptNilString, files gen.MessageAttachmentInputs) (any, error)) error {
	files, err := p.files()
	if err != nil {
		return err
	}
	response, err := call(nameOf(unixLines(p.form.Get("text"))), files)
	if err != nil {
		return p.again(err, show)
	}
	return p.sent(response)
}

// sent redirects to what the API has sent, or to the draft that it holds for approval.
func (p *page) sent(response any) error {
	switch of := response.(type) {
	case *gen.Draft:
		return p.done("/approvals/"+of.ID, "Submitted for approval.")
	case *gen.Message:
		return p.done("/inboxes/"+of.InboxID+"/threads/"+of.ThreadID+"#"+of.ID, "Message queued for delivery.")
	case *gen.EmailCreated:
		return p.done("/emails/"+of.ID, "Email queued.")
	}
	return errFailed
}

func (d *Dashboard) replyForm(p *page) error   { return d.answerForm(p, "reply") }
func (d *Dashboard) forwardForm(p *page) error { return d.answerForm(p, "forward") }

// answerForm shows the form of a reply to a message, or of its forward.
func (d *Dashboard) answerForm(p *page, kind string) error {
	m, err := d.getMessage(p, p.id())
	if err != nil {
		return err
	}
	in, err := d.api.GetInbox(p.ctx(), gen.GetInboxParams{InboxID: m.InboxID})
	if err != nil {
		return err
	}
	return p.show("write", writeView{
		Kind: kind, Inbox: in, To: m, Form: p.newForm(p.r.URL.Query()),
		Action: "/messages/" + m.ID + "/" + kind, Back: "/inboxes/" + in.ID + "/threads/" + m.ThreadID,
	})
}

// files returns the files that the form attaches.
func (p *page) files() (all gen.MessageAttachmentInputs, err error) {
	if p.r.MultipartForm == nil {
		return nil, nil
	}
	for _, head := range p.r.MultipartForm.File["files"] {
		f, err := head.Open()
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(f)
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		all = append(all, gen.MessageAttachmentInput{Filename: head.Filename, Content: content})
	}
	return all, nil
}

func (p *page) recipients(field string) gen.Recipients {
	return gen.NewAddressArrayRecipients(addressesOf(p.form.Get(field)))
}

// addressesOf parses an address field. It passes text that it cannot parse to the
// API, which reports the error.
func addressesOf(s string) gen.AddressArray {
	out := gen.AddressArray{}
	s = strings.Trim(strings.NewReplacer("\r\n", ",", "\n", ",", ";", ",").Replace(s), " ,")
	if list, err := mail.ParseAddressList(s); err == nil {
		for _, a := range list {
			o := gen.AddressObject{Email: gen.EmailAddress(a.Address)}
			if a.Name != "" {
				o.Name = gen.NewOptNilString(a.Name)
			}
			out = append(out, gen.NewAddressObjectAddress(o))
		}
		return out
	}
	for one := range strings.SplitSeq(s, ",") {
		if one = strings.TrimSpace(one); one != "" {
			out = append(out, gen.NewMailboxAddress(gen.Mailbox(one)))
		}
	}
	return out
}

// optionalAddresses returns the addresses of a field that may be empty.
func (p *page) optionalAddresses(field string) gen.OptOptionalRecipients {
	list := addressesOf(p.form.Get(field))
	if len(list) == 0 {
		return gen.OptOptionalRecipients{}
	}
	return gen.NewOptOptionalRecipients(gen.NewOptionalAddressArrayOptionalRecipients(gen.OptionalAddressArray(list)))
}
