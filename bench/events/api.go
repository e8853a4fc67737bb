package main

import (
	"context"
	"net/http"

	"github.com/postroom/postroom/bench/api"
	"github.com/postroom/postroom/bench/place"
)

// client calls the service.
type client struct{ *api.Client }

func newClient(s *place.Service, conns int) client {
	return client{&api.Client{
		Base: "http://" + s.Address, Key: place.Key,
		HTTP: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: conns}},
	}}
}

func (c client) post(ctx context.Context, path string, body, out any) error {
	return c.Call(ctx, http.MethodPost, path, body, out)
}

// newInbox creates an inbox and returns its id.
func (c client) newInbox(ctx context.Context) (string, error) {
	var box struct{ ID string }
	err := c.post(ctx, "/v1/inboxes", struct{}{}, &box)
	return box.ID, err
}

// simulate creates a message with that subject in the inbox, which creates one
// event, and returns the message's id.
func (c client) simulate(ctx context.Context, inboxID, subject string) (string, error) {
	var m struct{ ID string }
	err := c.post(ctx, "/v1/inboxes/"+inboxID+"/simulate", map[string]string{
		"from": "ann@shop.example", "subject": subject, "text": "Your code is 482913. It is good for 10 minutes.",
	}, &m)
	return m.ID, err
}
