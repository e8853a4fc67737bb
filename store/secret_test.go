package store_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// dump is everything that the database holds, as bytes.
func dump(t *testing.T, cfg store.Config) []byte {
	t.Helper()
	var all bytes.Buffer
	if !strings.HasPrefix(cfg.Database, "postgres") {
		files, err := filepath.Glob(cfg.Database + "*") // with the write-ahead log
		if err != nil || len(files) == 0 {
			t.Fatalf("no database files: %v", err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(b)
		}
		return all.Bytes()
	}
	db := openRaw(t, cfg)
	var tables []string
	if err := db.Select(&tables, `SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'`); err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		var rows []string
		if err := db.Select(&rows, fmt.Sprintf(`SELECT cast(row_to_json(r) AS text) FROM %s r`, table)); err != nil {
			t.Fatal(err)
		}
		all.WriteString(strings.Join(rows, "\n"))
	}
	return all.Bytes()
}

// wantNotStored fails if the database contains secret, in plain text, hex or
// base64.
func wantNotStored(t *testing.T, cfg store.Config, secret string) {
	t.Helper()
	all := dump(t, cfg)
	if len(all) < 300 {
		t.Fatalf("the dump has only %d bytes", len(all))
	}
	for how, form := range map[string]string{
		"as it is": secret, "in hex": hex.EncodeToString([]byte(secret)), "in base64": base64.RawStdEncoding.EncodeToString([]byte(secret)),
	} {
		if bytes.Contains(all, []byte(form)) {
			t.Errorf("the database holds the secret %s", how)
		}
	}
}

func TestDKIMKeysDoNotOpenWithAnotherSecretOrPlace(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		s := storetest.OpenConfig(t, cfg)
		key := store.DKIMKey{Domain: "in.example", Selector: "a", Algorithm: "rsa", Private: []byte("private")}
		if err := s.AddDKIMKeys(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		other := cfg
		other.SealKey = bytes.Repeat([]byte("x"), 32)
		if _, err := storetest.OpenConfig(t, other).DKIMKeys(t.Context(), store.TheInstall, "in.example"); err == nil {
			t.Error("the key opened with another secret")
		}
		if _, err := openRaw(t, cfg).Exec(`UPDATE dkim_keys SET domain = 'out.example'`); err != nil {
			t.Fatal(err)
		}
		if _, err := s.DKIMKeys(t.Context(), store.TheInstall, "out.example"); err == nil {
			t.Error("the key opened for another domain")
		}
	})
}

func TestOpenRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	cfg := storetest.Config(t, storetest.SQLite)
	for name, weaken := range map[string]func(*store.Config){
		"short cursor key": func(c *store.Config) { c.CursorKey = make([]byte, 15) },
		"short seal key":   func(c *store.Config) { c.SealKey = make([]byte, 31) },
		"long seal key":    func(c *store.Config) { c.SealKey = make([]byte, 33) },
		"unknown plan":     func(c *store.Config) { c.DefaultPlan = "none" },
	} {
		weak := cfg
		weaken(&weak)
		if s, err := store.Open(t.Context(), weak); err == nil {
			t.Errorf("%s: opened", name)
			_ = s.Close()
		}
	}
}
