package cli

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/postroom/postroom/client"
)

const (
	// forwardTime limits a forwarded request, as the server limits a webhook.
	forwardTime = 15 * time.Second
	// maxDrained is how much of a response is read, to use the connection again.
	maxDrained = 64 << 10
	secretForm = "whsec_"
)

func (p Program) listenCommand() *cobra.Command {
	var s client.Stream
	cmd := &cobra.Command{
		Use:   "listen",
		Short: "Forward events to a server on this machine, as signed webhooks",
		Long: "Forward events to a server on this machine, as the webhooks that Postroom would send:\n" +
			"with the same body and headers, signed with a secret that is shown at the start. Each event\n" +
			"is sent once. It ends when it is interrupted.",
		Example: "  postroom listen --forward-to http://localhost:3000/webhooks\n  postroom listen --forward-to http://localhost:3000 --types message.received",
	}
	to := cmd.Flags().String("forward-to", "", "address that receives the webhooks")
	secret := cmd.Flags().String("secret", "", "secret of the signatures, whsec_ and base64 (default: a random one)")
	read := streamFlags(cmd, &s, "only events of this inbox, by ID or address", "only of these types, separated by commas")
	mustGive(cmd, "forward-to")
	return p.overAPI(cmd, func(ctx context.Context, a *api, _ []string) error {
		f, err := newForwarder(*to, *secret)
		if err != nil {
			return err
		}
		if err := read(ctx, a); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(p.Stderr, "Forwarding events to %s, signed with %s\n", *to, f.secret); err != nil {
			return err
		}
		return a.listen(ctx, s, f)
	})
}

// listen forwards events until ctx ends.
func (a *api) listen(ctx context.Context, s client.Stream, f *forwarder) error {
	for e, err := range a.Events(ctx, s) {
		switch {
		case err != nil && interrupted(ctx, err):
			return nil
		case err != nil:
			return err
		case e.Type == client.StreamGap:
			continue
		}
		said, err := f.forward(ctx, e)
		if err != nil && interrupted(ctx, err) {
			return nil
		}
		if err != nil {
			said = err.Error()
		}
		if err := a.show(forwarded{e.ID, e.Type, said}, nil, func(t *table) { t.row(when(time.Now()), e.Type, e.ID, said) }); err != nil {
			return err
		}
	}
	return nil
}

// forwarded is the output with --json.
type forwarded struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Response string `json:"response"`
}

// forwarder sends events as webhooks.
type forwarder struct {
	to, secret string
	key        []byte
	http       *http.Client
}

func newForwarder(to, secret string) (*forwarder, error) {
	u, err := url.Parse(to)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, UsageError{errors.New("--forward-to is not an address such as http://localhost:3000")}
	}
	if secret == "" {
		var random [32]byte
		_, _ = rand.Read(random[:]) // never fails
		secret = secretForm + base64.StdEncoding.EncodeToString(random[:])
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, secretForm))
	if err != nil || len(key) == 0 {
		return nil, UsageError{errors.New("--secret is not whsec_ and base64")}
	}
	return &forwarder{to: to, secret: secret, key: key, http: &http.Client{
		Timeout:       forwardTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // as the server
	}}, nil
}

// forward sends one event, signed as in https://www.standardwebhooks.com, and
// returns the status of the response.
func (f *forwarder) forward(ctx context.Context, e client.Event) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, f.to, bytes.NewReader(e.JSON))
	if err != nil {
		return "", err
	}
	at := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, f.key)
	_, _ = mac.Write([]byte(e.ID + "." + at + ".")) // a hash never returns an error
	_, _ = mac.Write(e.JSON)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Webhook-Id", e.ID)
	r.Header.Set("Webhook-Timestamp", at)
	r.Header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	res, err := f.http.Do(r)
	if err != nil {
		return "", err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxDrained)) // only to use the connection again
	return res.Status, res.Body.Close()
}
