package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/postroom/postroom/bench/place"
)

// api calls the service.
type api struct {
	base   string
	client *http.Client
}

func newAPI(s *place.Service, conns int) *api {
	return &api{"http://" + s.Address, &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: conns}}}
}

// post makes a call that must be answered with 201, and reads the answer's JSON
// into out.
func (a *api) post(ctx context.Context, path string, body, out any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.base+path, bytes.NewReader(b))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+place.Key)
	req.Header.Set("Content-Type", "application/json")
	res, err := a.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusCreated {
		return fmt.Errorf("%s: %s: %s", path, res.Status, answer)
	}
	return json.Unmarshal(answer, out)
}

// newInbox makes an inbox and returns its id.
func (a *api) newInbox(ctx context.Context) (string, error) {
	var box struct{ ID string }
	err := a.post(ctx, "/v1/inboxes", struct{}{}, &box)
	return box.ID, err
}

// simulate puts a message with that subject into the inbox, which makes one
// event, and returns the message's id.
func (a *api) simulate(ctx context.Context, inboxID, subject string) (string, error) {
	var m struct{ ID string }
	err := a.post(ctx, "/v1/inboxes/"+inboxID+"/simulate", map[string]string{
		"from": "ann@shop.example", "subject": subject, "text": "Your code is 482913. It is good for 10 minutes.",
	}, &m)
	return m.ID, err
}
