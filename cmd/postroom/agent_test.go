package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/cli"
)

// agentFiles are the configuration files of the clients, in the home of a user of Linux.
var agentFiles = map[string]string{
	"claude-code": ".claude.json", "codex": ".codex/config.toml", "cursor": ".cursor/mcp.json", "vscode": ".config/Code/User/mcp.json",
	"claude-desktop": ".config/Claude/claude_desktop_config.json",
}

// home returns the environment of a user with an empty home who uses s.
func (s *served) home(t *testing.T, key string) (dir string, env []string) {
	t.Helper()
	dir = t.TempDir()
	return dir, []string{"HOME=" + dir, "XDG_CONFIG_HOME=" + filepath.Join(dir, ".config"), "CODEX_HOME=", cli.ServerEnv + "=" + s.api, cli.KeyEnv + "=" + key}
}

func TestAgentSetupKeepsWhatIsInTheFile(t *testing.T) {
	t.Parallel()
	s := dev(t)
	const others = `{"zeta": 12345678901234567890, "mcpServers": {"b": {"command": "<b>"}, "postroom": {"url": "old"}, "a": {}}, "servers": {"x": {}}, "alpha": [1.50]}`
	const table = "model = \"o\" # mine\n\n[mcp_servers.postroom]\nurl = \"old\"\n# about x\n[mcp_servers.x]\ncommand = \"x\"\n[[list]]\na = 1\n"
	for client, name := range agentFiles {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			dir, env := s.home(t, cli.DevKey)
			path := filepath.Join(dir, name)
			text := others
			if client == "codex" {
				text = table
			}
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path+".real", []byte(text), 0o640); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(path+".real", path); err != nil {
				t.Fatal(err)
			}
			var all []string
			for range 2 { // the second time changes nothing
				out, said, err := runCommand(t, t.TempDir(), env, "agent", "setup", client, "--yes")
				if err != nil || !strings.Contains(out, "Wrote "+path) || !strings.Contains(out, "Use postroom: ") || !strings.Contains(said, s.api+"/mcp") {
					t.Fatalf("%v\n%s%s", err, out, said)
				}
				b, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, string(b))
			}
			if all[0] != all[1] {
				t.Errorf("the second time:\n%s", cmp.Diff(all[0], all[1]))
			}
			if info, err := os.Lstat(path + ".real"); err != nil || info.Mode() != 0o640 {
				t.Errorf("%v %v", info, err)
			}
			want := []string{`"zeta": 12345678901234567890`, `"command": "<b>"`, "1.50", `"x": {}`, `"a": {}`, s.api + "/mcp", "Bearer dev"}
			if client == "codex" {
				want = []string{"model = \"o\" # mine\n", "# about x\n[mcp_servers.x]\n", "[[list]]\na = 1\n", s.api + "/mcp", "Bearer dev"}
			}
			for _, part := range want {
				if !strings.Contains(all[0], part) {
					t.Errorf("no %s in\n%s", part, all[0])
				}
			}
			if client != "codex" && strings.Index(all[0], "zeta") > strings.Index(all[0], "alpha") {
				t.Errorf("another order:\n%s", all[0])
			}
		})
	}
}

func TestAgentSetupLeavesFilesThatItCannotRead(t *testing.T) {
	t.Parallel()
	s := dev(t)
	tests := []struct{ name, client, text, want string }{
		{"comments", "vscode", "{\n// mine\n\"servers\": {}}", "not JSON that this command can edit"},
		{"cut short", "cursor", `{"mcpServers": {`, "not JSON"},
		{"a list", "claude-code", `[]`, "the place of mcpServers is not a JSON object"},
		{"servers that are no object", "claude-desktop", `{"mcpServers": null}`, "the place of postroom is not a JSON object"},
		{"not TOML", "codex", "model = ", "not TOML"},
		{"an inline table", "codex", `mcp_servers = {x = {command = "x"}}`, "cannot add a table to mcp_servers"},
		{"a dotted key", "codex", `mcp_servers . "postroom".url = "old"`, "cannot add a table to mcp_servers"},
		{"a key in the table of servers", "codex", "[mcp_servers]\npostroom = {}", "cannot add a table to mcp_servers"},
		{"a folder", "cursor", "", "is a directory"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir, env := s.home(t, cli.DevKey)
			path := filepath.Join(dir, agentFiles[tt.client])
			err := os.MkdirAll(filepath.Dir(path), 0o700)
			if tt.text == "" {
				err = os.MkdirAll(path, 0o700)
			} else if err == nil {
				err = os.WriteFile(path, []byte(tt.text), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			_, said, err := runCommand(t, t.TempDir(), env, "agent", "setup", tt.client, "--yes", "--scopes", "read")
			if err == nil || !strings.Contains(said, tt.want) || !strings.Contains(said, "use --print") || strings.Contains(said, "Created") {
				t.Errorf("%v %s", err, said)
			}
			if b, _ := os.ReadFile(path); string(b) != tt.text {
				t.Errorf("the file is now %q", b)
			}
		})
	}
}

// A key with the scopes that are asked for, in an entry that works.
func TestAgentSetupCreatesAKey(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	dir, env := s.home(t, s.key)
	run := func(args ...string) (string, string, error) {
		return runCommand(t, t.TempDir(), env, append([]string{"agent", "setup"}, args...)...)
	}
	for _, tt := range []struct {
		want string
		args []string
	}{
		{"CLIENT is one of claude-code, codex", nil},
		{`unknown client "curser": did you mean cursor?`, []string{"curser"}},
		{`--scopes: "raed" is not one of *`, []string{"cursor", "--yes", "--scopes", "raed"}},
		{"inbox no@where.example not found", []string{"cursor", "--yes", "--inboxes", "no@where.example"}},
		{"use --yes to write the file, or --print", []string{"cursor"}},
		{"unauthorized", []string{"cursor", "--yes", "--key", "sk_live_wrong"}},
		{"none of the others can be", []string{"cursor", "--yes", "--print"}},
	} {
		if _, said, err := run(tt.args...); err == nil || !strings.Contains(said, tt.want) {
			t.Errorf("%q: %v %s", tt.args, err, said)
		}
	}
	if _, keys := s.call(t, s.key, http.MethodGet, "/v1/api-keys", ""); len(keys["data"].([]any)) != 1 {
		t.Errorf("keys of failed commands: %v", keys["data"])
	}
	if files, _ := os.ReadDir(dir); len(files) != 0 {
		t.Errorf("files of failed commands: %v", files)
	}
	var printed struct {
		Servers map[string]struct {
			URL     string
			Headers map[string]string
		} `json:"mcpServers"`
	}
	out, said, err := run("cursor", "--print", "--scopes", "codes:read")
	if err == nil {
		err = json.Unmarshal([]byte(out), &printed)
	}
	if err != nil {
		t.Fatalf("%v %s%s", err, out, said)
	}
	s.wantTools(t, printed.Servers["postroom"].Headers["Authorization"], "wait_for_code", "send_email")
	if out, said, err := run("codex", "--yes", "--scopes", "send"); err != nil {
		t.Fatalf("%v %s%s", err, out, said)
	}
	var written struct {
		Servers map[string]struct {
			URL     string            `toml:"url"`
			Headers map[string]string `toml:"http_headers"`
		} `toml:"mcp_servers"`
	}
	path := filepath.Join(dir, agentFiles["codex"])
	if _, err := toml.DecodeFile(path, &written); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	s.wantTools(t, written.Servers["postroom"].Headers["Authorization"], "send_email", "wait_for_code")
}

// wantTools lists the tools with a key, which must have one and lack another.
func (s *served) wantTools(t *testing.T, authorization, has, lacks string) {
	t.Helper()
	_, res := s.call(t, strings.TrimPrefix(authorization, "Bearer "), http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	b, err := json.Marshal(res)
	if err != nil || !strings.Contains(string(b), `"`+has+`"`) || strings.Contains(string(b), `"`+lacks+`"`) {
		t.Errorf("%v, with the key %.12s: %.300s", err, authorization, b)
	}
}

// What the schema of the MCP registry asks for, and that the versions are the same.
func TestTheRegistryTakesServerJSON(t *testing.T) {
	t.Parallel()
	var entry struct {
		Schema      string `json:"$schema"`
		Name        string
		Title       string
		Description string
		Version     string
		Repository  struct{ URL, Source string }
		Packages    []struct {
			RegistryType, Identifier, RuntimeHint string
			RuntimeArguments, PackageArguments    []struct{ Type, Name, Value, Description string }
			Transport                             struct{ Type, URL string }
		}
		Remotes []struct {
			Type, URL string
			Variables map[string]any
			Headers   []map[string]any
		}
	}
	text, err := os.ReadFile("../../deploy/mcp/server.json")
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&entry); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$`).MatchString(entry.Name) || len(entry.Description) > 100 || entry.Description == "" {
		t.Errorf("%+v", entry)
	}
	for _, at := range []string{entry.Packages[0].Transport.URL, entry.Remotes[0].URL} {
		if !regexp.MustCompile(`^(https?://[^\s]+|\{[a-zA-Z_][a-zA-Z0-9_]*\}[^\s]*)$`).MatchString(at) {
			t.Errorf("not a URL template: %s", at)
		}
	}
	if !strings.HasSuffix(entry.Packages[0].Identifier, ":"+entry.Version) {
		t.Errorf("another version: %s", entry.Packages[0].Identifier)
	}
	image, err := os.ReadFile("../../Dockerfile")
	if err != nil || !strings.Contains(string(image), `io.modelcontextprotocol.server.name="`+entry.Name+`"`) {
		t.Errorf("the image does not name %s: %v", entry.Name, err)
	}
	var plugin struct{ Name, Version string }
	if text, err = os.ReadFile("../../deploy/claude-code/.claude-plugin/plugin.json"); err == nil {
		err = json.Unmarshal(text, &plugin)
	}
	if err != nil || plugin.Version != entry.Version {
		t.Errorf("%v %+v", err, plugin)
	}
}
