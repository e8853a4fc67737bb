package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// inboxes are those that were made for this run.
type inboxes struct {
	o   options
	ids []string
}

// create makes the inboxes and returns their addresses.
func (b *inboxes) create(ctx context.Context) ([]string, error) {
	var addresses []string
	for range b.o.inboxes {
		var in struct{ ID, Address string }
		if err := b.call(ctx, http.MethodPost, "/v1/inboxes", &in); err != nil {
			return nil, fmt.Errorf("make an inbox: %w", err)
		}
		b.ids = append(b.ids, in.ID)
		addresses = append(addresses, in.Address)
	}
	return addresses, nil
}

func (b *inboxes) deleteAll(ctx context.Context) error {
	var errs []error
	for _, id := range b.ids {
		if err := b.call(ctx, http.MethodDelete, "/v1/inboxes/"+id, &struct{}{}); err != nil {
			errs = append(errs, fmt.Errorf("delete an inbox: %w", err))
		}
	}
	return errors.Join(errs...)
}

func (b *inboxes) call(ctx context.Context, method, path string, answer any) error {
	var body io.Reader
	if method == http.MethodPost {
		body = strings.NewReader("{}")
	}
	req, err := http.NewRequestWithContext(ctx, method, b.o.api+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+b.o.key)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode >= 300 {
		return fmt.Errorf("%s: %s", res.Status, got)
	}
	return json.Unmarshal(got, answer)
}
