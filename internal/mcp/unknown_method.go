package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// unhandled starts the SDK's plain-text error for an unknown method.
const unhandled = "JSON RPC not handled: "

// unknownMethod rewrites the SDK's error for unknown methods into a JSON-RPC error
// (JSON-RPC 2.0 section 5.1) with the id of the call. The SDK does so for
// protocol version 2026-07-28 and later; for older ones it sends 400 in plain
// text.
type unknownMethod struct {
	http.ResponseWriter
	id     json.RawMessage
	method string
	held   bool // status 400, not yet written
}

// WriteHeader implements http.ResponseWriter.
func (w *unknownMethod) WriteHeader(status int) {
	if status == http.StatusBadRequest && len(w.id) > 0 && strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		w.held = true
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter. The SDK writes the error text in a single
// call.
func (w *unknownMethod) Write(text []byte) (int, error) {
	if !w.held {
		return w.ResponseWriter.Write(text)
	}
	w.held = false
	if !bytes.HasPrefix(text, []byte(unhandled)) {
		w.ResponseWriter.WriteHeader(http.StatusBadRequest)
		return w.ResponseWriter.Write(text)
	}
	body, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": w.id,
		"error": jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("unknown method %q", w.method)},
	})
	if err != nil {
		return 0, err
	}
	w.Header().Set("Content-Type", "application/json")
	w.ResponseWriter.WriteHeader(http.StatusOK)
	if _, err := w.ResponseWriter.Write(body); err != nil {
		return 0, err
	}
	return len(text), nil
}

// Unwrap lets http.ResponseController reach the connection.
func (w *unknownMethod) Unwrap() http.ResponseWriter { return w.ResponseWriter }
