package client

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// webhookTolerance is how far from now a webhook may say that it was sent.
	webhookTolerance = 5 * time.Minute
	// maxWebhook is more than any event: their bodies are cut at 256 KB.
	maxWebhook = 1 << 20
)

// ErrWebhook is what a webhook that is not from the server, or too old, is
// refused with. Answer it with 401 or so, and believe nothing that it says.
var ErrWebhook = errors.New("postroom: the webhook is not signed as it should be")

// WebhookVerifier tells the events that a server posts from those that somebody
// else does (https://www.standardwebhooks.com). An event may come more than once:
// its ID is the same each time.
type WebhookVerifier struct {
	keys [][]byte
	now  func() time.Time
}

// NewWebhookVerifier returns a verifier that believes what is signed with one of
// the secrets, whsec_... as the endpoint was created or rotated with.
func NewWebhookVerifier(secrets ...string) (*WebhookVerifier, error) {
	v := &WebhookVerifier{now: time.Now}
	for _, s := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(strings.TrimSpace(s), "whsec_"))
		if err != nil || len(key) == 0 {
			return nil, errors.New("postroom: a webhook secret is whsec_ and base64")
		}
		v.keys = append(v.keys, key)
	}
	if len(v.keys) == 0 {
		return nil, errors.New("postroom: no webhook secret")
	}
	return v, nil
}

// Event reads the event that a request to a webhook endpoint carries. The error
// is ErrWebhook unless the body could not be read.
func (v *WebhookVerifier) Event(r *http.Request) (Event, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxWebhook+1))
	if err != nil {
		return Event{}, fmt.Errorf("postroom: read the webhook: %w", err)
	}
	if len(body) > maxWebhook {
		return Event{}, fmt.Errorf("%w: it is longer than any", ErrWebhook)
	}
	if err := v.Verify(r.Header, body); err != nil {
		return Event{}, err
	}
	return parseEvent(body)
}

// Verify returns nil when a request with this header and body is from the
// server, and else ErrWebhook with the reason.
func (v *WebhookVerifier) Verify(header http.Header, body []byte) error {
	id, at := header.Get("webhook-id"), header.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if id == "" || err != nil {
		return fmt.Errorf("%w: webhook-id or webhook-timestamp is missing", ErrWebhook)
	}
	if off := v.now().Sub(time.Unix(seconds, 0)); off > webhookTolerance || off < -webhookTolerance {
		return fmt.Errorf("%w: it says that it was sent at %s", ErrWebhook, time.Unix(seconds, 0).UTC().Format(time.RFC3339))
	}
	if !v.signed(id+"."+at+".", body, strings.Fields(header.Get("webhook-signature"))) {
		return fmt.Errorf("%w: no signature is by its secret", ErrWebhook)
	}
	return nil
}

// signed says whether one of the signatures is by one of the keys. It takes the
// same time wherever a signature differs.
func (v *WebhookVerifier) signed(prefix string, body []byte, signatures []string) bool {
	ok := false
	for _, key := range v.keys {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(prefix))
		mac.Write(body)
		want := []byte("v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)))
		for _, s := range signatures {
			ok = hmac.Equal(want, []byte(s)) || ok
		}
	}
	return ok
}
