package handlers

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/mime"
	"github.com/postroom/postroom/store"
)

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
	for _, host := range ours {
		if mail.ClaimsHost(string(f.Value()), host) || mail.ClaimsHost(f.Text(), host) {
			return true
		}
	}
	return false
}
