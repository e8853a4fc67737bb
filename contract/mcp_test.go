package contract_test

import (
	"net/http"
	"strings"
	"testing"
)

// newestMCP is the protocol version whose errors have an HTTP status.
const newestMCP = "2026-07-28"

// mcpProtocol tests the responses and errors of POST /mcp.
func mcpProtocol(t *testing.T, w *world) {
	mcp := w.call("callMcp")
	call := func(tool, arguments, meta string) call {
		return mcp.saying(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments + `,"_meta":{` + meta + `}}}`)
	}
	w.send(t, mcp.saying(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)).want(t, http.StatusAccepted)

	said := w.send(t, mcp.saying(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`))
	said.want(t, http.StatusOK).wantContains(t, `"protocolVersion":"2025-06-18"`)

	wait := call("wait_for_email", `{"timeout":1,"since":"2040-01-01T00:00:00Z"}`, `"progressToken":7`).asking("inbox_id", w.inbox.ID)
	stream := w.send(t, wait.with("Accept", "application/json, text/event-stream")).want(t, http.StatusOK)
	if got := stream.header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("media type of a call with progress: %q", got)
	}
	single := w.send(t, wait.with("Accept", "application/json")).want(t, http.StatusOK)
	single.wantContains(t, `"timed_out":true`)

	for _, fault := range []struct{ what, body, version, message string }{
		{"an unknown notification", `{"jsonrpc":"2.0","method":"mail/delete"}`, "", "MCP: "},
		{"no such version", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "2020-01-01", "MCP: "},
		{"another version in the body", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01"}}}`, newestMCP, `"jsonrpc"`},
	} {
		a := w.send(t, mcp.saying(fault.body).with("MCP-Protocol-Version", fault.version))
		if a.want(t, http.StatusBadRequest); !strings.Contains(string(a.body), fault.message) {
			t.Errorf("%s: %s", fault.what, a.body)
		}
	}
	unknown := mcp.saying(`{"jsonrpc":"2.0","id":1,"method":"mail/delete","params":{}}`).with("MCP-Protocol-Version", newestMCP)
	w.send(t, unknown).want(t, http.StatusNotFound).wantContains(t, `"code":-32601`)
	older := mcp.saying(`{"jsonrpc":"2.0","id":"one","method":"mail/delete"}`)
	w.send(t, older).want(t, http.StatusOK).wantContains(t, `"code":-32601`)

	list := mcp.saying(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	w.send(t, list.with("Origin", "http://attacker.example")).wantCode(t, http.StatusForbidden, "origin_not_allowed") // H18: TestOriginOfMCP has the others
	if got := w.send(t, list.as("")).wantCode(t, http.StatusUnauthorized, "unauthorized").header.Get("WWW-Authenticate"); got != "Bearer" {
		t.Errorf("WWW-Authenticate %q", got)
	}
	w.send(t, call("list_inboxes", `{"limit":1,"limit":2}`, "")).wantCode(t, http.StatusBadRequest, "invalid_request")
	w.send(t, mcp.breaking().saying(`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`)).wantCode(t, http.StatusBadRequest, "invalid_request")
}

func (a response) wantContains(t *testing.T, part string) {
	t.Helper()
	if !strings.Contains(string(a.body), part) {
		t.Errorf("%s: %.1000s lacks %q", a.call, a.body, part)
	}
}
