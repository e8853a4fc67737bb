package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/caarlos0/env/v11"
	"github.com/spf13/cobra"

	"github.com/postroom/postroom/client"
	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/nearname"
)

// mcpName is the name of the server in the configuration of MCP clients.
const mcpName = "postroom"

// errNotWritten means that the user did not confirm.
var errNotWritten = errors.New("nothing was written, and no key was created")

// mcpClient is a program that connects agents to MCP servers.
type mcpClient struct {
	name, title string
	file        func(p Program) (string, error)
	servers     string // name of the object or table with the servers
	entry       func(url, key string) any
	then        string // what the user does after the file was written
}

func mcpClients() []mcpClient {
	typed := func(url, key string) any {
		return httpServer{Type: "http", URL: url, Headers: map[string]string{"Authorization": "Bearer " + key}}
	}
	return []mcpClient{
		{"claude-code", "Claude Code", inHome(".claude.json"), "mcpServers", typed, "Start Claude Code anew"},
		{"codex", "Codex", codexFile, codexServers, codexServer, "Start Codex anew"},
		{"cursor", "Cursor", inHome(".cursor", "mcp.json"), "mcpServers", func(url, key string) any {
			return httpServer{URL: url, Headers: map[string]string{"Authorization": "Bearer " + key}}
		}, "Turn the server on in Cursor's settings, under MCP"},
		{"vscode", "VS Code", inConfig("Code", "User", "mcp.json"), "servers", typed, "Start the server in VS Code with `MCP: List Servers`"},
		{"claude-desktop", "Claude Desktop", inConfig("Claude", "claude_desktop_config.json"), "mcpServers", desktopServer,
			"Start Claude Desktop anew. It needs Node.js, for the program mcp-remote"},
	}
}

// httpServer is an MCP server in a JSON configuration.
type httpServer struct {
	Type    string            `json:"type,omitempty"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
}

const codexServers = "mcp_servers"

// codexServer returns the table of a server in the configuration of Codex.
func codexServer(url, key string) any {
	return fmt.Sprintf("[%s.%s]\nurl = %q\nhttp_headers = { Authorization = %q }\n", codexServers, mcpName, url, "Bearer "+key)
}

// desktopServer returns the entry of a client that only starts programs.
func desktopServer(url, key string) any {
	type program struct {
		Command string            `json:"command"`
		Args    []string          `json:"args"`
		Env     map[string]string `json:"env"`
	}
	args := []string{"-y", "mcp-remote", url, "--header", "Authorization:${POSTROOM_AUTHORIZATION}"}
	if strings.HasPrefix(url, "http:") {
		args = append(args, "--allow-http")
	}
	return program{"npx", args, map[string]string{"POSTROOM_AUTHORIZATION": "Bearer " + key}}
}

func inHome(elem ...string) func(Program) (string, error) {
	return func(Program) (string, error) {
		dir, err := os.UserHomeDir()
		return filepath.Join(append([]string{dir}, elem...)...), err
	}
}

func inConfig(elem ...string) func(Program) (string, error) {
	return func(Program) (string, error) {
		dir, err := os.UserConfigDir()
		return filepath.Join(append([]string{dir}, elem...)...), err
	}
}

func codexFile(p Program) (string, error) {
	if dir := env.ToMap(p.Environ)["CODEX_HOME"]; dir != "" {
		return filepath.Join(dir, "config.toml"), nil
	}
	return inHome(".codex", "config.toml")(p)
}

func (p Program) agentCommand() *cobra.Command {
	return Group(&cobra.Command{Use: "agent", Short: "Connect agents"}, p.agentSetupCommand())
}

// agentSetup holds the flags of `agent setup`.
type agentSetup struct {
	scopes, inboxes []string
	print, yes      bool
}

func (p Program) agentSetupCommand() *cobra.Command {
	var (
		f     agentSetup
		names []string
		to    mcpClient
	)
	for _, c := range mcpClients() {
		names = append(names, c.name)
	}
	cmd := &cobra.Command{
		Use:   "setup CLIENT",
		Short: "Create a key for an agent and add this server to its MCP client",
		Long: "Create a key for an agent and add this server to the configuration of its MCP client:\n" + strings.Join(names, ", ") + ".\n\n" +
			"The command shows the entry and asks before it writes. The rest of the file stays. The key `" + DevKey + "` of\n" +
			"`postroom dev` is used as it is, unless you choose scopes or inboxes.",
		Example:   "  postroom agent setup claude-code\n  postroom agent setup cursor --scopes codes:read --inboxes signup@mail.example.com",
		ValidArgs: names,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := wants(cmd, args); err != nil {
				return fmt.Errorf("%w; CLIENT is one of %s", err, strings.Join(names, ", "))
			}
			i := slices.Index(names, args[0])
			if i < 0 {
				return fmt.Errorf("unknown client %q%s; use one of %s", args[0], nearname.Hint(args[0], names), strings.Join(names, ", "))
			}
			to = mcpClients()[i]
			return nil
		},
	}
	cmd.Flags().StringSliceVar(&f.scopes, "scopes", []string{"read", "send"}, "scopes of the key, separated by commas")
	cmd.Flags().StringSliceVar(&f.inboxes, "inboxes", nil, "the only inboxes of the key, by ID or address (default: all)")
	cmd.Flags().BoolVar(&f.print, "print", false, "print the entry with the key, and write no file")
	cmd.Flags().BoolVarP(&f.yes, yesFlag, "y", false, "do not ask before writing")
	cmd.MarkFlagsMutuallyExclusive("print", yesFlag)
	return p.overAPI(cmd, func(ctx context.Context, a *api, _ []string) error {
		asDev := a.key == DevKey && !cmd.Flags().Changed("scopes") && !cmd.Flags().Changed("inboxes")
		return p.setUpAgent(ctx, a, to, f, asDev)
	})
}

// setUpAgent checks everything that can fail before it creates the key.
func (p Program) setUpAgent(ctx context.Context, a *api, to mcpClient, f agentSetup, asDev bool) error {
	req := gen.ApiKeyCreate{Name: "agent " + to.name}
	for _, s := range f.scopes {
		if gen.ApiKeyScope(s).Validate() != nil {
			return UsageError{fmt.Errorf("--scopes: %q is not one of %s", s, strings.Join(words(gen.ApiKeyScope("").AllValues()), " "))}
		}
		req.Scopes = append(req.Scopes, gen.ApiKeyScope(s))
	}
	if len(req.Scopes) == 0 {
		return UsageError{errors.New("--scopes: name at least one scope")}
	}
	for _, name := range f.inboxes {
		in, err := a.inboxID(ctx, name)
		if err != nil {
			return err
		}
		req.InboxIds.SetTo(append(req.InboxIds.Value, in))
	}
	if _, err := a.GetUsage(ctx); err != nil && !errors.Is(err, client.ErrInsufficientScope) {
		return err
	}
	url := strings.TrimRight(a.server, "/") + "/mcp"
	makeKey := func() (string, error) {
		if asDev {
			return DevKey, nil
		}
		k, err := a.CreateApiKey(ctx, &req)
		if err != nil {
			return "", err
		}
		_, err = fmt.Fprintf(p.Stderr, "Created %s, with the scopes %s.\n", clean(k.ID), strings.Join(f.scopes, ", "))
		return k.Key, err
	}
	if f.print {
		key, err := makeKey()
		if err != nil {
			return err
		}
		entry, err := to.set(nil, url, key)
		if err != nil {
			return err
		}
		_, err = p.Stdout.Write(entry)
		return err
	}
	path, err := to.file(p)
	if err != nil {
		return err
	}
	if _, err := to.edited(path, url, DevKey); err != nil {
		return err
	}
	if err := p.mayWrite(to, path, url, f, asDev); err != nil {
		return err
	}
	key, err := makeKey()
	if err != nil {
		return err
	}
	text, err := to.edited(path, url, key)
	if err == nil {
		err = writeFile(path, text)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.Stdout, "Wrote %s.\n\n%s. Then say to the agent:\n\n  %s\n", clean(path), to.then, firstWords(f))
	return err
}

// mayWrite shows the entry without its key and asks.
func (p Program) mayWrite(to mcpClient, path, url string, f agentSetup, asDev bool) error {
	entry, err := to.set(nil, url, map[bool]string{true: DevKey, false: "(the new key)"}[asDev])
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(p.Stderr, "%s gets this in %s:\n\n%s\n", to.title, clean(path), cleanText(string(entry))); err != nil || f.yes {
		return err
	}
	if !p.Interactive {
		return UsageError{fmt.Errorf("no terminal to ask for confirmation: use --%s to write the file, or --print", yesFlag)}
	}
	ok, err := p.ask(fmt.Sprintf("Write %s?", clean(path)))
	if err == nil && !ok {
		err = errNotWritten
	}
	return err
}

// firstWords is what to say to an agent first, with the scopes that it has.
func firstWords(f agentSetup) string {
	have := func(scopes ...string) bool {
		return slices.ContainsFunc(scopes, func(s string) bool { return slices.Contains(f.scopes, s) })
	}
	switch {
	case len(f.inboxes) > 0 && have("codes:read", "read", "admin", "*"):
		return "Use postroom: wait for the next verification code in " + f.inboxes[0] + ", and tell me the code."
	case have("send", "admin", "*"):
		return "Use postroom: create an inbox and tell me its address. Then wait for a message to it, and tell me what it says."
	}
	return "Use postroom: list your tools, and tell me what you can do with my mail."
}

// edited returns the text of a configuration file with the server in it.
func (c mcpClient) edited(path, url, key string) ([]byte, error) {
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: repair it, or use --print and add the entry yourself", err)
	}
	text, err := c.set(old, url, key)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; it stays as it is: repair it, or use --print and add the entry yourself", path, err)
	}
	return text, nil
}

// set adds the server to the text of a configuration, or replaces it there.
func (c mcpClient) set(old []byte, url, key string) ([]byte, error) {
	entry := c.entry(url, key)
	if table, isTOML := entry.(string); isTOML {
		return setTable(old, table)
	}
	value, err := marshal(entry)
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(old)) == 0 {
		old = []byte("{}")
	}
	if err := json.Unmarshal(old, new(any)); err != nil {
		return nil, fmt.Errorf("not JSON that this command can edit, such as JSON with comments: %w", err)
	}
	text, err := setMember(old, value, c.servers, mcpName)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = json.Indent(&b, text, "", "  ")
	return append(b.Bytes(), '\n'), err
}

// setMember sets what path names in a JSON object. The other members keep their order and
// their text.
func setMember(object, value []byte, path ...string) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(object))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.Join(fmt.Errorf("the place of %s is not a JSON object", path[0]), err)
	}
	inner := func(old []byte) ([]byte, error) {
		if len(path) == 1 {
			return value, nil
		}
		return setMember(old, value, path[1:]...)
	}
	var members [][]byte
	add := func(name string, value []byte) error {
		key, err := marshal(name)
		members = append(members, slices.Concat(key, []byte(":"), value))
		return err
	}
	found := false
	for d.More() {
		var old json.RawMessage
		name, err := d.Token()
		if err = errors.Join(err, d.Decode(&old)); err == nil && name == path[0] {
			found = true
			old, err = inner(old)
		}
		if err = cmp.Or(err, add(fmt.Sprint(name), old)); err != nil {
			return nil, err
		}
	}
	if !found {
		made, err := inner([]byte("{}"))
		if err = cmp.Or(err, add(path[0], made)); err != nil {
			return nil, err
		}
	}
	return slices.Concat([]byte("{"), bytes.Join(members, []byte(",")), []byte("}")), nil
}

// marshal returns v as JSON in which <, > and & are not escaped.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

var errNoTable = errors.New("this command cannot add a table to " + codexServers + " without changing something else")

// inlineServers matches servers, or the server, without a header of their own. TOML does
// not allow a header in addition.
var inlineServers = regexp.MustCompile(`(?m)^\s*["']?(` + codexServers + `["']?\s*=|(` + codexServers + `["']?\s*\.\s*["']?)?` + mcpName + `["']?\s*[.=])`)

// setTable replaces the tables of the server in a TOML text, or adds one at its end. It
// fails if anything else would change.
func setTable(old []byte, table string) ([]byte, error) {
	before, err := otherSettings(old)
	if err != nil {
		return nil, fmt.Errorf("not TOML: %w", err)
	}
	var kept strings.Builder
	own := false
	for line := range strings.Lines(string(old)) {
		header := strings.Join(strings.Fields(line), "")
		if strings.HasPrefix(header, "[") {
			name := strings.NewReplacer(`"`, "", `'`, "").Replace(header)
			own = strings.HasPrefix(name, "["+codexServers+"."+mcpName+"]") || strings.HasPrefix(name, "["+codexServers+"."+mcpName+".")
		}
		if !own || strings.HasPrefix(header, "#") {
			kept.WriteString(line)
		}
	}
	rest := strings.TrimRight(kept.String(), "\n")
	if inlineServers.MatchString(rest) {
		return nil, errNoTable
	}
	if rest != "" {
		rest += "\n\n"
	}
	text := []byte(rest + table)
	after, err := otherSettings(text)
	if err != nil || !reflect.DeepEqual(before, after) {
		return nil, errNoTable
	}
	return text, nil
}

// otherSettings returns what a TOML text says, without the server.
func otherSettings(text []byte) (map[string]any, error) {
	all := map[string]any{}
	if err := toml.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	if servers, ok := all[codexServers].(map[string]any); ok {
		if delete(servers, mcpName); len(servers) == 0 {
			delete(all, codexServers)
		}
	}
	return all, nil
}

// writeFile replaces a file, or what it links to, at once. It keeps the permissions; only
// the user can read a new file.
func writeFile(path string, text []byte) error {
	mode := fs.FileMode(0o600)
	if at, err := filepath.EvalSymlinks(path); err == nil {
		path = at
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		mode = info.Mode().Perm()
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+"-*") // with mode 0600
	if err != nil {
		return err
	}
	_, err = io.Copy(f, bytes.NewReader(text))
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
