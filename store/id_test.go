package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/ids"
	"github.com/postroom/postroom/store"
)

// New ids have 20 characters and a check character that matches, whatever their
// prefix, and differ within one moment.
func TestNewIDs(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	seen := map[string]bool{}
	for range 10_000 {
		for _, prefix := range []string{"em_", "msg_", "tmpl_"} {
			id := store.NewID(prefix, now)
			if len(id) != ids.Length || ids.Typo(id) != "" || seen[id] {
				t.Fatalf("id %s: %s, seen %v", id, ids.Typo(id), seen[id])
			}
			seen[id] = true
		}
	}
	ordered := []string{store.NewLongID("msg_", now.AddDate(50, 0, 0))} // by a former release
	for _, age := range []time.Duration{0, time.Second, time.Minute, 24 * time.Hour, 10 * 365 * 24 * time.Hour, 50 * 365 * 24 * time.Hour} {
		ordered = append(ordered, store.NewID("msg_", now.Add(age)))
	}
	if !slices.IsSorted(ordered) {
		t.Errorf("the ids are not in the order of their times: %v", ordered)
	}
}
