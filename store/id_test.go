package store_test

import (
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
	if a, b := store.NewID("msg_", now), store.NewID("msg_", now.Add(time.Second)); a >= b {
		t.Errorf("%s does not sort before %s, which is a second younger", a, b)
	}
}
