package doctor_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/internal/doctor"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

func openRaw(t *testing.T, cfg store.Config) *sqlx.DB {
	t.Helper()
	driver := "sqlite"
	if strings.HasPrefix(cfg.Database, "postgres") {
		driver = "postgres"
	}
	db, err := sqlx.Open(driver, cfg.Database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestFaultsOfTheDatabase(t *testing.T) {
	t.Parallel()
	schema := func(t *testing.T, w *world, statement string) {
		t.Helper()
		if _, err := openRaw(t, w.storeCfg).Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	const older = `DELETE FROM goose_db_version WHERE version_id > 0`
	tests := []struct {
		name   string
		spoil  func(t *testing.T, w *world)
		check  string
		status doctor.Status
		saw    string
		advice string
	}{
		{"its schema is older", func(t *testing.T, w *world) { schema(t, w, older) }, "database", doctor.Fail, "older than this program", "postroom migrate"},
		{"its schema is older, and the next start updates it", func(t *testing.T, w *world) {
			schema(t, w, older)
			w.cfg.Migrates = true
		}, "database", doctor.Warn, "older than this program", "postroom migrate"},
		{"its schema is newer", func(t *testing.T, w *world) {
			schema(t, w, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, true)`)
		}, "database", doctor.Fail, "newer program", "POSTROOM_DATABASE"},
		{"the server is unreachable", func(t *testing.T, w *world) {
			w.storeCfg.Database = "postgres://user@" + shut(t, "127.0.0.1").String() + "/none?sslmode=disable"
		}, "database", doctor.Fail, "connection refused", "POSTROOM_DATABASE"},
		{"the file is not a database", func(t *testing.T, w *world) {
			w.storeCfg.Database = filepath.Join(t.TempDir(), "postroom.db")
			if err := os.WriteFile(w.storeCfg.Database, []byte(strings.Repeat("not a database ", 1000)), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "database", doctor.Fail, "not a database", "POSTROOM_DATABASE"},
		{"there is no database", func(_ *testing.T, w *world) { w.cfg.StoreErr = doctor.ErrNoDatabase }, "database", doctor.Warn, "no database yet", "postroom serve"},
		{"the secret is another's", func(t *testing.T, w *world) {
			if err := w.store.ProveSecret(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.storeCfg.SealKey = []byte(strings.Repeat("x", 32))
		}, "secret", doctor.Fail, "not the installation secret", "backup"},
	}
	for _, e := range storetest.Engines(t) {
		for _, tt := range tests {
			t.Run(tt.name+" "+string(e), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, e)
				tt.spoil(t, w)
				wantResult(t, w.run(t), tt.check, tt.status, tt.saw, tt.advice)
			})
		}
	}
}

// TestTheClockIsHeldAgainstTheDatabase moves ours.
func TestTheClockIsHeldAgainstTheDatabase(t *testing.T) {
	t.Parallel()
	for offset, want := range map[time.Duration]doctor.Status{-time.Hour: doctor.Fail, 5 * time.Second: doctor.Warn, 0: doctor.OK} {
		t.Run(offset.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, storetest.PostgreSQL)
			w.storeCfg.Now = func() time.Time { return time.Now().Add(offset) }
			advice := "NTP"
			if want == doctor.OK {
				advice = ""
			}
			wantResult(t, w.run(t), "clock", want, "from the database", advice)
		})
	}
	w := newWorld(t, storetest.SQLite)
	w.cfg.ClockSynced = func() (bool, bool) { return false, true }
	wantResult(t, w.run(t), "clock", doctor.Warn, "does not synchronize it", "NTP")
	w.cfg.ClockSynced = func() (bool, bool) { return false, false }
	wantResult(t, w.run(t), "clock", doctor.Skipped, "nothing to compare", "")
}

func TestFaultsOfAPIAndDataFolder(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		spoil  func(t *testing.T, w *world)
		check  string
		status doctor.Status
		saw    string
		advice string
	}{
		{"clients cannot reach the API", func(t *testing.T, w *world) { w.cfg.BaseURL = "http://" + shut(t, "127.0.0.1").String() }, "api", doctor.Fail, "connection refused", "POSTROOM_BASE_URL"},
		{"the API's certificate is out of date", func(t *testing.T, w *world) {
			w.cfg.BaseURL = w.secureAPI(t, w.certificate(t, time.Now().Add(-time.Hour), "127.0.0.1"))
		}, "api", doctor.Fail, "expired", "certificate"},
		{"the API's certificate is for another", func(t *testing.T, w *world) {
			w.cfg.BaseURL = w.secureAPI(t, w.certificate(t, time.Now().Add(time.Hour), "other.example"))
		}, "api", doctor.Fail, "certificate", "certificate"},
		{"the API's certificate ends soon", func(t *testing.T, w *world) {
			w.cfg.BaseURL = w.secureAPI(t, w.certificate(t, time.Now().Add(73*time.Hour), "127.0.0.1"))
		}, "api", doctor.Warn, "in 3 days", "renew"},
		{"the data folder does not exist", func(t *testing.T, w *world) { w.cfg.Folders = []string{filepath.Join(t.TempDir(), "none")} }, "disk", doctor.Warn, "does not exist yet", "postroom serve"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, storetest.SQLite)
			tt.spoil(t, w)
			wantResult(t, w.run(t), tt.check, tt.status, tt.saw, tt.advice)
		})
	}
}
