package store_test

import (
	"slices"
	"testing"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// TestEveryTableIsExportedOrLeft fails for a new table that an export does not know.
func TestEveryTableIsExportedOrLeft(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		known := slices.Concat(store.NotExported, store.ExportedTables())
		names, err := store.TableNames(t.Context(), s)
		if err != nil || len(names) < 30 {
			t.Fatalf("%q, %v", names, err)
		}
		for _, name := range names {
			if !slices.Contains(known, name) {
				t.Errorf("the table %s is neither exported nor left out: add it to store/backup.go", name)
			}
		}
		for _, table := range store.ExportedTables() {
			if !slices.Contains(names, table) {
				t.Errorf("the table %s does not exist", table)
			}
		}
	})
}
