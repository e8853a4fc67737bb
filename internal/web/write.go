package web

import (
	"net/http"
	"net/mail"
	"strings"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/store"
)

// writeView is the page on which a user writes a message.
type writeView struct {
	Inbox   *gen.Inbox
	To      *gen.Message // the message being replied to, or nil
	Form    mailForm
	Action  string
	Back    string
	Replied []gen.MailAddress // recipients of a reply
}

// mailForm holds the submitted values. Once is the idempotency key of the form,
// so that submitting it twice sends one message.
type mailForm struct {
	To, Cc, Bcc, Subject, Text, Once string
	All                              bool
	Problem                          problem
}

func (p *page) mailForm() mailForm {
	return mailForm{
		To: p.form.Get("to"), Cc: p.form.Get("cc"), Bcc: p.form.Get("bcc"), Subject: p.field("subject"),
		Text: unixLines(p.form.Get("text")), Once: p.form.Get("once"), All: p.form.Get("reply_all") != "",
	}
}

func (d *Dashboard) writeForm(p *page) error {
	return d.showWrite(p, http.StatusOK, mailForm{To: p.r.URL.Query().Get("to"), Once: d.newOnce()})
}

func (d *Dashboard) newOnce() string { return store.NewID("form_", d.now()) }

// onceAfter returns the idempotency key for a form that is shown again. It stays
// the same, because an earlier click may still be in progress, unless another
// message has used the key.
func (d *Dashboard) onceAfter(pr problem, once string) string {
	if pr.code == gen.ErrorCodeIdempotencyKeyReused {
		return d.newOnce()
	}
	return once
}

func (d *Dashboard) showWrite(p *page, status int, f mailForm) error {
	in, err := d.api.GetInbox(p.ctx(), gen.GetInboxParams{InboxID: p.r.PathValue("inbox")})
	if err != nil {
		return err
	}
	return p.showStatus(status, "write", writeView{Inbox: in, Form: f, Action: "/inboxes/" + in.ID + "/write", Back: "/inboxes/" + in.ID})
}

func (d *Dashboard) write(p *page) error {
	f := p.mailForm()
	response, err := d.api.SendMessage(p.ctx(), &gen.MessageSend{
		To: gen.NewAddressArrayRecipients(addressesOf(f.To)), Cc: optionalAddresses(f.Cc), Bcc: optionalAddresses(f.Bcc),
		Subject: f.Subject, Text: gen.NewOptNilString(f.Text),
	}, gen.SendMessageParams{InboxID: p.r.PathValue("inbox"), IdempotencyKey: optional(f.Once)})
	return d.wrote(p, f, response, err, d.showWrite)
}

// wrote redirects to the new message: to its thread, or to the approval queue. If the API
// refused it, show shows the form again.
func (d *Dashboard) wrote(p *page, f mailForm, response any, err error, show func(*page, int, mailForm) error) error {
	if err != nil {
		return again(err, func(pr problem) error {
			f.Problem, f.Once = pr, d.onceAfter(pr, f.Once)
			return show(p, pr.status, f)
		})
	}
	if dr, held := response.(*gen.Draft); held {
		return p.done("/approvals/"+dr.ID, "Submitted for approval.")
	}
	m, ok := response.(*gen.Message)
	if !ok {
		return errFailed
	}
	return p.done("/inboxes/"+m.InboxID+"/threads/"+m.ThreadID+"#"+m.ID, "Message queued for delivery.")
}

func (d *Dashboard) replyForm(p *page) error {
	return d.showReply(p, http.StatusOK, mailForm{Once: d.newOnce()})
}

func (d *Dashboard) showReply(p *page, status int, f mailForm) error {
	m, err := d.getMessage(p, p.r.PathValue("mail"))
	if err != nil {
		return err
	}
	in, err := d.api.GetInbox(p.ctx(), gen.GetInboxParams{InboxID: m.InboxID})
	if err != nil {
		return err
	}
	return p.showStatus(status, "write", writeView{
		Inbox: in, To: m, Form: f, Action: "/messages/" + m.ID + "/reply", Back: "/inboxes/" + in.ID + "/threads/" + m.ThreadID,
		Replied: repliedTo(m, in.SendPolicy),
	})
}

// repliedTo returns the recipients of a reply, by the rules of the API.
func repliedTo(m *gen.Message, policy string) []gen.MailAddress {
	switch {
	case m.Direction == "out":
		return m.To
	case len(m.ReplyTo) > 0 && policy != string(gen.SendPolicyReplyOnly):
		return m.ReplyTo
	case m.From.Null:
		return nil
	}
	return []gen.MailAddress{m.From.Value}
}

func (d *Dashboard) reply(p *page) error {
	f := p.mailForm()
	response, err := d.api.ReplyToMessage(p.ctx(), &gen.MessageReply{
		ReplyAll: gen.NewOptBool(f.All), Cc: optionalAddresses(f.Cc), Bcc: optionalAddresses(f.Bcc), Text: gen.NewOptNilString(f.Text),
	}, gen.ReplyToMessageParams{MessageID: p.r.PathValue("mail"), IdempotencyKey: optional(f.Once)})
	return d.wrote(p, f, response, err, d.showReply)
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

func optionalAddresses(s string) gen.OptOptionalRecipients {
	list := addressesOf(s)
	if len(list) == 0 {
		return gen.OptOptionalRecipients{}
	}
	return gen.NewOptOptionalRecipients(gen.NewOptionalAddressArrayOptionalRecipients(gen.OptionalAddressArray(list)))
}
