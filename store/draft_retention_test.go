package store_test

import (
	"strings"
	"testing"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// However many drafts are kept, only those that are due are checked.
func TestDueDraftsAreFoundByIndex(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		wantByIndex(t, s, "drafts_kept", []string{"inbox_seq=", "content_at<"}, store.DueDrafts, 1, 1, 1)
		if plan := wantByIndex(t, s, "drafts_due", nil, store.DraftsDue, 1, 1, 1, 1); !strings.Contains(plan, "drafts_due") {
			t.Error(plan)
		}
	})
}
