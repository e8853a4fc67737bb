package handlers

import (
	"cmp"
	"context"
	"fmt"
	"html"
	"slices"
	"strings"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/compose"
	"github.com/postroom/postroom/internal/mail/htmltext"
	"github.com/postroom/postroom/internal/mail/reply"
	"github.com/postroom/postroom/store"
)

// maxContentID keeps the header field of an attachment on one line.
const maxContentID = 500

// SendMessage implements POST /v1/inboxes/{inbox_id}/messages.
func (a *API) SendMessage(ctx context.Context, req *gen.MessageSend, p gen.SendMessageParams) (gen.SendMessageRes, error) {
	in, err := a.inboxOf(ctx, p.InboxID)
	if err != nil {
		return nil, err
	}
	s := &submission{inbox: in, kind: store.DraftNew, subject: req.Subject}
	if err := cmp.Or(into(&s.to)(addressesFromAPI("to", req.To)), s.read(ctx, req)); err != nil {
		return nil, err
	}
	return asRes[gen.SendMessageRes](a.submit(ctx, s))
}

// ReplyToMessage implements POST /v1/messages/{message_id}/reply.
func (a *API) ReplyToMessage(ctx context.Context, req *gen.MessageReply, p gen.ReplyToMessageParams) (gen.ReplyToMessageRes, error) {
	m, err := a.messageOf(ctx, p.MessageID)
	if err != nil {
		return nil, err
	}
	in, err := a.store.Inbox(ctx, m.AccountID, m.InboxID)
	if err != nil {
		return nil, err
	}
	s := &submission{
		inbox: in, kind: store.DraftReply, source: &m, subject: reply.ReplySubject(m.Subject), threadSeq: m.ThreadSeq, refs: m.ReplyReferences(),
	}
	if err := s.read(ctx, req); err != nil {
		return nil, err
	}
	replyTo, err := a.followed(ctx, in, m)
	if err != nil {
		return nil, err
	}
	if err := a.addressReply(ctx, s, m, replyTo, req.ReplyAll.Or(false)); err != nil {
		return nil, err
	}
	if len(s.to) == 0 {
		return nil, httpapi.Invalid("message_id", "has no address to reply to")
	}
	return asRes[gen.ReplyToMessageRes](a.submit(ctx, s))
}

// ForwardMessage implements POST /v1/messages/{message_id}/forward.
func (a *API) ForwardMessage(ctx context.Context, req *gen.MessageForward, p gen.ForwardMessageParams) (gen.ForwardMessageRes, error) {
	m, err := a.messageOf(ctx, p.MessageID)
	if err != nil {
		return nil, err
	}
	if m.ExpiredAt != nil || m.Content == nil {
		return nil, errExpired
	}
	in, err := a.store.Inbox(ctx, m.AccountID, m.InboxID)
	if err != nil {
		return nil, err
	}
	s := &submission{inbox: in, kind: store.DraftForward, source: &m, subject: reply.ForwardSubject(m.Subject)}
	if err := cmp.Or(into(&s.to)(addressesFromAPI("to", req.To)), s.read(ctx, req)); err != nil {
		return nil, err
	}
	s.quote(m, req)
	if req.IncludeAttachments.Or(true) {
		s.attachments = append(s.attachments, a.storedParts(ctx, m.Seq, m.Content.Attachments.V)...)
		if err := checkAttachments(s.attachments); err != nil {
			return nil, err
		}
	}
	return asRes[gen.ForwardMessageRes](a.submit(ctx, s))
}

// asRes converts the result of an operation with two response types. It never
// returns a non-nil interface around a nil pointer.
func asRes[Res any](response any, err error) (Res, error) {
	var none Res
	if err != nil {
		return none, err
	}
	res, ok := response.(Res)
	if !ok {
		return none, fmt.Errorf("%T is not a response of this operation", response)
	}
	return res, nil
}

// mailFields are the fields that send, reply and forward share.
type mailFields interface {
	GetCc() gen.OptOptionalRecipients
	GetBcc() gen.OptOptionalRecipients
	GetReplyTo() gen.OptOptionalRecipients
	GetText() gen.OptNilString
	GetHTML() gen.OptNilString
	GetHeaders() gen.OptNilMailHeaders
	GetApproval() gen.OptNilDraftExpiry
	GetAttachments() gen.MessageAttachmentInputs
}

// read reads the shared fields of a request.
func (s *submission) read(ctx context.Context, req mailFields) error {
	s.text, s.html = req.GetText().Or(""), req.GetHTML().Or("")
	return cmp.Or(
		into(&s.cc)(optionalAddresses("cc", req.GetCc())),
		into(&s.bcc)(optionalAddresses("bcc", req.GetBcc())),
		into(&s.replyTo)(optionalAddresses("reply_to", req.GetReplyTo())),
		into(&s.headers)(headersFromAPI(req.GetHeaders())),
		s.readApproval(ctx, req.GetApproval()),
		into(&s.attachments)(attachmentsFromAPI(req.GetAttachments())),
	)
}

// readApproval reads what becomes of the message if it needs approval.
func (s *submission) readApproval(ctx context.Context, approval gen.OptNilDraftExpiry) error {
	s.expiry = approval.Value
	if s.expiry.OnExpiry.Value == gen.DraftOnExpirySend && !isAdmin(httpapi.Caller(ctx)) {
		return errNeedsAdmin("approval.on_expiry", "on_expiry: send needs the scope admin")
	}
	return nil
}

// addressReply sets the recipients of a reply to m: its Reply-To, or else its From;
// for a sent message, its To. The inbox itself is never a recipient.
func (a *API) addressReply(ctx context.Context, s *submission, m store.Message, replyTo []mail.Address, all bool) error {
	of := m.Addresses.V
	to, copied := replyTo, slices.Concat(of.To, of.Cc)
	if len(to) == 0 && of.From != nil && of.From.Email != "" {
		to = []mail.Address{*of.From}
	}
	if m.Direction == store.DirectionOut {
		to, copied = of.To, of.Cc
	}
	s.to = fromStore(to)
	if all {
		s.cc = append(s.cc, fromStore(copied)...)
	}
	for _, list := range []*[]mail.Address{&s.to, &s.cc, &s.bcc} {
		var err error
		if *list, err = a.others(ctx, s.inbox, m, *list); err != nil {
			return err
		}
	}
	return nil
}

func fromStore(in []mail.Address) []mail.Address {
	out := make([]mail.Address, 0, len(in))
	for _, a := range in {
		if mail.ValidAddress(a.Email) == nil { // a header may contain anything
			out = append(out, mail.Address{Name: a.Name, Email: a.Email})
		}
	}
	return out
}

// quote sets the body of a forward: the caller's note, then the original.
func (s *submission) quote(m store.Message, req *gen.MessageForward) {
	var body store.Body
	if m.Content.Body != nil {
		body = m.Content.Body.V
	}
	a := m.Addresses.V
	h := compose.ForwardedHeader{To: fromStore(a.To), Cc: fromStore(a.Cc), Date: m.CreatedAt.Time, Subject: m.Subject}
	if a.From != nil {
		h.From = mail.Address{Name: a.From.Name, Email: a.From.Email}
	}
	text := body.Text
	if text == "" {
		text = htmltext.Text(body.HTML)
	}
	note, noteHTML := req.Text.Or(""), req.HTML.Or("")
	if note == "" {
		note = htmltext.Text(noteHTML)
	}
	s.text = compose.ForwardText(note, h, text)
	if _, ok := req.HTML.Get(); ok || body.HTML != "" {
		s.html = compose.ForwardHTML(cmp.Or(noteHTML, textToHTML(req.Text.Or(""))), h, cmp.Or(body.HTML, textToHTML(text)))
	}
}

// textToHTML converts plain text to HTML.
func textToHTML(text string) string {
	return strings.ReplaceAll(html.EscapeString(text), "\n", "<br>\n")
}

// goodContentID returns "" for a Content-ID that we cannot write (RFC 2045
// section 7). Received messages may contain any.
func goodContentID(id string) string {
	if len(id) > maxContentID || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '<' || r == '>' }) {
		return ""
	}
	return id
}
