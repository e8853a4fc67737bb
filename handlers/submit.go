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
	to, cc, bcc []message.Address
	replyTo     []message.Address
	subject     string
	text, html  string
	refs        store.References
	threadSeq   int64 // 0: a new thread
	headers     gen.OptMailHeaders
	attachments []message.OutAttachment
}

// submit is the one way that mail leaves: it applies the policy of the inbox,
// composes the mail, and queues it with the answer to an idempotent call.
func (a *API) submit(ctx context.Context, s submission) (*gen.Message, error) {
	if err := a.maySend(s.inbox); err != nil {
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
	m, err := a.compose(ctx, s)
	if err != nil {
		return nil, err
	}
	toAPI := func(m store.Message) (*gen.Message, error) { return messageToAPI(m, withHTML) }
	stored, err := a.store.Enqueue(ctx, m, once(ctx, "Message", func(m store.Message) (any, error) { return toAPI(m) }))
	if err != nil {
		return nil, err
	}
	return toAPI(stored)
}

// maySend applies what the inbox's state and policy say.
func (a *API) maySend(in store.Inbox) error {
	switch {
	case in.Status == store.InboxSuspended:
		return errForbidden(gen.ErrorCodeSendingPaused, "this inbox is suspended")
	case in.Expired(store.NewTime(a.now())):
		return errForbidden(gen.ErrorCodeInboxExpired, "this inbox has expired")
	case in.SendPolicy != store.PolicyOpen:
		return errNotImplemented
	}
	return nil
}

// compose writes the mail and reads it back, so that what is stored about it is
// what it says.
func (a *API) compose(ctx context.Context, s submission) (*store.NewMessage, error) {
	now := a.now()
	id := store.NewID("", now)
	out := message.Outgoing{
		Seed: id, HeaderID: "<" + id + "@" + s.inbox.Domain + ">", Date: now.UTC().Truncate(time.Second),
		From: message.Address{Email: s.inbox.Address}, To: s.to, Cc: s.cc, ReplyTo: s.replyTo,
		Subject: s.subject, Text: s.text, HTML: s.html, InReplyTo: s.refs.InReplyTo, References: s.refs.References,
		Attachments: s.attachments,
	}
	if s.inbox.DisplayName != nil {
		out.From.Name = *s.inbox.DisplayName
	}
	if out.Text == "" {
		out.Text = message.HTMLToText(out.HTML)
	}
	var err error
	if out.Headers, err = extraHeaders(s.headers); err != nil {
		return nil, err
	}
	var raw bytes.Buffer
	if _, err := out.WriteTo(&raw); err != nil {
		return nil, composeError(err)
	}
	parsed, err := message.Parse(bytes.NewReader(raw.Bytes()), message.DefaultLimits())
	if err != nil {
		return nil, errInvalid("headers", "make a mail that cannot be read")
	}
	content, err := a.contentOf(ctx, raw.Bytes(), parsed)
	if err != nil {
		return nil, err
	}
	m := &store.NewMessage{
		Message: store.Message{
			AccountID: s.inbox.AccountID, InboxSeq: s.inbox.Seq, Direction: store.DirectionOut,
			Status: store.MessageQueued, TestMode: callerOf(ctx).Mode == store.KeyTest, FromEmail: s.inbox.Address,
			Addresses: store.JSON[store.Addresses]{V: store.Addresses{
				From: &store.Address{Name: out.From.Name, Email: out.From.Email},
				To:   toStore(s.to), Cc: toStore(s.cc), Bcc: toStore(s.bcc), ReplyTo: toStore(s.replyTo),
			}},
			Subject: s.subject, HeaderID: out.HeaderID, Refs: store.JSON[store.References]{V: s.refs},
			Automated: parsed.Automated(false), Size: int64(raw.Len()), Content: content, Recipients: recipientsOf(s),
		},
		SubjectFold:   foldSubject(s.subject),
		ThreadSubject: foldSubject(message.NormalizeSubject(s.subject)),
		JoinThread:    s.threadSeq,
		NewThread:     s.threadSeq == 0,
	}
	return m, nil
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

func extraHeaders(h gen.OptMailHeaders) ([][2]string, error) {
	var out [][2]string
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
