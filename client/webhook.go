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
	// webhookTolerance limits the difference between the timestamp of a webhook
	// and now.
	webhookTolerance = 5 * time.Minute
	// maxWebhook is larger than any event: the server cuts event bodies at 256
	// KB.
	maxWebhook = 1 << 20
)

// ErrWebhook is the error for a webhook that is forged or too old. Respond with
// 401 and ignore the content.
var ErrWebhook = errors.New("postroom: the webhook is not signed as it should be")

// WebhookVerifier checks the signatures of webhooks
// (https://www.standardwebhooks.com). An event may arrive more than once, with
// the same ID each time.
type WebhookVerifier struct {
	keys [][]byte
	now  func() time.Time
}

// NewWebhookVerifier returns a verifier for signatures with any of the secrets,
// in the form whsec_... from the creation or rotation of the endpoint.
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

// Event verifies a webhook request and returns its event. The error is
// ErrWebhook unless reading or parsing the body failed.
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

// Verify checks the signature of a request with this header and body. The error
// is an ErrWebhook with the reason.
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

// signed reports whether one of the signatures matches one of the keys. It
// compares in constant time.
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
