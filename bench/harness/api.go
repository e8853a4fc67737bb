package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// Client calls the API at Base with Key.
type Client struct {
	Base, Key string
	HTTP      *http.Client
}

// Call makes a request with body as JSON, unless body is nil, and decodes the
// response into out. It returns an error if the status is not 2xx.
func (c *Client) Call(ctx context.Context, method, path string, body, out any) error {
	var payload io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		payload = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.Base+path, payload)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+c.Key)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := c.HTTP.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %s: %s", method, path, res.Status, b)
	}
	return json.Unmarshal(b, out)
}

// Inbox is an inbox that was created for a run.
type Inbox struct{ ID, Address string }

// CreateInboxes creates n inboxes. With an error it returns those that it created.
func (c *Client) CreateInboxes(ctx context.Context, n int) ([]Inbox, error) {
	made := make([]Inbox, n)
	err := Share(ctx, n, 8, func(i int) error { return c.Call(ctx, http.MethodPost, "/v1/inboxes", struct{}{}, &made[i]) })
	return made, err
}

// DeleteInboxes deletes the inboxes that were created.
func (c *Client) DeleteInboxes(ctx context.Context, all []Inbox) error {
	return Share(ctx, len(all), 8, func(i int) error {
		if all[i].ID == "" {
			return nil
		}
		return c.Call(ctx, http.MethodDelete, "/v1/inboxes/"+all[i].ID, nil, &struct{}{})
	})
}
