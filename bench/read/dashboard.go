package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/postroom/postroom/internal/web"
	"github.com/postroom/postroom/store"
)

// session is the session token of a dashboard user.
const session = "a session of the benchmark's own"

// signIn creates a user with that session.
func signIn(ctx context.Context, s *store.Store, account int64) error {
	link, token := web.NewLink(time.Now())
	if _, err := s.CreateUser(ctx, account, "reader", store.RoleAdmin, link); err != nil {
		return err
	}
	_, err := s.UseLink(ctx, store.HashKey(token), "no password that is known", store.HashKey(session))
	return err
}

// dashboard returns the requests for dashboard pages.
func (f *filler) dashboard(ids []string) []testCase {
	inbox := "/inboxes/" + f.inbox.ID
	some := func() string { return ids[rand.IntN(len(ids))] }
	at := func(path string) func() string { return func() string { return path } }
	return []testCase{
		{"dashboard: overview", at("/"), -1},
		{"dashboard: inboxes", at("/inboxes"), -1},
		{"dashboard: threads", at(inbox), -1},
		{"dashboard: search", at(inbox + "?q=" + rareWord), -1},
		{"dashboard: messages", at(inbox + "?direction=in"), -1},
		{"dashboard: message", func() string { return "/messages/" + some() }, -1},
		{"dashboard: its frame", func() string { return "/messages/" + some() + "/view" }, -1},
		{"dashboard: approvals", at("/approvals"), -1},
		{"dashboard: sent", at("/emails?kind=messages"), -1},
	}
}
