package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/postroom/postroom/bench/api"
)

// inboxes are the inboxes created for this run.
type inboxes struct {
	api *api.Client
	ids []string
}

// create creates n inboxes and returns their addresses.
func (b *inboxes) create(ctx context.Context, n int) ([]string, error) {
	var addresses []string
	for range n {
		var in struct{ ID, Address string }
		if err := b.api.Call(ctx, http.MethodPost, "/v1/inboxes", struct{}{}, &in); err != nil {
			return nil, fmt.Errorf("create an inbox: %w", err)
		}
		b.ids = append(b.ids, in.ID)
		addresses = append(addresses, in.Address)
	}
	return addresses, nil
}

func (b *inboxes) deleteAll(ctx context.Context) error {
	var errs []error
	for _, id := range b.ids {
		if err := b.api.Call(ctx, http.MethodDelete, "/v1/inboxes/"+id, nil, &struct{}{}); err != nil {
			errs = append(errs, fmt.Errorf("delete an inbox: %w", err))
		}
	}
	return errors.Join(errs...)
}
