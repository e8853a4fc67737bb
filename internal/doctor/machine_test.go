package doctor_test

import (
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/internal/doctor"
	"github.com/postroom/postroom/smtp/smtptest"
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
		}, "database", doctor.Fail, "newer than", "newer program"},
		{"the server is unreachable", func(t *testing.T, w *world) {
			w.storeCfg.Database = "postgres://user@" + shut(t, "127.0.0.1").String() + "/none?sslmode=disable"
		}, "database", doctor.Fail, "connection refused", "POSTROOM_DATABASE"},
		{"the file is not a database", func(t *testing.T, w *world) {
			w.storeCfg.Database = filepath.Join(t.TempDir(), "postroom.db")
			if err := os.WriteFile(w.storeCfg.Database, []byte(strings.Repeat("not a database ", 1000)), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "database", doctor.Fail, "not a database", "POSTROOM_DATABASE"},
		{"there is no database", func(_ *testing.T, w *world) { w.cfg.NoDatabase = true }, "database", doctor.Warn, "no database yet", "postroom serve"},
		{"the secret is another's", func(t *testing.T, w *world) {
			if err := w.store.ProveSecret(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.storeCfg.SealKey = []byte(strings.Repeat("x", 32))
		}, "secret", doctor.Fail, "not the installation secret", "backup"},
		{"mail is held since a restore", func(t *testing.T, w *world) {
			storetest.Email(t, w.store, storetest.Account(t, w.store).Seq, []string{"a@b.example"})
			if err := w.store.Hold(t.Context()); err != nil {
				t.Fatal(err)
			}
		}, "queue", doctor.Warn, "held since a restore: 1 recipient, 0 scheduled emails, 0 webhook deliveries", "postroom held release"},
		{"mail is not taken up", func(t *testing.T, w *world) {
			storetest.Email(t, w.store, storetest.Account(t, w.store).Seq, []string{"a@b.example"})
			w.storeCfg.Now = func() time.Time { return time.Now().Add(time.Hour) }
		}, "queue", doctor.Fail, "due: 1 recipient, the oldest for 1h0m", "postroom serve"},
	}
	for _, e := range storetest.Engines(t) {
		for _, tt := range tests {
			t.Run(tt.name+" "+string(e), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, e, time.Now)
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
			w := newWorld(t, storetest.PostgreSQL, time.Now)
			w.storeCfg.Now = func() time.Time { return time.Now().Add(offset) }
			advice := "NTP"
			if want == doctor.OK {
				advice = ""
			}
			wantResult(t, w.run(t), "clock", want, "from the database", advice)
		})
	}
	w := newWorld(t, storetest.SQLite, time.Now)
	w.cfg.ClockSynced = func() (bool, bool) { return false, true }
	wantResult(t, w.run(t), "clock", doctor.Warn, "does not synchronize it", "NTP")
	w.cfg.ClockSynced = func() (bool, bool) { return false, false }
	wantResult(t, w.run(t), "clock", doctor.Skipped, "nothing to compare", "")
}

func TestWebhooksThatFailAreNamed(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(string(e), func(t *testing.T) {
			t.Parallel()
			now := time.Now().Add(-2 * time.Hour)
			w := newWorld(t, e, func() time.Time { return now })
			in := storetest.Inbox(t, w.store)
			urls := []string{"https://failing.example/hook", "https://gone.example/hook", "https://fine.example/hook"}
			var hooks []store.Webhook
			for _, url := range urls {
				h, _, err := w.store.CreateWebhook(t.Context(), store.Webhook{AccountID: in.AccountID, URL: url, Active: true}, nil)
				if err != nil {
					t.Fatal(err)
				}
				hooks = append(hooks, h)
			}
			storetest.Received(t, w.store, in)
			for i, h := range hooks {
				_, claimed, err := w.store.ClaimDeliveries(t.Context(), h.Seq, 10, time.Minute)
				if err != nil || len(claimed) != 1 {
					t.Fatalf("%d deliveries of %s: %v", len(claimed), h.URL, err)
				}
				r := store.DeliveryResult{Seq: claimed[0].Seq, EndpointSeq: h.Seq, Fence: claimed[0].Fence, Status: store.DeliveryFailed, Counts: true}
				switch i {
				case 1:
					r.Gone = "it returned 410"
				case 2:
					r.Status = store.DeliverySucceeded
				}
				if err := w.store.RecordDelivery(t.Context(), r); err != nil {
					t.Fatal(err)
				}
			}
			w.cfg.Now = time.Now
			r := w.run(t)
			wantResult(t, r, "webhooks", doctor.Warn, "no successful delivery to https://failing.example/hook since", hooks[0].ID)
			wantResult(t, r, "webhooks", doctor.Warn, "https://gone.example/hook is off: it returned 410", hooks[1].ID)
			if n := len(find(r, "webhooks")); n != 2 {
				t.Errorf("%d webhooks are named, want 2", n)
			}
		})
	}
}

func TestFaultsOfNodeAndAPI(t *testing.T) {
	t.Parallel()
	node := func(body string) func(*testing.T, *world) {
		return func(t *testing.T, w *world) {
			srv := httptest.NewServer(respondWith(body))
			t.Cleanup(srv.Close)
			w.cfg.Listens = strings.TrimPrefix(srv.URL, "http://")
		}
	}
	tests := []struct {
		name   string
		spoil  func(t *testing.T, w *world)
		check  string
		status doctor.Status
		saw    string
		advice string
	}{
		{"no node runs", func(t *testing.T, w *world) { w.cfg.Listens = shut(t, "127.0.0.1").String() }, "node", doctor.Warn, "no node is running", "postroom serve"},
		{"another program is there", node(`<html>`), "node", doctor.Fail, "not a Postroom response", "log"},
		{"the node has no database", node(`{"status":"unavailable","version":"v1.2.3"}`), "node", doctor.Fail, "unavailable", "database"},
		{"the node is of another version", node(`{"status":"ok","version":"v0.9.0"}`), "node", doctor.Warn, "v0.9.0", "restart"},
		{"clients cannot reach the API", func(t *testing.T, w *world) { w.cfg.BaseURL = "http://" + shut(t, "127.0.0.1").String() }, "api", doctor.Fail, "connection refused", "POSTROOM_BASE_URL"},
		{"the API's certificate is out of date", func(t *testing.T, w *world) {
			w.cfg.BaseURL = w.secureAPI(t, w.certificate(t, time.Now().Add(-time.Hour), "127.0.0.1"))
		}, "api", doctor.Fail, "expired", "it has expired"},
		{"the API's certificate is for another", func(t *testing.T, w *world) {
			w.cfg.BaseURL = w.secureAPI(t, w.certificate(t, time.Now().Add(time.Hour), "other.example"))
		}, "api", doctor.Fail, "cannot trust", "another name"},
		{"the API's certificate ends soon", func(t *testing.T, w *world) {
			w.cfg.BaseURL = w.secureAPI(t, w.certificate(t, time.Now().Add(73*time.Hour), "127.0.0.1"))
		}, "api", doctor.Warn, "in 3 days", "renew"},
		{"certificates come by ACME", func(_ *testing.T, w *world) { w.cfg.TLSCert, w.cfg.ACME = "", true }, "certificate", doctor.Skipped, "ACME", ""},
		{"the mail certificate is out of date", func(t *testing.T, w *world) {
			w.cfg.TLSCert, w.cfg.TLSKey = writeCertificate(t, w.certificate(t, time.Now().Add(-time.Hour), hostname))
		}, "certificate", doctor.Fail, "expired at", "renew"},
		{"the mail certificate ends soon", func(t *testing.T, w *world) {
			w.cfg.TLSCert, w.cfg.TLSKey = writeCertificate(t, w.certificate(t, time.Now().Add(73*time.Hour), hostname))
		}, "certificate", doctor.Warn, "in 3 days", "renew"},
		{"the mail certificate is for another", func(t *testing.T, w *world) {
			w.cfg.TLSCert, w.cfg.TLSKey = writeCertificate(t, w.certificate(t, time.Now().Add(2000*time.Hour), "old.example"))
		}, "certificate", doctor.Fail, "is for \"old.example\"", "POSTROOM_HOSTNAME"},
		{"the mail certificate has an unknown issuer", func(t *testing.T, w *world) {
			stranger, _ := smtptest.NewTLSUntil(t, time.Now().Add(2000*time.Hour), hostname)
			w.cfg.TLSCert, w.cfg.TLSKey = writeCertificate(t, stranger)
		}, "certificate", doctor.Warn, "unknown authority", "chain"},
		{"the mail certificate's files are mixed up", func(_ *testing.T, w *world) {
			w.cfg.TLSCert, w.cfg.TLSKey = w.cfg.TLSKey, w.cfg.TLSCert
		}, "certificate", doctor.Fail, "cannot read it", "POSTROOM_TLS_KEY"},
		{"large mail has no place", func(_ *testing.T, w *world) {
			w.cfg.OpenBlobs = func(context.Context) (store.Blobs, error) {
				b, err := store.OpenBlobFolder(filepath.Join(w.cfg.Data, "closed"), time.Now)
				if err == nil {
					_ = b.Close()
				}
				return b, err
			}
		}, "blobs", doctor.Fail, "cannot store large messages", "POSTROOM_BLOBS"},
		{"the data folder does not exist", func(_ *testing.T, w *world) { w.cfg.Data = filepath.Join(w.cfg.Data, "none") }, "disk", doctor.Warn, "does not exist yet", "postroom serve"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, storetest.SQLite, time.Now)
			tt.spoil(t, w)
			wantResult(t, w.run(t), tt.check, tt.status, tt.saw, tt.advice)
		})
	}
}
