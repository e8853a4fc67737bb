//go:build clients

package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/skiptest"
)

// vendorSDKs is where the SDKs of vendors are, with the scripts that use them.
const vendorSDKs = "testdata/dropin"

// TestVendorSDKs runs the published SDKs of other products against `postroom dev`, with
// another address and any key. docs/moving.md lists how each operation went.
func TestVendorSDKs(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(vendorSDKs + "/node_modules"); err != nil {
		skiptest.OutsideCI(t, vendorSDKs+"/node_modules is not there")
	}
	docs := strings.Join(strings.Fields(readFile(t, "../../docs/moving.md")), " ")
	scripts, err := filepath.Glob(vendorSDKs + "/*.mjs")
	if err != nil || len(scripts) < 2 {
		t.Fatalf("%d scripts (%v)", len(scripts), err)
	}
	for _, script := range append(scripts, vendorSDKs+"/go") {
		name := strings.TrimSuffix(filepath.Base(script), ".mjs")
		if name == "try" { // what the others share
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command, dir := []string{"node", filepath.Base(script)}, vendorSDKs
			if name == "go" {
				command, dir = []string{"go", "run", "."}, script
			}
			out := vendorProgram(t, dir, command...)
			went, works := map[string][]string{}, 0
			for line := range strings.Lines(out) {
				i := strings.LastIndex(line, ": ")
				how := strings.TrimSpace(line[i+2:])
				went[how] = append(went[how], "`"+line[:i]+"`")
			}
			if works = len(went["works"]); works < 12 {
				t.Errorf("%d operations work, want 12", works)
			}
			for how, label := range map[string]string{"works": "Works", "refused": "Refused", "not mapped": "Not there"} {
				line := fmt.Sprintf("**%s:** %s.", label, strings.Join(went[how], ", "))
				if len(went[how]) > 0 && !strings.Contains(docs, line) {
					t.Errorf("docs/moving.md lacks this of %s:\n%s", name, line)
				}
			}
		})
	}
}

// TestVendorApplications runs tests of small applications that were written for a vendor,
// against `postroom dev`.
func TestVendorApplications(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(vendorSDKs + "/node_modules"); err != nil {
		skiptest.OutsideCI(t, vendorSDKs+"/node_modules is not there")
	}
	tests, err := filepath.Glob(vendorSDKs + "/apps/*.test.mjs")
	if err != nil || len(tests) != 3 {
		t.Fatalf("%d tests (%v)", len(tests), err)
	}
	for _, file := range tests {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			if out := vendorProgram(t, vendorSDKs+"/apps", "node", "--test", filepath.Base(file)); !strings.Contains(out, "pass 3") {
				t.Errorf("the tests did not run:\n%s", out)
			}
		})
	}
}

// vendorProgram runs a program that uses SDKs against `postroom dev`, and returns what it prints.
func vendorProgram(t *testing.T, dir string, command ...string) string {
	t.Helper()
	s := dev(t)
	proxy := tlsInFront(t, s.api)
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "POSTROOM_URL="+s.api, "POSTROOM_TLS=https://postroom.example", "https_proxy="+proxy, "HTTPS_PROXY="+proxy,
		"NODE_TLS_REJECT_UNAUTHORIZED=0", "RESEND_BASE_URL="+s.api+"/resend", "RESEND_API_KEY=re_123")
	if command[0] == "go" { // whose SDK wants an address that ends in a slash
		cmd.Env = append(cmd.Env, "RESEND_BASE_URL="+s.api+"/resend/")
	}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v %s\n%s\nlog:\n%s", err, err.(*exec.ExitError).Stderr, out, s.log) //nolint:errorlint // as exec documents
	}
	return string(out)
}

// tlsInFront returns the address of a proxy that leads to a server with TLS in front of api,
// whatever host and port the client asks for: the SDK of Mailosaur has no other port than
// 443.
func tlsInFront(t *testing.T, api string) string {
	t.Helper()
	target, err := url.Parse(api)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }})
	t.Cleanup(server.Close)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		client, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = client.Close() }()
		to, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = to.Close() }()
		_, _ = io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(to, client) }()
		_, _ = io.Copy(client, to)
	}))
	t.Cleanup(proxy.Close)
	return proxy.URL
}
