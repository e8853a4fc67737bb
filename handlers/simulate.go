package handlers

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/compose"
	"github.com/postroom/postroom/store"
)

// Incoming receives messages.
type Incoming interface {
	// Reaches reports whether mail to an address is delivered to the inbox.
	Reaches(ctx context.Context, in store.Inbox, rcpt string) (bool, error)
	// Simulate stores a message in an inbox as if it had been received, marked
	// as test mode. once caches the response of an idempotent call. The error
	// for an unacceptable message is a *message.FieldError for the field raw.
	Simulate(ctx context.Context, in store.Inbox, raw io.Reader, once *store.Once) (store.Message, error)
}

// SimulateMessage implements POST /v1/inboxes/{inbox_id}/simulate.
func (a *API) SimulateMessage(ctx context.Context, req *gen.MessageSimulate, p gen.SimulateMessageParams) (*gen.Message, error) {
	in, err := a.inboxOf(ctx, p.InboxID)
	if err != nil {
		return nil, err
	}
	if err := in.Works(store.NewTime(a.now())); err != nil {
		return nil, err
	}
	raw, err := a.simulated(in, req)
	if err != nil {
		return nil, err
	}
	m, err := a.cfg.Incoming.Simulate(ctx, in, raw, once(ctx, http.StatusCreated, "Message", wholeMessage))
	return result(m, composeError(err), wholeMessage)
}

// simulated returns the message that a request describes or contains.
func (a *API) simulated(in store.Inbox, req *gen.MessageSimulate) (io.Reader, error) {
	if raw, ok := req.Raw.Get(); ok {
		if field := besideRaw(req); field != "" {
			return nil, httpapi.Invalid(field, "cannot be combined with raw, which is a complete message")
		}
		return strings.NewReader(wireLines(raw)), nil
	}
	from, ok := req.From.Get()
	if !ok {
		return nil, httpapi.Invalid("from", "is required unless raw is present")
	}
	sender, err := addressFromAPI("from", from)
	if err != nil {
		return nil, err
	}
	now := a.now()
	id := store.NewLongID("", now)
	out := compose.Outgoing{
		Seed: id, HeaderID: "<" + id + "@" + in.Domain + ">", Date: now.UTC().Truncate(time.Second), From: sender,
		To: []mail.Address{{Email: in.Address}}, Subject: req.Subject.Or(""), Text: req.Text.Or(""), HTML: req.HTML.Or(""),
	}
	var raw strings.Builder
	if _, err := out.WriteTo(&raw); err != nil {
		return nil, composeError(err)
	}
	return strings.NewReader(raw.String()), nil
}

// besideRaw returns a field that cannot be combined with raw, or "".
func besideRaw(req *gen.MessageSimulate) string {
	_, from := req.From.Get()
	_, text := req.Text.Get()
	_, html := req.HTML.Get()
	switch {
	case from: // a message by its fields
		return "raw"
	case req.Subject.Set:
		return "subject"
	case text:
		return "text"
	case html:
		return "html"
	}
	return ""
}

// wireLines converts line breaks to CRLF.
func wireLines(text string) string {
	return strings.ReplaceAll(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text), "\n", "\r\n")
}
