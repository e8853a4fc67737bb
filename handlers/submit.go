package handlers

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/store"
)

// maxAttachmentBytes is what the attachments of one mail may have together,
// decoded.
const maxAttachmentBytes = 25 << 20

// submission is a mail that an inbox is to send.
type submission struct {
	inbox       store.Inbox
	kind        store.DraftKind
	source      *store.Message // that a reply or forward is of; nil for an approved draft
	to, cc, bcc []message.Address
	replyTo     []message.Address
	subject     string
	text, html  string
	refs        store.References
	threadSeq   int64 // 0: a new thread
	headers     [][2]string
	attachments []message.OutAttachment
	testMode    bool
	approved    *store.Draft // that it comes from
}

// submit is the one way that mail leaves: it applies the policy of the inbox,
// composes the mail, and queues it with the answer to an idempotent call. The
// answer is a *gen.Message or, when somebody has to approve the mail first, a
// *gen.Draft.
func (a *API) submit(ctx context.Context, s submission) (any, error) {
	if err := a.inboxWorks(s.inbox); err != nil {
		return nil, err
	}
	if s.text == "" && s.html == "" {
		return nil, errContentRequired
	}
	s.to = without(s.to)
	s.cc = without(s.cc, s.to)
	s.bcc = without(s.bcc, s.to, s.cc)
	if len(s.to)+len(s.cc)+len(s.bcc) == 0 {
		return nil, errInvalid("to", "leaves no recipient")
	}
	s.testMode = s.testMode || callerOf(ctx).Mode == store.KeyTest
	if err := a.checkPolicy(ctx, s); err != nil {
		return nil, err
	}
	mail, err := a.compose(s)
	if err != nil {
		return nil, err
	}
	if s.inbox.SendPolicy == store.PolicyApproval && s.approved == nil {
		return a.hold(ctx, s)
	}
	return a.enqueue(ctx, s, mail)
}

// enqueue queues a composed mail, and with it sends the draft that it comes
// from.
func (a *API) enqueue(ctx context.Context, s submission, mail *composed) (*gen.Message, error) {
	m, err := a.newMessage(ctx, s, mail)
	if err != nil {
		return nil, err
	}
	toAPI := func(m store.Message) (*gen.Message, error) { return messageToAPI(m, withHTML) }
	answer := once(ctx, http.StatusCreated, "Message", func(m store.Message) (any, error) { return toAPI(m) })
	var stored store.Message
	if s.approved == nil {
		stored, err = a.store.Enqueue(ctx, m, answer)
	} else {
		stored, err = a.store.SendDraft(ctx, m, store.Approval{
			DraftSeq: s.approved.Seq, DraftID: s.approved.ID, Version: s.approved.Version, By: callerOf(ctx).ID,
		}, answer)
	}
	if err != nil {
		return nil, err
	}
	return toAPI(stored)
}

// composed is a mail as it will be sent.
type composed struct {
	out    message.Outgoing
	raw    []byte
	parsed *message.Message
}

// compose writes the mail and reads it back, so that what is stored about it is
// what it says.
func (a *API) compose(s submission) (*composed, error) {
	now := a.now()
	id := store.NewID("", now)
	c := &composed{out: message.Outgoing{
		Seed: id, HeaderID: "<" + id + "@" + s.inbox.Domain + ">", Date: now.UTC().Truncate(time.Second),
		From: message.Address{Email: s.inbox.Address}, To: s.to, Cc: s.cc, ReplyTo: s.replyTo,
		Subject: s.subject, Text: s.text, HTML: s.html, InReplyTo: s.refs.InReplyTo, References: s.refs.References,
		Headers: s.headers, Attachments: s.attachments,
	}}
	if s.inbox.DisplayName != nil {
		c.out.From.Name = *s.inbox.DisplayName
	}
	if c.out.Text == "" {
		c.out.Text = message.HTMLToText(c.out.HTML)
	}
	var raw bytes.Buffer
	if _, err := c.out.WriteTo(&raw); err != nil {
		return nil, composeError(err)
	}
	c.raw = raw.Bytes()
	var err error
	if c.parsed, err = message.Parse(bytes.NewReader(c.raw), message.DefaultLimits()); err != nil {
		return nil, errInvalid("headers", "make a mail that cannot be read")
	}
	return c, nil
}

// newMessage is a composed mail as the store takes it.
func (a *API) newMessage(ctx context.Context, s submission, mail *composed) (*store.NewMessage, error) {
	content, err := a.contentOf(ctx, mail.raw, mail.parsed)
	if err != nil {
		return nil, err
	}
	return &store.NewMessage{
		Message: store.Message{
			AccountID: s.inbox.AccountID, InboxSeq: s.inbox.Seq, Direction: store.DirectionOut,
			Status: store.MessageQueued, TestMode: s.testMode, FromEmail: s.inbox.Address,
			Addresses: store.JSON[store.Addresses]{V: s.addresses(&mail.out.From)},
			Subject:   s.subject, HeaderID: mail.out.HeaderID, Refs: store.JSON[store.References]{V: s.refs},
			Automated: mail.parsed.Automated(false), Size: int64(len(mail.raw)), Content: content, Recipients: recipientsOf(s),
		},
		SubjectFold:   foldSubject(s.subject),
		ThreadSubject: foldSubject(message.NormalizeSubject(s.subject)),
		JoinThread:    s.threadSeq,
		NewThread:     s.threadSeq == 0,
	}, nil
}

// addresses are those of the mail; from may be nil.
func (s *submission) addresses(from *message.Address) store.Addresses {
	as := store.Addresses{To: toStore(s.to), Cc: toStore(s.cc), Bcc: toStore(s.bcc), ReplyTo: toStore(s.replyTo)}
	if from != nil {
		as.From = &store.Address{Name: from.Name, Email: from.Email}
	}
	return as
}

// composeError gives the field that the mail cannot carry back to the caller.
func composeError(err error) error {
	if field, ok := errors.AsType[*message.FieldError](err); ok {
		return errInvalid(field.Field, "%s", field.Reason)
	}
	return err
}

// contentOf is what is kept of a composed mail: small ones in the row, large
// ones in the blob folder.
func (a *API) contentOf(ctx context.Context, raw []byte, parsed *message.Message) (*store.Content, error) {
	c := &store.Content{Snippet: message.Snippet(parsed.Text), Attachments: store.JSON[[]store.Attachment]{V: []store.Attachment{}}}
	for _, at := range parsed.Attachments {
		c.Attachments.V = append(c.Attachments.V, store.Attachment{
			ID: store.NewID("att_", a.now()), Part: at.Part, Filename: at.Filename, ContentType: at.ContentType,
			ContentID: at.ContentID, Inline: at.Inline, Size: at.Size,
		})
	}
	if len(raw) >= store.BodyInRow {
		c.Body = &store.JSON[store.Body]{V: store.Body{Text: parsed.Text, HTML: parsed.HTML}}
	}
	if len(raw) <= store.RawInRow {
		c.Raw = raw
		return c, nil
	}
	key, err := a.store.PutBlob(ctx, bytes.NewReader(raw), int64(len(raw)))
	c.BlobKey = &key
	return c, err
}

func toStore(in []message.Address) []store.Address {
	out := make([]store.Address, 0, len(in))
	for _, a := range in {
		out = append(out, store.Address{Name: a.Name, Email: a.Email})
	}
	return out
}

func recipientsOf(s submission) []store.Recipient {
	var out []store.Recipient
	add := func(kind string, list []message.Address) {
		for _, a := range list {
			at := strings.LastIndexByte(a.Email, '@')
			out = append(out, store.Recipient{Email: a.Email, Domain: strings.ToLower(a.Email[at+1:]), Kind: kind})
		}
	}
	add("to", s.to)
	add("cc", s.cc)
	add("bcc", s.bcc)
	return out
}

// ownHeaders are the fields that mail systems write, or that have a field of
// the request: the headers of a request may not hold them.
var ownHeaders = map[string]bool{
	"from": true, "sender": true, "return-path": true, "bcc": true, "received": true, "message-id": true, "date": true,
	"to": true, "cc": true, "subject": true, "reply-to": true, "in-reply-to": true, "references": true, "mime-version": true,
}

func headersFromAPI(h gen.OptMailHeaders) ([][2]string, error) {
	out := make([][2]string, 0, len(h.Value))
	for name, value := range h.Value {
		low := strings.ToLower(name)
		if ownHeaders[low] || strings.HasPrefix(low, "dkim-") || strings.HasPrefix(low, "content-") || strings.HasPrefix(low, "arc-") {
			return nil, errInvalid("headers."+name, "is written by the service")
		}
		if !cleanText(value) || strings.ContainsAny(value, "\r\n") {
			return nil, errInvalid("headers."+name, "may not hold line breaks")
		}
		out = append(out, [2]string{name, value})
	}
	sortHeaders(out)
	return out, nil
}

// attachmentsFromAPI checks what the contract cannot: the size of all together,
// and null for bytes.
func attachmentsFromAPI(in gen.MessageAttachmentInputs) ([]message.OutAttachment, error) {
	total := 0
	out := make([]message.OutAttachment, 0, len(in))
	for i, at := range in {
		if at.Content == nil {
			return nil, errInvalid(placeOf("attachments", i, "content"), "must be base64 text")
		}
		total += len(at.Content)
		name := at.Filename
		if err := checkName(placeOf("attachments", i, "filename"), &name); err != nil {
			return nil, err
		}
		out = append(out, message.OutAttachment{Filename: name, ContentType: at.ContentType.Or(mediaType(name)), Content: at.Content})
	}
	return out, checkAttachmentSize(total)
}

func checkAttachmentSize(total int) error {
	if total > maxAttachmentBytes {
		return &apiError{
			status: http.StatusBadRequest, code: gen.ErrorCodeInvalidRequest, param: "attachments",
			message: "attachments may have at most 25 MB together, decoded",
		}
	}
	return nil
}
