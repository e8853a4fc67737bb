package store_test

import (
	"strings"
	"testing"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// Known correspondents are found by index alone, without reading messages.
// PostgreSQL chooses an index by the table's statistics, so that an empty table
// proves nothing.
func TestHaveWrittenIsFoundByIndex(t *testing.T) {
	t.Parallel()
	q, args := store.HaveWrittenQuery(1, "ann@out.example", "bob@out.example")
	plan := wantByIndex(t, storetest.OpenSQLite(t), "messages_inbox", []string{"inbox_seq="}, q, args...)
	if !strings.Contains(plan, "COVERING INDEX messages_inbox") {
		t.Errorf("messages are read:\n%s", plan)
	}
}

// wantByIndex checks that a query uses an index with these conditions, and
// returns the plan.
func wantByIndex(t *testing.T, s *store.Store, index string, conds []string, query string, args ...any) (plan string) {
	t.Helper()
	plan, err := s.Explain(t.Context(), query, args...)
	if err != nil {
		t.Fatal(err)
	}
	_, by, _ := strings.Cut(plan, index)
	by, _, _ = strings.Cut(by, "Filter") // what comes to it without the index
	by = strings.ReplaceAll(by, " ", "")
	for _, cond := range conds {
		if !strings.Contains(by, cond) {
			t.Errorf("%s is not looked up in %s:\n%s", cond, index, plan)
		}
	}
	return plan
}
