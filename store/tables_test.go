package store_test

import (
	"slices"
	"testing"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/internal/tables"
	"github.com/postroom/postroom/store/storetest"
)

// TestEveryTableIsExportedOrLeft fails for a new table that package tables does not know.
func TestEveryTableIsExportedOrLeft(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		known := slices.Clone(tables.Left)
		for _, table := range tables.All {
			known = append(known, table.Name)
		}
		names, err := store.TableNames(t.Context(), s)
		if err != nil || len(names) < 30 {
			t.Fatalf("%q, %v", names, err)
		}
		for _, name := range names {
			if !slices.Contains(known, name) {
				t.Errorf("the table %s is neither exported nor left out: add it to store/internal/tables", name)
			}
		}
		for _, table := range tables.All {
			if !slices.Contains(names, table.Name) {
				t.Errorf("the table %s does not exist", table.Name)
			}
		}
	})
}
