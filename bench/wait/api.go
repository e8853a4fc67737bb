package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/postroom/postroom/bench/api"
)

// waitSeconds is the longest time of a wait. A message that takes longer counts as
// lost.
const waitSeconds = 60

// client calls the service.
type client struct{ *api.Client }

func newClient(o options) client {
	return client{&api.Client{Base: o.api, Key: o.key, HTTP: &http.Client{
		Timeout:   (waitSeconds + 10) * time.Second,
		Transport: &http.Transport{MaxIdleConnsPerHost: o.waiters + 8, DisableCompression: true},
	}}}
}

// createInboxes creates n inboxes. With an error it returns those that it created.
func (c client) createInboxes(ctx context.Context, n int) ([]*inbox, error) {
	boxes := make([]*inbox, n)
	err := each(n, func(i int) error {
		var got struct{ ID, Address string }
		if err := c.Call(ctx, http.MethodPost, "/v1/inboxes", struct{}{}, &got); err != nil {
			return err
		}
		boxes[i] = &inbox{id: got.ID, address: got.Address}
		return nil
	})
	return boxes, err
}

func (c client) deleteInboxes(ctx context.Context, boxes []*inbox) error {
	return each(len(boxes), func(i int) error {
		if boxes[i] == nil {
			return nil
		}
		var got struct{ Deleted bool }
		return c.Call(ctx, http.MethodDelete, "/v1/inboxes/"+boxes[i].id, nil, &got)
	})
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
	if err := c.Call(ctx, http.MethodGet, "/v1/inboxes/"+box.id+"/messages/wait?"+q.Encode(), nil, &got); err != nil {
		return "", err
	}
	if got.TimedOut || got.Message == nil {
		return "", fmt.Errorf("lost: no message to %s within %d seconds", box.address, waitSeconds)
	}
	box.last = got.Message.ID
	return got.Message.Subject, nil
}

// each calls do for 0 to n-1, eight at a time, and returns the first error.
func each(n int, do func(int) error) error {
	var (
		workers sync.WaitGroup
		once    sync.Once
		first   error
		next    = make(chan int)
	)
	for range 8 {
		workers.Go(func() {
			for i := range next {
				if err := do(i); err != nil {
					once.Do(func() { first = err })
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	workers.Wait()
	return first
}
