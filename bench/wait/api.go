package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// waitSeconds is how long a wait lasts at most: a mail that takes longer counts
// as lost.
const waitSeconds = 60

// api calls the service.
type api struct {
	base, key string
	client    *http.Client
}

func newAPI(o options) *api {
	return &api{o.api, o.key, &http.Client{
		Timeout:   (waitSeconds + 10) * time.Second,
		Transport: &http.Transport{MaxIdleConnsPerHost: o.waiters + 8, DisableCompression: true},
	}}
}

// call makes a request and reads the answer's JSON into out.
func (a *api) call(ctx context.Context, method, path string, body, out any) error {
	var payload io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		payload = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, a.base+path, payload)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+a.key)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := a.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %s: %s", method, path, res.Status, answer)
	}
	return json.Unmarshal(answer, out)
}

// createInboxes makes n inboxes. Those that were made come back with an error
// too.
func (a *api) createInboxes(ctx context.Context, n int) ([]*inbox, error) {
	boxes := make([]*inbox, n)
	err := each(n, func(i int) error {
		var got struct{ ID, Address string }
		if err := a.call(ctx, http.MethodPost, "/v1/inboxes", struct{}{}, &got); err != nil {
			return err
		}
		boxes[i] = &inbox{id: got.ID, address: got.Address}
		return nil
	})
	return boxes, err
}

func (a *api) deleteInboxes(ctx context.Context, boxes []*inbox) error {
	return each(len(boxes), func(i int) error {
		if boxes[i] == nil {
			return nil
		}
		var got struct{ Deleted bool }
		return a.call(ctx, http.MethodDelete, "/v1/inboxes/"+boxes[i].id, nil, &got)
	})
}

// wait waits for the next mail to box, and returns its subject.
func (a *api) wait(ctx context.Context, box *inbox) (string, error) {
	q := url.Values{"timeout": {fmt.Sprint(waitSeconds)}}
	if box.last != "" {
		q.Set("after", box.last)
	}
	var got struct {
		TimedOut bool `json:"timed_out"`
		Message  *struct{ ID, Subject string }
	}
	if err := a.call(ctx, http.MethodGet, "/v1/inboxes/"+box.id+"/messages/wait?"+q.Encode(), nil, &got); err != nil {
		return "", err
	}
	if got.TimedOut || got.Message == nil {
		return "", fmt.Errorf("lost: no mail to %s within %d seconds", box.address, waitSeconds)
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
