package contract_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// agent is the official client connected to the MCP server.
type agent struct {
	*mcp.ClientSession
	progress chan *mcp.ProgressNotificationParams
}

// agentWith connects with the key and adds query to the URL.
func (in *install) agentWith(t *testing.T, key, query string) *agent {
	t.Helper()
	a := &agent{progress: make(chan *mcp.ProgressNotificationParams, 100)}
	client := mcp.NewClient(&mcp.Implementation{Name: "contract", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { a.progress <- r.Params },
	})
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint: in.api + "/mcp" + query, HTTPClient: &http.Client{Transport: withKey{in.check.Transport(t, in.base), key}},
	}, nil)
	must(t, err)
	a.ClientSession = session
	t.Cleanup(func() { _ = session.Close() }) // the server has no sessions
	return a
}

// withKey adds a key to requests.
type withKey struct {
	base http.RoundTripper
	key  string
}

func (k withKey) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+k.key)
	return k.base.RoundTrip(r)
}

// said is the result of a tool.
type said struct {
	failed bool
	text   string
	data   map[string]any
}

// use calls a tool.
func (a *agent) use(t *testing.T, tool string, args map[string]any) said {
	t.Helper()
	return a.useWith(t, &mcp.CallToolParams{Name: tool, Arguments: args})
}

func (a *agent) useWith(t *testing.T, params *mcp.CallToolParams) said {
	t.Helper()
	res, err := a.CallTool(t.Context(), params)
	if err != nil {
		t.Fatalf("%s %v: %v", params.Name, params.Arguments, err)
	}
	if len(res.Content) != 1 {
		t.Fatalf("%s: %d contents", params.Name, len(res.Content))
	}
	s := said{failed: res.IsError, text: res.Content[0].(*mcp.TextContent).Text}
	s.data, _ = res.StructuredContent.(map[string]any)
	if s.failed == (s.data != nil) {
		t.Errorf("%s: isError %t with data %v", params.Name, s.failed, s.data)
	}
	return s
}

// want fails the test if the tool failed.
func (s said) want(t *testing.T) said {
	t.Helper()
	if s.failed {
		t.Fatalf("the tool failed: %s", s.text)
	}
	return s
}

// wantRefused fails the test unless the tool failed with the code.
func (s said) wantRefused(t *testing.T, code string) {
	t.Helper()
	if !s.failed || !strings.HasPrefix(s.text, code+": ") {
		t.Errorf("got %.300q, want the error %s", s.text, code)
	}
}

func (s said) wantText(t *testing.T, parts ...string) said {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(s.text, part) {
			t.Errorf("the text lacks %q:\n%s", part, s.text)
		}
	}
	return s
}

// at returns a string in the data, by member names. In lists it takes the first
// item.
func (s said) at(t *testing.T, path ...string) string {
	t.Helper()
	var v any = s.data
	for _, name := range path {
		if l, ok := v.([]any); ok && len(l) > 0 {
			v = l[0]
		}
		m, _ := v.(map[string]any)
		v = m[name]
	}
	out, ok := v.(string)
	if !ok {
		b, err := json.Marshal(s.data)
		t.Errorf("no text at %v: %s (%v)", path, b, err)
	}
	return out
}
