package store_test

import (
	"path/filepath"
	"testing"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// A restore holds what waits before it migrates: the statements for that work on the
// schema of each backup, also on that of the first release.
func TestHoldWorksOnOlderSchemas(t *testing.T) {
	t.Parallel()
	for _, schema := range []int64{1, 52, 53} {
		eachEngineEmpty(t, func(t *testing.T, cfg store.Config) {
			if err := store.MigrateTo(t.Context(), cfg, schema); err != nil {
				t.Fatal(err)
			}
			if _, err := openRaw(t, cfg).Exec(store.HoldAt(schema)); err != nil {
				t.Errorf("schema %d: %v", schema, err)
			}
		})
	}
}

func TestABackupOfTheFirstSchemaIsRestored(t *testing.T) {
	t.Parallel()
	old, cfg := storetest.EmptyConfig(t, storetest.SQLite), storetest.EmptyConfig(t, storetest.SQLite)
	old.Database = filepath.Join(t.TempDir(), "backup")
	if err := store.MigrateTo(t.Context(), old, 1); err != nil {
		t.Fatal(err)
	}
	if err := store.Load(t.Context(), cfg, old.Database, 1); err != nil {
		t.Fatal(err)
	}
	storetest.Inbox(t, storetest.OpenConfig(t, cfg))
}
