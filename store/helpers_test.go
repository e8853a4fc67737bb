package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/postroom/postroom/store"
)

func contextEndingAfter(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(t.Context(), d)
}

// subjects are the subjects of ms, in order.
func subjects(ms []store.Message) []string {
	var ss []string
	for _, m := range ms {
		ss = append(ss, m.Subject)
	}
	return ss
}

// every reads a whole list, in pages of limit.
func every(t *testing.T, s *store.Store, f store.MessageFilter, limit int) []store.Message {
	t.Helper()
	var all []store.Message
	cursor := ""
	for {
		l, err := s.ListMessages(t.Context(), f, store.Page{Limit: limit, Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, l.Rows...)
		if cursor = l.Cursor; cursor == "" {
			return all
		}
	}
}
