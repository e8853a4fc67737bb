package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"strings"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/plaintext"
	"github.com/postroom/postroom/internal/mail/reply"
	"github.com/postroom/postroom/store"
)

var errContentRequired = &httpapi.Error{Status: http.StatusBadRequest, Code: gen.ErrorCodeContentRequired, Param: "text", Message: "give text, html or both"}

// submission is a message or email to send.
type submission struct {
	account     int64
	inbox       store.Inbox // the sending inbox; an email may have none
	from        mail.Address
	kind        store.DraftKind
	source      *store.Message // the original of a reply or forward; nil for an approved draft
	to, cc, bcc []mail.Address
	replyTo     []mail.Address
	subject     string
	text, html  string
	refs        store.References
	threadSeq   int64 // 0: a new thread
	headers     [][2]string
	attachments []attachment
	testMode    bool
	raw         *rawMail        // if the client composed it
	approved    *store.Draft    // the draft that it comes from
	isDue       bool            // the draft was approved before, or expires
	expiry      gen.DraftExpiry // of the draft that it may become

	// Only an email, which is not a message of an inbox, has these.
	isEmail     bool
	place       string // prefix of its recipient's fields, such as "recipients[3]."; empty for a single email
	category    store.Category
	tags        store.Labels
	metadata    json.RawMessage
	scheduledAt *store.Time
}

// submit queues a message of an inbox and caches the response of an idempotent
// call. The result is a *gen.Message or, if the message needs approval, a
// *gen.Draft.
func (a *API) submit(ctx context.Context, s *submission) (any, error) {
	s.account, s.from = s.inbox.AccountID, mail.Address{Email: s.inbox.Address}
	switch {
	case s.raw != nil:
		s.from = s.raw.From
	case s.approved != nil && s.approved.Addresses.V.From != nil:
		from := s.approved.Addresses.V.From
		s.from.Name = from.Name         // as approved
		if isOwn(s.inbox, from.Email) { // it may be an alias
			s.from.Email = from.Email
		}
	case s.inbox.DisplayName != nil:
		s.from.Name = *s.inbox.DisplayName
	}
	mail, err := a.prepare(ctx, s)
	if err != nil {
		return nil, err
	}
	m, err := a.enqueue(ctx, s, mail)
	if s.approved == nil && store.NeedsApproval(err) {
		return a.hold(ctx, s)
	}
	return m, err
}

// prepare checks what only the request shows and composes the message. All messages
// and emails pass it. Whether they may leave is for the store to decide.
func (a *API) prepare(ctx context.Context, s *submission) (*composed, error) {
	if err := a.checkNotNotices(s.from.Email); err != nil {
		return nil, err
	}
	if s.text == "" && s.html == "" && s.raw == nil {
		return nil, errContentRequired
	}
	if err := s.settle(); err != nil {
		return nil, err
	}
	s.testMode = s.testMode || httpapi.Caller(ctx).Mode == store.KeyTest
	if err := a.checkSource(ctx, s); err != nil {
		return nil, err
	}
	return a.compose(s)
}

// checkNotNotices refuses the address that the service sends its notices from. People
// trust the links in them.
func (a *API) checkNotNotices(email string) error {
	name, domain := cutTag(email)
	if name == mail.NoticeName && domain == a.cfg.MailDomain && !a.cfg.AnySender {
		return errSender(email, "is the address of the service's notices: use another address")
	}
	return nil
}

// maxRecipients limits the addresses of a field. The contract limits requests;
// the original of a reply may name any number.
const maxRecipients = 50

// settle removes duplicate recipients and refuses none at all or too many.
func (s *submission) settle() error {
	s.to = without(s.to)
	s.cc = without(s.cc, s.to)
	s.bcc = without(s.bcc, s.to, s.cc)
	if len(s.to)+len(s.cc)+len(s.bcc) == 0 {
		return httpapi.Invalid("to", "leaves no recipient")
	}
	for field, of := range s.recipients() {
		if n := len(of); n > maxRecipients && s.raw == nil { // SMTP has its own limit
			return httpapi.Invalid(field, "would have %d addresses, but must have at most %d", n, maxRecipients)
		}
	}
	return nil
}

// recipients returns the lists of recipients by their fields.
func (s *submission) recipients() iter.Seq2[string, []mail.Address] {
	return func(yield func(string, []mail.Address) bool) {
		_ = yield("to", s.to) && yield("cc", s.cc) && yield("bcc", s.bcc)
	}
}

// enqueue queues a composed message. If it comes from a draft, it marks the
// draft as sent, or as scheduled if a person approves it and has time to undo that.
func (a *API) enqueue(ctx context.Context, s *submission, mail *composed) (*gen.Message, error) {
	m := a.newMessage(ctx, s, mail)
	by, d := httpapi.Caller(ctx), s.approved
	var approval store.Approval
	if d != nil {
		approval = store.Approval{DraftID: d.ID, Version: d.Version, By: by.ID, CreatedBy: d.CreatedBy}
		if !s.isDue && a.cfg.Undo > 0 && httpapi.IsPerson(by) {
			stored, err := a.store.ScheduleDraft(ctx, m, approval, a.cfg.Undo)
			return result(stored, err, wholeMessage)
		}
		if d.Status == store.DraftScheduled {
			approval.MessageID = *d.MessageID
		}
	}
	var err error
	if m.Content, err = a.contentOf(ctx, mail); err != nil {
		return nil, err
	}
	response := once(ctx, http.StatusCreated, "Message", wholeMessage)
	var stored store.Message
	if d == nil {
		stored, err = a.store.Enqueue(ctx, m, response)
	} else {
		stored, err = a.store.SendDraft(ctx, m, approval, response)
	}
	return result(stored, err, wholeMessage)
}

// message returns what the store keeps of any composed message or email, without its content.
func (s *submission) message(out *composed) store.Message {
	return store.Message{
		AccountID: s.account, TestMode: s.testMode, FromEmail: mail.FoldAddress(s.from.Email),
		Addresses: store.JSON[mail.Addresses]{V: s.addresses(&out.out.From)}, Subject: s.subject, HeaderID: out.out.HeaderID,
		Automated: out.parsed.Automated(false), Size: out.size, Recipients: recipientsOf(s),
	}
}

// newMessage converts a composed message for the store, without its content.
func (a *API) newMessage(ctx context.Context, s *submission, out *composed) *store.NewMessage {
	m := &store.NewMessage{
		Message:        s.message(out),
		SubjectFold:    foldSubject(s.subject),
		ThreadSubject:  foldSubject(reply.NormalizeSubject(s.subject)),
		JoinThread:     s.threadSeq,
		NewThread:      s.threadSeq == 0 && len(s.refs.InReplyTo)+len(s.refs.References) == 0,
		Senders:        []store.Sender{senderOf(ctx)},
		Text:           out.out.Text,
		VerifiedDomain: a.toVerify(s.inbox.Domain),
		AutoReply:      repliesToMachine(s),
	}
	m.InboxSeq, m.Direction, m.Status = s.inbox.Seq, store.DirectionOut, store.MessageQueued
	m.FromEmail, m.Refs.V = s.inbox.Address, s.refs
	if s.approved != nil && s.approved.Category != nil {
		m.Category = *s.approved.Category
	}
	return m
}

// addresses returns the addresses of the message. from may be nil.
func (s *submission) addresses(from *mail.Address) mail.Addresses {
	to, cc := s.to, s.cc
	if s.raw != nil { // the header may name others than the envelope
		to, cc = s.raw.parsed.To, s.raw.parsed.Cc
	}
	return mail.Addresses{From: from, To: to, Cc: cc, Bcc: s.bcc, ReplyTo: s.replyTo}
}

// contentOf returns the content to store for a composed message: a small one in
// the row, a large one in a blob.
func (a *API) contentOf(ctx context.Context, out *composed) (*store.Content, error) {
	parsed := out.parsed
	c := &store.Content{
		Raw: out.raw, Snippet: plaintext.Snippet(parsed.Text),
		Attachments: store.JSON[[]mail.Attachment]{V: store.NewAttachments(parsed.Attachments, a.now())},
	}
	c.Body = &store.JSON[store.Body]{V: store.Body{Text: parsed.Text, HTML: parsed.HTML}}
	if out.raw != nil {
		return c, nil
	}
	raw := out.open()
	key, sum, err := a.store.PutBlob(ctx, raw, out.size)
	c.BlobKey, c.BlobSum = &key, sum
	return c, errors.Join(err, raw.Close())
}

func recipientsOf(s *submission) []store.Recipient {
	var out []store.Recipient
	for kind, list := range s.recipients() {
		for _, a := range list {
			_, domain := cutAddress(a.Email)
			out = append(out, store.Recipient{Email: a.Email, Domain: domain, Kind: kind})
		}
	}
	return out
}

// ownHeaders are header fields that the service writes or that a request field
// sets. The headers of a request may not contain them.
var ownHeaders = map[string]bool{
	"from": true, "sender": true, "return-path": true, "bcc": true, "received": true, "message-id": true, "date": true,
	"to": true, "cc": true, "subject": true, "reply-to": true, "in-reply-to": true, "references": true, "mime-version": true,
}

func isOwnHeader(name string) bool {
	low := strings.ToLower(name)
	return ownHeaders[low] || strings.HasPrefix(low, "dkim-") || strings.HasPrefix(low, "content-") || strings.HasPrefix(low, "arc-")
}

func headersFromAPI(h gen.OptNilMailHeaders) ([][2]string, error) {
	out := make([][2]string, 0, len(h.Value))
	for name, value := range h.Value {
		if isOwnHeader(name) {
			return nil, httpapi.Invalid("headers."+name, "is set by the service")
		}
		out = append(out, [2]string{name, value})
	}
	sortHeaders(out)
	return out, nil
}
