package client

import (
	"context"
	"crypto/rand"
	"net/http"
	"path"

	"github.com/postroom/postroom/gen"
)

const idempotencyHeader = "Idempotency-Key"

// idempotent are the paths of the POSTs that take an Idempotency-Key, as
// path.Match has them. A test holds them against the contract.
var idempotent = []string{
	"/v1/inboxes",
	"/v1/inboxes/*/messages",
	"/v1/inboxes/*/simulate",
	"/v1/messages/*/reply",
	"/v1/messages/*/forward",
	"/v1/drafts/*/send",
	"/v1/drafts/*/reject",
	"/v1/emails",
	"/v1/emails/batch",
	"/v1/templates",
	"/v1/contacts",
	"/v1/contacts/batch",
	"/v1/domains",
	"/v1/suppressions",
}

func takesIdempotencyKey(method, escapedPath string) bool {
	if method != http.MethodPost {
		return false
	}
	for _, pattern := range idempotent {
		if ok, err := path.Match(pattern, escapedPath); ok && err == nil {
			return true
		}
	}
	return false
}

// newIdempotencyKey returns a key that nobody has used.
func newIdempotencyKey() string { return "go-" + rand.Text() }

// SendEmail implements POST /v1/emails. The key of the request's body goes into
// the header too, where the client would put one of its own.
func (c *Client) SendEmail(ctx context.Context, req *gen.EmailSend, params gen.SendEmailParams, options ...gen.RequestOption) (*gen.EmailCreated, error) {
	if !params.IdempotencyKey.Set {
		params.IdempotencyKey = req.IdempotencyKey
	}
	return unwrap(c.api.SendEmail(ctx, req, params, options...))
}
