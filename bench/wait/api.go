package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/postroom/postroom/bench/harness"
)

// waitSeconds is the longest time of a wait. A message that takes longer counts as
// lost.
const waitSeconds = 60

// client calls the service.
type client struct{ *harness.Client }

func newClient(o options) client {
	return client{&harness.Client{Base: o.api, Key: o.key, HTTP: &http.Client{
		Timeout:   (waitSeconds + 10) * time.Second,
		Transport: &http.Transport{MaxIdleConnsPerHost: o.waiters + 8, DisableCompression: true},
	}}}
}

// wait waits for the next message in box, and returns its subject.
func (c client) wait(ctx context.Context, box *inbox) (string, error) {
	q := url.Values{"timeout": {fmt.Sprint(waitSeconds)}}
	if box.last != "" {
		q.Set("after", box.last)
	}
	var got struct {
		TimedOut bool `json:"timed_out"`
		Message  *struct{ ID, Subject string }
	}
	if err := c.Call(ctx, http.MethodGet, "/v1/inboxes/"+box.ID+"/messages/wait?"+q.Encode(), nil, &got); err != nil {
		return "", err
	}
	if got.TimedOut || got.Message == nil {
		return "", fmt.Errorf("lost: no message to %s within %d seconds", box.Address, waitSeconds)
	}
	box.last = got.Message.ID
	return got.Message.Subject, nil
}
