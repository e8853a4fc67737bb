package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// stub is a server that knows one key and records who calls.
type stub struct {
	*httptest.Server
	keys []string
}

func newStub(t *testing.T, key string) *stub {
	t.Helper()
	s := &stub{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		s.keys = append(s.keys, given)
		w.Header().Set("Content-Type", "application/json")
		switch {
		case given != key:
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"error":{"code":"unauthorized","message":"missing or invalid API key","request_id":"req_1"}}`))
		case r.URL.Path == "/v1/usage":
			_, _ = w.Write([]byte(`{"object":"usage","plan":"self_hosted","inboxes":{"used":3,"limit":null},"sends_today":{"used":1,"limit":null,"resets_at":"2026-01-01T00:00:00.000Z"},
				"emails_this_month":{"used":1,"limit":null,"resets_at":"2026-01-01T00:00:00.000Z"},"sending":{"paused":false,"reason":null,"paused_at":null},"stopped":false,"pending_drafts":0}`))
		default:
			_, _ = w.Write([]byte(`{"data":[],"has_more":false,"cursor":null}`))
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// ran runs a command line as a user whose configuration is in a folder of the test.
func ran(t *testing.T, stdin string, environ []string, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	p := Program{Environ: environ, Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &out, Version: "test"}
	return out.String(), runIn(t, p, &out, args...)
}

func runIn(t *testing.T, p Program, out *bytes.Buffer, args ...string) error {
	t.Helper()
	root := Group(&cobra.Command{Use: "postroom", SilenceErrors: true, SilenceUsage: true},
		append(p.Commands(), Group(&cobra.Command{Use: "inbox"}, p.InboxCommands()...))...)
	root.SetOut(out)
	root.SetErr(out)
	root.SetArgs(args)
	return root.ExecuteContext(context.Background())
}

func TestLoginKeepsTheKeyInAFileOfTheUser(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	work, home := newStub(t, "sk_work_key"), newStub(t, "sk_home_key")
	mustRun := func(stdin string, environ []string, args ...string) {
		t.Helper()
		if _, err := ran(t, stdin, environ, args...); err != nil {
			t.Fatalf("%q: %v", args, err)
		}
	}
	if _, err := ran(t, "", nil, "usage"); !errors.As(err, new(UsageError)) || !strings.Contains(err.Error(), "postroom login") {
		t.Errorf("without a profile: %v", err)
	}
	if _, err := ran(t, "sk_wrong\n", nil, "login", work.URL); err == nil {
		t.Error("a wrong key was stored")
	}
	mustRun("key_1  sk_work_key\n", nil, "login", work.URL+"/", "--profile", "work")
	mustRun("", nil, "login", home.URL, "--profile", "home", "--key", "sk_home_key")

	path := filepath.Join(dir, "postroom", "profiles.json")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the file has the mode %v", info.Mode())
	}
	mustRun("", nil, "usage")
	mustRun("", nil, "usage", "--profile", "work")
	mustRun("", []string{ProfileEnv + "=work"}, "usage")
	mustRun("", []string{ServerEnv + "=" + home.URL, KeyEnv + "=sk_home_key"}, "usage", "--profile", "work") // a named profile comes first
	if len(work.keys) != 5 || len(home.keys) != 2 {
		t.Errorf("%d calls at work, %d at home", len(work.keys), len(home.keys))
	}

	// The key of a profile goes to no other server.
	for name, call := range map[string]struct{ environ, args []string }{
		"a server in the environment": {[]string{ServerEnv + "=" + work.URL}, []string{"usage"}},
		"a server in a flag":          {nil, []string{"usage", "--server", work.URL}},
		"a profile and a server":      {nil, []string{"usage", "--server", home.URL, "--profile", "work"}},
		"no such profile":             {nil, []string{"usage", "--profile", "none"}},
	} {
		if _, err := ran(t, "", call.environ, call.args...); !errors.As(err, new(UsageError)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(work.keys) != 5 || len(home.keys) != 2 {
		t.Error("a key was sent to another server")
	}
	// The environment as a whole comes before the current profile.
	mustRun("", []string{ServerEnv + "=" + work.URL, KeyEnv + "=sk_work_key"}, "usage")

	mustRun("", nil, "logout")
	mustRun("", nil, "usage") // the rest is current
	mustRun("", nil, "logout", "--profile", "work")
	b, err := os.ReadFile(path)
	var left profiles
	if err != nil || json.Unmarshal(b, &left) != nil || len(left.All) != 0 || left.Current != "" {
		t.Errorf("the file is %s, %v", b, err)
	}
	if _, err := ran(t, "", nil, "logout"); err == nil {
		t.Error("removing a profile that does not exist succeeded")
	}
}

func TestDamagedProfilesAreAnError(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	if err := os.MkdirAll(filepath.Join(dir, "postroom"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "postroom", "profiles.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ran(t, "", nil, "usage"); err == nil || !strings.Contains(err.Error(), "profiles.json") {
		t.Errorf("%v", err)
	}
}
