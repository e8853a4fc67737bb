package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite" // for a backup

	"github.com/postroom/postroom/internal/testpg"
	"github.com/postroom/postroom/smtp/smtptest"
	"github.com/postroom/postroom/store"
)

// TestNothingSecretIsAtRest is row K1: a dump of the database and the log at its most
// talkative hold no API key, no secret of a webhook, no private key and not the secret that
// seals them, in no form.
func TestNothingSecretIsAtRest(t *testing.T) {
	t.Parallel()
	onEngine(t, func(t *testing.T, data string, env []string) {
		dns, mx := smtptest.NewChangingDNS(t), smtptest.NewMX(t, smtptest.MXConfig{})
		s := serve(t, data, append(env, "POSTROOM_RESOLVER="+dns.Addr(), "POSTROOM_LOG_LEVEL=debug", "POSTROOM_RELAY=smtp://"+mx.Addr()+"?tls=maybe")...)
		secrets := map[string][]byte{"the first key": []byte(s.key)}
		for _, shown := range []struct{ path, body, field string }{
			{"/v1/keys", `{"name":"k"}`, "key"}, {"/v1/webhooks", `{"url":"https://hooks.example/in"}`, "secret"},
		} {
			status, made := s.call(t, s.key, http.MethodPost, shown.path, shown.body)
			secret, _ := made[shown.field].(string)
			if status != http.StatusCreated || secret == "" {
				t.Fatalf("%s: %d %v", shown.path, status, made)
			}
			name := "the " + shown.field + " of " + shown.path
			secrets[name] = []byte(secret)
			if raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_")); err == nil {
				secrets[name+", decoded"] = raw
			}
		}
		d := s.ownDomain(t, dns, "ann.example")
		_, inbox := s.call(t, s.key, http.MethodPost, "/v1/inboxes", `{"domain":"ann.example"}`)
		_, m := s.call(t, s.key, http.MethodPost, fmt.Sprintf("/v1/inboxes/%s/messages", inbox["id"]), `{"to":"bob@out.example","subject":"s","text":"t"}`)
		becomes(t, s, fmt.Sprint(m["id"]), "sent")
		if _, stderr, err := runCommand(t, data, env, "domain", "rotate", fmt.Sprint(d["id"])); err != nil {
			t.Fatalf("domain rotate: %v %s", err, stderr)
		}
		all := allSecrets(t, data, env, secrets)
		for what, b := range map[string][]byte{"the dump": dumpOf(t, data, env), "the log": []byte(s.log.String())} {
			for name, secret := range all {
				for how, form := range formsOf(secret) {
					if bytes.Contains(b, form) {
						t.Errorf("%s (%d bytes) holds %s %s", what, len(b), name, how)
					}
				}
			}
			if !bytes.Contains(b, []byte("ann.example")) {
				t.Errorf("%s (%d bytes) holds no data of the installation", what, len(b))
			}
			if bytes.Contains(b, []byte("PRIVATE KEY")) {
				t.Errorf("%s holds PEM", what)
			}
		}
	})
}

// formsOf are the ways to write a secret that are looked for.
func formsOf(secret []byte) map[string][]byte {
	forms := map[string][]byte{
		"as it is": secret, "in hex": []byte(hex.EncodeToString(secret)),
		"in base64": []byte(base64.RawStdEncoding.EncodeToString(secret)), "in base64url": []byte(base64.RawURLEncoding.EncodeToString(secret)),
	}
	for how, form := range forms { // the last character depends on what follows
		if strings.HasPrefix(how, "in base64") {
			forms[how] = form[:len(form)-2]
		}
	}
	return forms
}

// allSecrets returns the secrets that the API has shown, the installation secret,
// and the private keys, whole and in parts.
func allSecrets(t *testing.T, data string, env []string, shown map[string][]byte) map[string][]byte {
	t.Helper()
	all := maps.Clone(shown)
	cfg := Config{Data: data, Database: database(filepath.Join(data, "postroom.db"))}
	for _, v := range env {
		if url, ok := strings.CutPrefix(v, "POSTROOM_DATABASE="); ok {
			cfg.Database = database(url)
		}
	}
	secret, err := cfg.installSecret()
	if err != nil {
		t.Fatal(err)
	}
	keys, err := derive(secret)
	if err != nil {
		t.Fatal(err)
	}
	all["INSTALL_SECRET"], all["the seal key"] = []byte(secret), keys.seal
	s, err := store.Open(t.Context(), store.Config{Database: string(cfg.Database), CursorKey: keys.cursors, SealKey: keys.seal, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }() // it was only read
	a, err := s.FirstAccount(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for account, domain := range map[int64]string{store.TheInstall: "postroom.localhost", a.Seq: "ann.example"} {
		dkim, err := s.DKIMKeys(t.Context(), account, domain)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range dkim {
			found++
			for part, b := range partsOf(t, k.Private) {
				all[fmt.Sprintf("%s of the %s key of %s", part, k.Algorithm, domain)] = b
			}
		}
	}
	if found != 4 {
		t.Fatalf("%d private keys to look for, want 4", found)
	}
	return all
}

func partsOf(t *testing.T, der []byte) map[string][]byte {
	t.Helper()
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		t.Fatal(err)
	}
	switch key := parsed.(type) {
	case *rsa.PrivateKey:
		return map[string][]byte{"the whole": der, "the exponent": key.D.Bytes(), "a prime": key.Primes[0].Bytes(), "the other prime": key.Primes[1].Bytes()}
	case ed25519.PrivateKey:
		return map[string][]byte{"the whole": der, "the seed": key.Seed()}
	}
	t.Fatalf("a key of type %T", parsed)
	return nil
}

// dumpOf returns the content of a backup: the SQLite files, or the output of
// pg_dump.
func dumpOf(t *testing.T, data string, env []string) []byte {
	t.Helper()
	if url := postgresOf(env); url != "" {
		return pgDump(t, url)
	}
	files, err := filepath.Glob(filepath.Join(data, "postroom.db*"))
	if err != nil || len(files) < 2 {
		t.Fatalf("files of the database: %v, %v", files, err)
	}
	var all []byte
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b...)
	}
	return all
}

// pgDump runs the pg_dump of the server.
func pgDump(t *testing.T, args ...string) []byte {
	t.Helper()
	bin, _, err := testpg.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	initdb, err := filepath.EvalSymlinks(filepath.Join(bin, "initdb"))
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(filepath.Dir(initdb), "pg_dump"), args...).Output()
	if err != nil || len(out) < 10_000 {
		t.Fatalf("pg_dump: %d bytes, %v", len(out), err)
	}
	return out
}

func postgresOf(env []string) string {
	for _, v := range env {
		if url, ok := strings.CutPrefix(v, "POSTROOM_DATABASE="); ok {
			return url
		}
	}
	return ""
}
