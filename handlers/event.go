package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"github.com/go-faster/jx"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/plaintext"
	"github.com/postroom/postroom/internal/stream"
	"github.com/postroom/postroom/store"
)

// EventBody returns a function that renders an event as the JSON that the
// contract calls Event, with the whole resource as it was at the event.
// store.ErrNotFound means that the resource has been deleted.
func EventBody(s *store.Store) func(ctx context.Context, e store.Event) ([]byte, error) {
	mail := &eventMail{store: s}
	return func(ctx context.Context, e store.Event) ([]byte, error) { return tellOf(ctx, mail, e) }
}

func tellOf(ctx context.Context, mail *eventMail, e store.Event) ([]byte, error) {
	switch e.Type {
	case store.EventDraftCreated, store.EventDraftPending, store.EventDraftSent, store.EventDraftRejected:
		return draftEvent(ctx, mail.store, e)
	case store.EventMessageBlocked:
		return blockedEvent(e)
	case store.EventWebhookTest:
		return webhookEvent(ctx, mail.store, e)
	case store.EventDomainDegraded:
		return domainEvent(e)
	case store.EventUnsubscribed, store.EventSuppressionCreated, store.EventSuppressionDeleted:
		return suppressionEvent(e)
	}
	if ofEmail(e) {
		return emailEvent(ctx, mail, e)
	}
	return messageEvent(ctx, mail, e)
}

// eventExtra holds the fields of an event besides those of its resource.
type eventExtra struct {
	Recipient  string       `json:"recipient,omitempty"`
	BounceType string       `json:"bounce_type,omitempty"`
	Bounce     *eventBounce `json:"bounce,omitempty"`
	Bot        *bool        `json:"bot,omitempty"`
	Link       *string      `json:"link,omitempty"`
	Truncated  bool         `json:"truncated,omitempty"`
	// DegradedRecords are the DNS records that a domain has lost.
	DegradedRecords json.RawMessage `json:"degraded_records,omitempty"`
}

type eventBounce struct {
	SubType      *string `json:"sub_type"`
	SMTPCode     *int    `json:"smtp_code"`
	EnhancedCode *string `json:"enhanced_code"`
	Diagnostic   *string `json:"diagnostic"`
}

func messageEvent(ctx context.Context, mail *eventMail, e store.Event) ([]byte, error) {
	data, extra, err := mailEvent(e)
	if err != nil {
		return nil, err
	}
	m, err := mail.message(ctx, e)
	if err != nil {
		return nil, err
	}
	m.AsOf(e, data)
	v := textMessage(m)
	if e.Type == store.EventMessageQuarantined {
		v = withoutContent(m)
	}
	return cutBody(e, v.Encode, extra, &v.Truncated, &v.Text, &v.ExtractedText)
}

// withoutContent returns a message as the events of quarantine show it: of what the
// sender wrote, only the address.
func withoutContent(m store.Message) *gen.Message {
	bare := m
	bare.Subject, bare.Content, bare.HeaderID, bare.Refs, bare.Tag = "", nil, "", store.JSON[store.References]{}, nil
	bare.Addresses.V = mail.Addresses{}
	if from := m.Addresses.V.From; from != nil {
		bare.Addresses.V.From = &mail.Address{Email: from.Email}
	}
	return messageToAPI(bare, summary)
}

func emailEvent(ctx context.Context, mail *eventMail, e store.Event) ([]byte, error) {
	data, extra, err := mailEvent(e)
	if err != nil {
		return nil, err
	}
	m, err := mail.email(ctx, e)
	if err != nil {
		return nil, err
	}
	m.AsOf(e, data)
	v := emailToAPI(m)
	v.HTML = gen.NilString{Null: true}
	return cutBody(e, v.Encode, extra, nil, &v.Text)
}

// mailEvent reads the stored data of an event about a message or an email.
func mailEvent(e store.Event) (data store.EventData, extra eventExtra, err error) {
	if e.MessageID == nil {
		return data, extra, fmt.Errorf("mail of %s: %w", e.ID, store.ErrNotFound)
	}
	if err := json.Unmarshal([]byte(e.Data), &data); err != nil {
		return data, extra, fmt.Errorf("read %s: %w", e.ID, err)
	}
	extra.Recipient = data.Recipient
	switch e.Type {
	case store.EventMessageBounced, store.EventEmailBounced:
		extra.BounceType, extra.Bounce = bounceOf(data)
	case store.EventEmailClicked:
		extra.Bot, extra.Link = &data.Bot, &data.Link
	case store.EventEmailOpened:
		extra.Bot = &data.Bot
	}
	return data, extra, nil
}

// cutBody is eventBody with the texts of the resource cut to fit into
// maxEventBody. If that shortens a text, it sets truncated or, for resources
// without that field, the field of the event.
func cutBody(e store.Event, resource func(*jx.Encoder), extra eventExtra, truncated *bool, texts ...*gen.NilString) ([]byte, error) {
	body, err := eventBody(e, resource, extra)
	if err != nil || len(body) <= maxEventBody {
		return body, err
	}
	if truncated == nil {
		truncated = &extra.Truncated
	}
	before := *truncated
	whole := mapped(texts, func(text *gen.NilString) string { return text.Value })
	cut := func(size int) bool { // reports whether the body is too large with texts of this size
		*truncated = before
		for i, text := range texts {
			text.Value = plaintext.Truncate(whole[i], size)
			*truncated = *truncated || text.Value != whole[i]
		}
		body, err = eventBody(e, resource, extra)
		return len(body) > maxEventBody
	}
	more := sort.Search(maxEventBody, func(more int) bool { return cut(minEventText + more + 1) })
	cut(minEventText + more)
	return body, err
}

func draftEvent(ctx context.Context, s *store.Store, e store.Event) ([]byte, error) {
	var data store.DraftEventData
	if err := json.Unmarshal([]byte(e.Data), &data); err != nil {
		return nil, fmt.Errorf("read %s: %w", e.ID, err)
	}
	d, err := s.Draft(ctx, e.AccountID, data.DraftID)
	if err != nil {
		return nil, err
	}
	d.Status = data.Status
	v := draftToAPI(d, withText)
	return cutBody(e, v.Encode, eventExtra{}, nil, &v.Text)
}

// blockedEvent renders a refused message. Only this record of it exists.
func blockedEvent(e store.Event) ([]byte, error) {
	var data store.BlockedEventData
	if err := json.Unmarshal([]byte(e.Data), &data); err != nil {
		return nil, fmt.Errorf("read %s: %w", e.ID, err)
	}
	orNull := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	return plainEvent(e, map[string]any{"object": "blocked_message", "from": orNull(data.From), "list_id": orNull(data.ListID)})
}

// plainEvent renders an event whose data exists only in the event.
func plainEvent(e store.Event, data map[string]any) ([]byte, error) {
	object, err := json.Marshal(data)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", e.ID, err)
	}
	return eventBody(e, func(w *jx.Encoder) { w.Raw(object) }, eventExtra{})
}

func suppressionEvent(e store.Event) ([]byte, error) {
	var data store.SuppressionEventData
	if err := json.Unmarshal([]byte(e.Data), &data); err != nil {
		return nil, fmt.Errorf("read %s: %w", e.ID, err)
	}
	if e.Type == store.EventUnsubscribed {
		return plainEvent(e, map[string]any{"object": "unsubscribed", "email": data.Email, "contact_id": data.ContactID, "email_id": data.Source})
	}
	v := suppressionToAPI(store.Suppression{
		ID: data.ID, Email: data.Email, Reason: data.Reason, Category: data.Category, Source: data.Source, CreatedAt: data.CreatedAt,
	})
	return eventBody(e, v.Encode, eventExtra{})
}

func webhookEvent(ctx context.Context, s *store.Store, e store.Event) ([]byte, error) {
	var data store.WebhookEventData
	if err := json.Unmarshal([]byte(e.Data), &data); err != nil {
		return nil, fmt.Errorf("read %s: %w", e.ID, err)
	}
	w, err := s.Webhook(ctx, e.AccountID, data.WebhookID)
	if err != nil {
		return nil, err
	}
	return eventBody(e, webhookToAPI(w).Encode, eventExtra{})
}

// domainEvent renders the domain at the time of the event. The lost records may
// be back by now.
func domainEvent(e store.Event) ([]byte, error) {
	var data store.DomainEventData
	if err := json.Unmarshal([]byte(e.Data), &data); err != nil {
		return nil, fmt.Errorf("read %s: %w", e.ID, err)
	}
	d := &gen.Domain{
		Object: "domain", ID: data.DomainID, Domain: data.Domain, Status: string(data.Status), DNSRecords: recordsToAPI(data.Records),
		CreatedAt: data.CreatedAt.Time, VerifiedAt: nilTime(data.VerifiedAt),
	}
	var lost jx.Encoder
	lost.ArrStart()
	for _, r := range recordsToAPI(data.Degraded) {
		r.Encode(&lost)
	}
	lost.ArrEnd()
	return eventBody(e, d.Encode, eventExtra{DegradedRecords: lost.Bytes()})
}

// eventBody wraps a resource in the event envelope.
func eventBody(e store.Event, resource func(*jx.Encoder), extra eventExtra) ([]byte, error) {
	more, err := json.Marshal(extra)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", e.ID, err)
	}
	var data jx.Encoder
	resource(&data)
	object := bytes.TrimSuffix(data.Bytes(), []byte("}"))
	if len(more) > len("{}") {
		object = append(append(object, ','), more[1:]...)
	} else {
		object = append(object, '}')
	}
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false)
	err = enc.Encode(eventEnvelope{e.ID, "event", e.Type, e.CreatedAt.Format(eventTime), e.TestMode, e.InboxID, object})
	return bytes.TrimSuffix(body.Bytes(), []byte("\n")), err
}

// eventEnvelope holds the fields that all events have.
type eventEnvelope struct {
	ID        string          `json:"id"`
	Object    string          `json:"object"`
	Type      store.EventType `json:"type"`
	CreatedAt string          `json:"created_at"`
	TestMode  bool            `json:"test_mode"`
	InboxID   *string         `json:"inbox_id"`
	Data      json.RawMessage `json:"data"`
}

// eventTime is the time format of the API.
const eventTime = "2006-01-02T15:04:05.000Z07:00"

// bouncedBy matches the codes at the start of an SMTP reply, as the queue
// stores it.
var bouncedBy = regexp.MustCompile(`^([245]\d\d)(?: ([245]\.\d{1,3}\.\d{1,3}))?(?: |$)`)

// bounceOf returns why a recipient bounced.
func bounceOf(data store.EventData) (kind string, b *eventBounce) {
	b = &eventBounce{}
	if data.Response != "" {
		b.Diagnostic = &data.Response
	}
	if m := bouncedBy.FindStringSubmatch(data.Response); m != nil {
		code, _ := strconv.Atoi(m[1]) // three digits
		b.SMTPCode = &code
		if m[2] != "" {
			b.EnhancedCode = &m[2]
			b.SubType = subTypeOf(m[2])
		}
	}
	if data.Code != 0 {
		b.SMTPCode = &data.Code
	}
	if data.Enhanced != "" {
		b.EnhancedCode = &data.Enhanced
	}
	if data.Reason != "" {
		b.SubType = &data.Reason
	}
	if data.Soft {
		return "soft", b
	}
	return "hard", b
}

// subTypes maps enhanced status codes (RFC 3463), without their class, to
// bounce subtypes.
var subTypes = map[string]string{
	".1.1": "no_mailbox", ".1.2": "no_domain", ".1.10": "no_domain", ".2.1": "mailbox_disabled", ".2.2": "mailbox_full",
	".3.4": "too_large", ".2.3": "too_large", ".7.1": "refused", ".7.26": "not_authenticated",
}

func subTypeOf(enhanced string) *string {
	if t, ok := subTypes[enhanced[1:]]; ok {
		return &t
	}
	return nil
}

// eventMail finds the messages and emails of events, either loaded in advance
// or one by one.
type eventMail struct {
	store    *store.Store
	messages map[int64]store.Message // by number; those that were read before
	emails   map[int64]store.Email
}

// readMail loads the messages and emails of events. Missing ones are read
// later.
func readMail(ctx context.Context, s *store.Store, events []store.Event) (*eventMail, error) {
	var messages, emails []int64
	for _, e := range events {
		switch {
		case e.MessageSeq == nil:
		case ofEmail(e):
			emails = append(emails, *e.MessageSeq)
		default:
			messages = append(messages, *e.MessageSeq)
		}
	}
	m := &eventMail{store: s}
	var inMessages, inEmails error
	m.messages, inMessages = s.MessagesOf(ctx, messages)
	m.emails, inEmails = s.EmailsOf(ctx, emails)
	return m, errors.Join(inMessages, inEmails)
}

// ofEmail reports whether an event is about an email.
func ofEmail(e store.Event) bool { return strings.HasPrefix(string(e.Type), "email.") }

// message returns the message of an event. The event must have one.
func (m *eventMail) message(ctx context.Context, e store.Event) (store.Message, error) {
	if one, ok := m.messages[*e.MessageSeq]; ok {
		return one, nil
	}
	return m.store.AnyMessage(ctx, e.AccountID, *e.MessageID)
}

func (m *eventMail) email(ctx context.Context, e store.Event) (store.Email, error) {
	if one, ok := m.emails[*e.MessageSeq]; ok {
		return one, nil
	}
	return m.store.Email(ctx, e.AccountID, nil, *e.MessageID)
}

// EventFrames returns a function that renders events as stream frames: the id,
// the type, and the result of EventBody on one line.
func EventFrames(s *store.Store) func(ctx context.Context, events []store.Event) []stream.Rendered {
	return func(ctx context.Context, events []store.Event) []stream.Rendered {
		frames := make([]stream.Rendered, len(events))
		mail, err := readMail(ctx, s, events)
		for i, e := range events {
			frames[i] = stream.Rendered{ID: e.ID, Err: err}
			if err != nil {
				continue
			}
			data, err := tellOf(ctx, mail, e)
			frames[i].Err = err
			if err == nil {
				frames[i].Frame = frame(e.ID, string(e.Type), data)
			}
		}
		return frames
	}
}
