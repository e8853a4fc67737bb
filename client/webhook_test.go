package client

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

//nolint:gosec // the secrets are of nothing
const (
	oldSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	newSecret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	eventJSON = `{"id":"evt_1","object":"event","type":"email.bounced","created_at":"2026-01-02T03:04:05.000Z","test_mode":false,"inbox_id":null,
		"data":{"object":"email","id":"em_1","recipient":"ana@example.org","bounce_type":"hard"},"new":true}`
)

// signedBy returns the signature of the reference library of the standard.
func signedBy(t *testing.T, secret, id string, at time.Time, body string) string {
	t.Helper()
	w, err := standard.NewWebhook(secret)
	must(t, err)
	s, err := w.Sign(id, at, []byte(body))
	must(t, err)
	return s
}

func TestWebhooksAreVerified(t *testing.T) {
	t.Parallel()
	now := time.Now()
	right := signedBy(t, oldSecret, "evt_1", now, eventJSON)
	tests := []struct {
		name      string
		id        string
		at        string
		signature string
		body      string
		ok        bool
	}{
		{"unchanged", "evt_1", stamp(now), right, eventJSON, true},
		{"with another body", "evt_1", stamp(now), right, eventJSON + " ", false},
		{"with another id", "evt_2", stamp(now), right, eventJSON, false},
		{"with another time", "evt_1", stamp(now.Add(time.Second)), right, eventJSON, false},
		{"signed by two secrets, one of them known", "evt_1", stamp(now), signedBy(t, newSecret, "evt_1", now, eventJSON) + " " + right, eventJSON, true},
		{"signed by an unknown secret", "evt_1", stamp(now), signedBy(t, newSecret, "evt_1", now, eventJSON), eventJSON, false},
		{"with a signature of another version", "evt_1", stamp(now), "v2" + strings.TrimPrefix(right, "v1"), eventJSON, false},
		{"with a part of the signature", "evt_1", stamp(now), right[:len(right)-4], eventJSON, false},
		{"without a signature", "evt_1", stamp(now), "", eventJSON, false},
		{"without a time", "evt_1", "", right, eventJSON, false},
		{"without an id", "", stamp(now), signedBy(t, oldSecret, "", now, eventJSON), eventJSON, false},
		{"almost too old", "evt_1", stamp(now.Add(-299 * time.Second)), signedBy(t, oldSecret, "evt_1", now.Add(-299*time.Second), eventJSON), eventJSON, true},
		{"too old", "evt_1", stamp(now.Add(-302 * time.Second)), signedBy(t, oldSecret, "evt_1", now.Add(-302*time.Second), eventJSON), eventJSON, false},
		{"from the future", "evt_1", stamp(now.Add(302 * time.Second)), signedBy(t, oldSecret, "evt_1", now.Add(302*time.Second), eventJSON), eventJSON, false},
		{"with the largest time", "evt_1", "9223372036854775807", right, eventJSON, false},
		{"with too long a body", "evt_1", stamp(now), signedBy(t, oldSecret, "evt_1", now, longBody), longBody, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v, err := NewWebhookVerifier(oldSecret)
			must(t, err)
			v.now = func() time.Time { return now }
			r := httptest.NewRequest(http.MethodPost, "/hooks", bytes.NewReader([]byte(tt.body)))
			r.Header.Set("webhook-id", tt.id)
			r.Header.Set("webhook-timestamp", tt.at)
			r.Header.Set("webhook-signature", tt.signature)
			e, err := v.Event(r)
			if (err == nil) != tt.ok || err != nil && !errors.Is(err, ErrWebhook) {
				t.Fatalf("%v, want it accepted: %t", err, tt.ok)
			}
			if tt.ok && (e.ID != "evt_1" || e.Type != "email.bounced" || e.Recipient() != "ana@example.org" || string(e.JSON) != eventJSON) {
				t.Errorf("got %+v", e)
			}
		})
	}
}

var longBody = strings.Repeat(" ", maxWebhook+1)

// During a rotation both secrets are valid.
func TestWebhooksOfTwoSecrets(t *testing.T) {
	t.Parallel()
	now := time.Now()
	v, err := NewWebhookVerifier(newSecret, oldSecret)
	must(t, err)
	for _, secret := range []string{oldSecret, newSecret} {
		h := http.Header{}
		h.Set("webhook-id", "evt_1")
		h.Set("webhook-timestamp", stamp(now))
		h.Set("webhook-signature", signedBy(t, secret, "evt_1", now, eventJSON))
		if err := v.Verify(h, []byte(eventJSON)); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range [][]string{nil, {""}, {"whsec_"}, {oldSecret, "whsec_not base64"}} {
		if _, err := NewWebhookVerifier(bad...); err == nil {
			t.Errorf("%q are accepted as secrets", bad)
		}
	}
}

func stamp(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }
