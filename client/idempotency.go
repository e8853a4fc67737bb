package client

import (
	"context"
	"crypto/rand"
	"net/http"
	"path"
	"slices"

	"github.com/postroom/postroom/gen"
)

const idempotencyHeader = "Idempotency-Key"

// idempotent lists the POST paths that accept an Idempotency-Key, as patterns
// of path.Match. A test compares them with the contract.
var idempotent = []string{
	"/v1/inboxes",
	"/v1/inboxes/*/messages",
	"/v1/inboxes/*/simulate",
	"/v1/messages/*/reply",
	"/v1/messages/*/forward",
	"/v1/messages/*/calendar/reply",
	"/v1/drafts/*/send",
	"/v1/drafts/*/reject",
	"/v1/emails",
	"/v1/emails/batch",
	"/v1/templates",
	"/v1/contacts",
	"/v1/contacts/batch",
	"/v1/domains",
	"/v1/suppressions",
	"/v1/lists",
}

func takesIdempotencyKey(method, escapedPath string) bool {
	return method == http.MethodPost && slices.ContainsFunc(idempotent, func(pattern string) bool {
		ok, err := path.Match(pattern, escapedPath)
		return ok && err == nil
	})
}

// newIdempotencyKey returns a new random key.
func newIdempotencyKey() string { return "go-" + rand.Text() }

// SendEmail calls POST /v1/emails. It copies the key of the request body to the
// header, so that the client does not add another one.
func (c *Client) SendEmail(ctx context.Context, req *gen.EmailSend, params gen.SendEmailParams, options ...gen.RequestOption) (gen.SendEmailRes, error) {
	if !params.IdempotencyKey.Set {
		params.IdempotencyKey = req.IdempotencyKey
	}
	return c.Client.SendEmail(ctx, req, params, options...)
}
