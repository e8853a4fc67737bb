package web

import (
	"net/http"
	"net/mail"
	"strings"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/store"
)

// writeView is a mail that is being written.
type writeView struct {
	Inbox   *gen.Inbox
	To      *gen.Message // that is replied to, or nil
	Form    mailForm
	Action  string
	Back    string
	Replied []gen.MailAddress // to whom a reply goes
}

// mailForm is what was filled in. Once is the idempotency key of the form: one
// that is sent twice sends one mail.
type mailForm struct {
	To, Cc, Bcc, Subject, Text, Once string
	All                              bool
	Problem                          problem
}

func (p *page) mailForm() (mailForm, error) {
	form, err := p.form()
	if err != nil {
		return mailForm{}, err
	}
	return mailForm{
		To: form.Get("to"), Cc: form.Get("cc"), Bcc: form.Get("bcc"), Subject: strings.TrimSpace(form.Get("subject")),
		Text: strings.ReplaceAll(form.Get("text"), "\r\n", "\n"), Once: form.Get("once"), All: form.Get("reply_all") != "",
	}, nil
}

func (d *Dashboard) writeForm(p *page) error {
	return d.showWrite(p, http.StatusOK, mailForm{To: p.r.URL.Query().Get("to"), Once: d.newOnce()})
}

func (d *Dashboard) newOnce() string { return store.NewID("form_", d.now()) }

// onceAfter is the idempotency key of a form that is shown again: the same one,
// for the refused form may still be on its way by an earlier click, unless a mail
// that says something else has used it up.
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
	f, err := p.mailForm()
	if err != nil {
		return err
	}
	answer, err := d.api.SendMessage(p.ctx(), &gen.MessageSend{
		To: gen.NewAddressArrayRecipients(addressesOf(f.To)), Cc: optionalAddresses(f.Cc), Bcc: optionalAddresses(f.Bcc),
		Subject: f.Subject, Text: gen.NewOptNilString(f.Text),
	}, gen.SendMessageParams{InboxID: p.r.PathValue("inbox"), IdempotencyKey: optional(f.Once)})
	if pr, ok := problemOf(err); ok && pr.status < http.StatusInternalServerError && pr.status != http.StatusNotFound {
		f.Problem, f.Once = pr, d.onceAfter(pr, f.Once)
		return d.showWrite(p, pr.status, f)
	}
	if err != nil {
		return err
	}
	return p.wrote(answer)
}

// wrote goes to where the mail is now: in its thread, or with those that wait for
// approval.
func (p *page) wrote(answer any) error {
	if dr, held := answer.(*gen.Draft); held {
		return p.done("/approvals/"+dr.ID, "Submitted for approval.")
	}
	m, ok := answer.(*gen.Message)
	if !ok {
		return errFailed
	}
	return p.done("/inboxes/"+m.InboxID+"/threads/"+m.ThreadID+"#"+m.ID, "Message queued for delivery.")
}

func (d *Dashboard) replyForm(p *page) error {
	return d.showReply(p, http.StatusOK, mailForm{Once: d.newOnce()})
}

func (d *Dashboard) showReply(p *page, status int, f mailForm) error {
	m, err := d.api.GetMessage(p.ctx(), gen.GetMessageParams{MessageID: p.r.PathValue("mail")})
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

// repliedTo says to whom a reply goes, as the API decides.
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
	f, err := p.mailForm()
	if err != nil {
		return err
	}
	answer, err := d.api.ReplyToMessage(p.ctx(), &gen.MessageReply{
		ReplyAll: gen.NewOptBool(f.All), Cc: optionalAddresses(f.Cc), Bcc: optionalAddresses(f.Bcc), Text: gen.NewOptNilString(f.Text),
	}, gen.ReplyToMessageParams{MessageID: p.r.PathValue("mail"), IdempotencyKey: optional(f.Once)})
	if pr, ok := problemOf(err); ok && pr.status < http.StatusInternalServerError && pr.status != http.StatusNotFound {
		f.Problem, f.Once = pr, d.onceAfter(pr, f.Once)
		return d.showReply(p, pr.status, f)
	}
	if err != nil {
		return err
	}
	return p.wrote(answer)
}

// addressesOf reads what somebody wrote into a field for addresses. What cannot be
// read goes to the API as it is, which says what is wrong with it.
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
			out = append(out, gen.NewEmailAddressAddress(gen.EmailAddress(one)))
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
