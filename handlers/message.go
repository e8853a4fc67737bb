package handlers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/mime"
	"github.com/postroom/postroom/internal/search"
	"github.com/postroom/postroom/store"
)

var errExpired = &httpapi.Error{Status: http.StatusGone, Code: gen.ErrorCodeMessageExpired, Message: "the content of this message has been deleted"}

// ListInboxMessages implements GET /v1/inboxes/{inbox_id}/messages.
func (a *API) ListInboxMessages(ctx context.Context, p gen.ListInboxMessagesParams) (*gen.MessageList, error) {
	in, err := a.inboxOf(ctx, p.InboxID)
	if err != nil {
		return nil, err
	}
	f := store.MessageFilter{
		AccountID: in.AccountID, InboxSeq: in.Seq, Direction: store.Direction(p.Direction.Or("")),
		FromLike: fromLike(p.From), Subject: foldSubject(p.Subject.Or("")), ThreadID: p.ThreadID.Or(""), Label: labelOf(p.Label), Since: sinceOf(p.Since), Text: textQuery(p.Q), WithText: p.Include.Set,
		Safety: mail.SafetyLevel(p.Safety.Value),
	}
	return a.listMessages(ctx, f, pageOf(p.Limit, p.Cursor))
}

// ListMessages implements GET /v1/messages.
func (a *API) ListMessages(ctx context.Context, p gen.ListMessagesParams) (*gen.MessageList, error) {
	k := httpapi.Caller(ctx)
	if p.Status.Value == gen.MessageStatusQuarantined && !httpapi.HasScope(k.Scopes.V, "admin") {
		return nil, errNeedsAdmin("status", "status=quarantined needs the scope admin, which this key lacks")
	}
	f := store.MessageFilter{
		AccountID: k.AccountID, InboxIDs: httpapi.Visible(k), Direction: store.Direction(p.Direction.Or("")),
		FromLike: fromLike(p.From), Subject: foldSubject(p.Subject.Or("")), ThreadID: p.ThreadID.Or(""), Label: labelOf(p.Label), Since: sinceOf(p.Since), Text: textQuery(p.Q), WithText: p.Include.Set,
		Status: store.MessageStatus(p.Status.Or("")), ToLike: fromLike(p.To), Until: sinceOf(p.Until), Safety: mail.SafetyLevel(p.Safety.Value),
	}
	if id, ok := p.InboxID.Get(); ok {
		in, err := a.filteredInbox(ctx, id)
		if err != nil {
			return nil, err
		}
		f.InboxSeq = in.Seq
	}
	return a.listMessages(ctx, f, pageOf(p.Limit, p.Cursor))
}

func (a *API) listMessages(ctx context.Context, f store.MessageFilter, p store.Page) (*gen.MessageList, error) {
	l, err := a.store.ListMessages(ctx, f, p)
	d := summary
	if f.WithText {
		d = withText
	}
	return listToAPI[gen.MessageList](l, err, func(m store.Message) *gen.Message { return messageToAPI(m, d) })
}

// GetMessage implements GET /v1/messages/{message_id}.
func (a *API) GetMessage(ctx context.Context, p gen.GetMessageParams) (out gen.MessageOrCode, err error) {
	if err := checkView(ctx, p.View); err != nil {
		return out, err
	}
	find := a.messageOf
	if !p.View.Set && httpapi.HasScope(httpapi.Caller(ctx).Scopes.V, "admin") {
		find = a.anyMessageOf
	}
	m, err := find(ctx, p.MessageID)
	if err != nil {
		return out, err
	}
	if p.View.Set {
		out.SetCodeResult(*codeResult(&m, waitNext(&m, gen.OptString{}, m.CreatedAt.Time)))
		return out, nil
	}
	v := wholeMessage(m)
	if v.Headers, err = a.headersOf(ctx, m); err != nil {
		return out, err
	}
	if a.cfg.LinkScan != nil {
		v.LinkScan = a.cfg.LinkScan(m.ID)
	}
	out.SetMessage(*v)
	return out, nil
}

// DeleteMessage implements DELETE /v1/messages/{message_id}.
func (a *API) DeleteMessage(ctx context.Context, p gen.DeleteMessageParams) (*gen.DeletedMessage, error) {
	m, err := a.anyMessageOf(ctx, p.MessageID)
	if err != nil {
		return nil, err
	}
	if err := a.store.DeleteMessage(ctx, m.AccountID, m.ID); err != nil {
		return nil, err
	}
	return &gen.DeletedMessage{Object: "message", ID: m.ID, Deleted: true}, nil
}

// fromLike returns the filter on From: an address or a wildcard pattern.
func fromLike(from gen.OptString) string {
	if s := from.Or(""); s != "" {
		return mail.LikePattern(s)
	}
	return ""
}

// foldSubject makes subjects comparable regardless of case.
func foldSubject(s string) string { return strings.ToLower(s) }

// textQuery returns the query for subject and body, or nil for no query.
func textQuery(q gen.OptString) *store.TextQuery {
	if s, ok := q.Get(); ok {
		return search.Parse(s)
	}
	return nil
}

func sinceOf(since gen.OptDateTime) *store.Time {
	if t, ok := since.Get(); ok {
		st := store.NewTime(t)
		return &st
	}
	return nil
}

// detail says how much of the content of a message a response includes.
type detail int

const (
	summary  detail = iota // no text
	withText               // and the text and the reply text
	withHTML               // and the HTML
)

func wholeMessage(m store.Message) *gen.Message { return messageToAPI(m, withHTML) }

func textMessage(m store.Message) *gen.Message { return messageToAPI(m, withText) }

func messageToAPI(m store.Message, d detail) *gen.Message {
	a := m.Addresses.V
	out := &gen.Message{
		Object: "message", ID: m.ID, InboxID: m.InboxID, ThreadID: m.ThreadID, Direction: string(m.Direction), Status: string(m.Status),
		Expired: m.ExpiredAt != nil, TestMode: m.TestMode, From: gen.NilMailAddress{Null: true},
		To: addressesToAPI(a.To), Cc: addressesToAPI(a.Cc), Bcc: addressesToAPI(a.Bcc), ReplyTo: addressesToAPI(a.ReplyTo),
		Subject: m.Subject, Automated: m.Automated, Truncated: m.Truncated, Tag: nilString(m.Tag), DeliveredTo: nilString(m.DeliveredTo), Attachments: []gen.Attachment{}, Recipients: mapped(m.Recipients, recipientToAPI),
		RfcMessageID: emptyIsNull(m.HeaderID), InReplyTo: orEmpty(m.Refs.V.InReplyTo), References: orEmpty(m.Refs.V.References),
		Labels: orEmpty(m.Labels.V), ReadAt: nilTime(m.ReadAt), Size: m.Size, ReceivedAt: gen.NilDateTime{Null: true}, SentAt: nilTime(m.SentAt), DeliveredAt: nilTime(m.DeliveredAt),
		CreatedAt: m.CreatedAt.Time,
		Snippet:   gen.NilString{Null: true}, Text: gen.NilString{Null: true}, HTML: gen.NilString{Null: true},
		ExtractedText: gen.NilString{Null: true}, Extracted: gen.NilExtracted{Null: true}, Calendar: gen.NilCalendar{Null: true}, Auth: gen.NilAuthResults{Null: true}, Safety: gen.NilSafety{Null: true},
	}
	if a.From != nil {
		out.From = gen.NewNilMailAddress(addressToAPI(*a.From))
	}
	if m.Direction == store.DirectionIn {
		out.ReceivedAt = gen.NewNilDateTime(m.CreatedAt.Time)
	}
	if m.ExpiredAt == nil && m.Content != nil {
		contentToAPI(out, *m.Content, d)
	}
	return out
}

// contentToAPI sets the fields that retention deletes.
func contentToAPI(out *gen.Message, c store.Content, d detail) {
	received := out.Direction == string(store.DirectionIn)
	out.Snippet = gen.NewNilString(c.Snippet)
	out.Attachments = mapped(c.Attachments.V, attachmentToAPI)
	if d != summary && c.Body != nil {
		out.Text = gen.NewNilString(c.Body.V.Text)
		if received {
			out.ExtractedText = out.Text
		}
		if c.Body.V.Reply != nil {
			out.ExtractedText = gen.NewNilString(*c.Body.V.Reply)
		}
		if d == withHTML {
			out.HTML = emptyIsNull(c.Body.V.HTML)
		}
	}
	if !received {
		return
	}
	if c.Extracted != nil {
		x := c.Extracted.V
		out.Extracted = gen.NewNilExtracted(gen.Extracted{
			Otp: nilString(x.OTP), Codes: orEmpty(x.Codes), Links: orEmpty(x.Links), ActionLink: nilString(x.ActionLink),
		})
		if d != summary {
			out.Calendar = calendarToAPI(x.Calendar)
		}
	}
	out.Auth = authToAPI(c)
	if c.Safety != nil {
		out.Safety = gen.NewNilSafety(safetyToAPI(c.Safety.V))
	}
}

func safetyToAPI(s mail.Safety) gen.Safety {
	return gen.Safety{
		Level: string(s.Level), HiddenText: emptyIsNull(s.HiddenText), TextDiffersFromHTML: s.TextDiffers, FirstContact: s.FirstContact,
		InvisibleCharacters: gen.InvisibleCharacters{Count: s.Invisible.Count, Kinds: orEmpty(s.Invisible.Kinds)},
		LookAlike:           emptyIsNull(s.LookAlike), ReplyToDiffers: s.ReplyToDiffers, Unauthenticated: s.Unauthenticated, Automated: s.Automated,
		LinksLeadElsewhere: mapped(s.Links, func(l mail.MisleadingLink) gen.MisleadingLink {
			return gen.MisleadingLink{Says: l.Says, URL: l.URL}
		}),
	}
}

func authToAPI(c store.Content) gen.NilAuthResults {
	if c.Auth == nil {
		return gen.NilAuthResults{Null: true}
	}
	r := c.Auth.V
	return gen.NewNilAuthResults(gen.AuthResults{
		Spf: r.SPF, Dkim: r.DKIM, Dmarc: r.DMARC, Internal: emptyIsNull(r.Internal), InternalAccount: emptyIsNull(r.Account),
	})
}

func recipientToAPI(r store.Recipient) gen.Recipient {
	return gen.Recipient{
		Email: r.Email, Kind: r.Kind, Status: string(r.Status), Attempts: r.Attempts, LastResponse: nilString(r.LastResponse),
		SentAt: nilTime(r.SentAt), DeliveredAt: nilTime(r.DeliveredAt), BouncedAt: nilTime(r.BouncedAt),
	}
}

func attachmentToAPI(at mail.Attachment) gen.Attachment {
	return gen.Attachment{
		ID: at.ID, Filename: attachmentName(at), ContentType: at.ContentType, Size: at.Size, Inline: at.Inline, ContentID: emptyIsNull(at.ContentID),
	}
}

func addressToAPI(a mail.Address) gen.MailAddress {
	return gen.MailAddress{Email: a.Email, Name: emptyIsNull(a.Name)}
}

func addressesToAPI(as []mail.Address) []gen.MailAddress {
	return mapped(as, addressToAPI)
}

func orEmpty(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

// messageOf returns the message if the caller can see it and it is not in
// quarantine.
func (a *API) messageOf(ctx context.Context, id string) (store.Message, error) {
	m, err := a.anyMessageOf(ctx, id)
	if err == nil && m.Status == store.MessageQuarantined {
		return store.Message{}, fmt.Errorf("message: %w", store.ErrNotFound)
	}
	return m, err
}

// anyMessageOf is messageOf for messages in quarantine too.
func (a *API) anyMessageOf(ctx context.Context, id string) (store.Message, error) {
	k := httpapi.Caller(ctx)
	m, err := a.store.AnyMessage(ctx, k.AccountID, id)
	if err != nil {
		return m, err
	}
	if !sees(k, m.InboxID) {
		return store.Message{}, fmt.Errorf("message: %w", store.ErrNotFound)
	}
	return m, nil
}

// headersOf returns the header of a received message with our own
// Authentication-Results on top and without forged ones that claim our name
// (RFC 8601 section 5). It returns nil, which is null, for sent messages and
// deleted content.
func (a *API) headersOf(ctx context.Context, m store.Message) ([]gen.HeaderField, error) {
	if m.Direction != store.DirectionIn || m.Content == nil {
		return nil, nil
	}
	raw, err := a.openRaw(ctx, m)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil // deleted just now
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = raw.Close() }()
	fields, _, err := mime.ReadHeader(raw, mail.DefaultLimits())
	if err != nil {
		return nil, err
	}
	out := make([]gen.HeaderField, 0, len(fields)+1)
	ours := []string{a.cfg.Hostname}
	if m.Content.Auth != nil && m.Content.Auth.V.Field != "" {
		value := strings.ReplaceAll(m.Content.Auth.V.Field, "\r\n\t", " ")
		host, _, _ := strings.Cut(value, ";")
		ours = append(ours, host) // the host name at that time
		out = append(out, gen.HeaderField{Name: "Authentication-Results", Value: value})
	}
	for _, f := range fields {
		if !forgedResults(f, ours) {
			out = append(out, gen.HeaderField{Name: string(f.Name), Value: f.Text()})
		}
	}
	return out, nil
}

// openRaw opens the raw message, which the row may contain.
func (a *API) openRaw(ctx context.Context, m store.Message) (io.ReadCloser, error) {
	if m.Content.Raw != nil {
		return io.NopCloser(bytes.NewReader(m.Content.Raw)), nil
	}
	return a.store.Raw(ctx, m.Seq)
}

// forgedResults reports whether a field claims authentication results under one
// of our names, either in its raw form or as shown.
func forgedResults(f mime.Field, ours []string) bool {
	if !f.Is(mail.AuthenticationResults) {
		return false
	}
	return slices.ContainsFunc(ours, func(host string) bool {
		return mail.ClaimsHost(string(f.Value()), host) || mail.ClaimsHost(f.Text(), host)
	})
}

// keptMessage is messageOf for requests that need the content of the message.
func (a *API) keptMessage(ctx context.Context, id string) (store.Message, error) {
	m, err := a.messageOf(ctx, id)
	if err == nil && m.ExpiredAt != nil {
		err = errExpired
	}
	return m, err
}
