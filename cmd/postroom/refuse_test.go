package main

import (
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/testpg"
	"github.com/postroom/postroom/internal/waittest"
)

func TestServeRefusesToServeTwice(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	s := serve(t, data)
	if text := refused(t, data, nil); !strings.Contains(text, "the data folder "+data+" is in use by another `postroom serve`") {
		t.Errorf("the same data folder: %s", text)
	}
	other := []string{"POSTROOM_DATABASE=" + filepath.Join(data, "postroom.db")}
	if text := refused(t, t.TempDir(), other); !strings.Contains(text, "is in use by another `postroom serve`") ||
		!strings.Contains(text, "POSTROOM_DATABASE") {
		t.Errorf("the same database from another data folder: %s", text)
	}
	s.stop(t)
	serve(t, data).stop(t)
}

func TestServeRefusesAPortInUse(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	data := t.TempDir()
	for _, setting := range []string{"POSTROOM_HTTP", "POSTROOM_SMTP"} {
		want := setting + ": " + l.Addr().String() + " is in use by another program"
		if text := refused(t, data, []string{setting + "=" + l.Addr().String()}); !strings.Contains(text, want) {
			t.Errorf("%s: want %q", text, want)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	// A start that failed must not have used up the one showing of the key.
	if s := serve(t, data); s.key == "" {
		t.Errorf("no key is shown by the first start that works:\n%s", s.stdout)
	}
}

func TestServeRefusesAWrongDatabase(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	there, err := url.Parse(testpg.Schema(t))
	if err != nil {
		t.Fatal(err)
	}
	there.User, there.Path = url.UserPassword(there.User.Username(), "hunter2"), "/nowhere"
	missing := there.String()
	tests := []struct {
		name, database string
		want           []string
	}{
		{
			"a database that does not exist", missing, []string{":xxxxx@", "nowhere", "does not exist"},
		},
		{"a folder", folder, []string{folder}},
		{"a file that is not a database", garbage(t), []string{"not a database"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			text := refused(t, t.TempDir(), []string{"POSTROOM_DATABASE=" + tt.database})
			for _, want := range tt.want {
				if !strings.Contains(text, want) {
					t.Errorf("%s\nwant it to say %q", text, want)
				}
			}
			if strings.Contains(text, "hunter2") {
				t.Errorf("the password is shown: %s", text)
			}
		})
	}
}

func garbage(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notes.txt")
	if err := os.WriteFile(path, []byte(strings.Repeat("These are notes and no mail.\n", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLostOrWrongSecretIsRefused(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, data string, env []string) {
		s := serve(t, data, env...)
		waitForSigningKeys(t, data, env)
		s.stop(t)
		path := filepath.Join(data, "secret")
		secret, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the secret's file: %v, %v, want 0600", info.Mode(), err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}

		if text := refused(t, data, env); !strings.Contains(text, "belongs to an installation whose secret is not in "+data) {
			t.Errorf("without its secret: %s", text)
		}
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("a new secret was put in place of the lost one: %v", err)
		}
		// K2: also for an installation whose mail domain changed and has no keys
		// that could fail to open.
		wrong := append([]string{"POSTROOM_SECRET=" + strings.Repeat("wrong", 10)}, env...)
		for _, more := range [][]string{wrong, append([]string{"POSTROOM_MAIL_DOMAIN=other.example"}, wrong...)} {
			if text := refused(t, data, more); !strings.Contains(text, "the secret in POSTROOM_SECRET does not match the database") {
				t.Errorf("with another secret: %s", text)
			}
		}
		for _, args := range [][]string{{"domain", "show"}, {"domain", "rotate", "dom_1"}} {
			if _, text, err := runCommand(t, data, wrong, args...); err == nil || !strings.Contains(text, "does not match the database") {
				t.Errorf("%v with another secret: %v %s", args, err, text)
			}
			if _, text, err := runCommand(t, data, env, args...); err == nil || !strings.Contains(text, "read the installation secret") {
				t.Errorf("%v without the secret: %v %s", args, err, text)
			}
		}
		if err := os.WriteFile(path, append([]byte{secret[0] ^ 1}, secret[1:]...), 0o600); err != nil {
			t.Fatal(err)
		}
		if text := refused(t, data, env); !strings.Contains(text, "the secret in the file "+path+" does not match") {
			t.Errorf("with a damaged secret: %s", text)
		}
		right := append([]string{"POSTROOM_SECRET=" + strings.TrimSpace(string(secret))}, env...)
		serve(t, data, right...).stop(t)
	})
}

// waitForSigningKeys returns when `postroom domain show` shows both DKIM keys,
// which are made while the first start serves already.
func waitForSigningKeys(t *testing.T, data string, env []string) (out string) {
	t.Helper()
	waittest.Until(t, "domain show has the keys", func() (ok bool) {
		var err error
		out, _, err = runCommand(t, data, env, "domain", "show")
		return err == nil
	})
	return out
}

func TestCommandsSayThatThereIsNoInstall(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "none")
	for _, args := range [][]string{{"key", "list"}, {"domain", "show"}} {
		_, stderr, err := runCommand(t, data, nil, args...)
		if err == nil || !strings.Contains(stderr, "no database at "+data) {
			t.Errorf("%v: %v %s", args, err, stderr)
		}
	}
	if _, err := os.Stat(data); !os.IsNotExist(err) {
		t.Errorf("the commands created the data folder: %v", err)
	}
	if _, stderr, err := runCommand(t, data, nil, "migrate"); err != nil {
		t.Fatalf("migrate: %v %s", err, stderr)
	}
	if _, stderr, err := runCommand(t, data, nil, "key", "list"); err == nil || !strings.Contains(stderr, "no account exists yet") {
		t.Errorf("key list before the first start: %v %s", err, stderr)
	}
}
