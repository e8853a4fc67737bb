package httpserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/store"
)

// errorListener returns connections that send every error as JSON. That includes
// the plain-text errors that net/http sends before a handler runs.
type errorListener struct {
	net.Listener
	server *Server
}

func (l errorListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &errorConn{Conn: c, server: l.server}, nil
}

type errorConn struct {
	net.Conn
	server *Server
	active atomic.Bool // a request is in progress
	begun  atomic.Bool // part of the next request was read

	// Used only by the goroutine that reads.
	framing framing
	rest    []byte // already read, part of a later request
	refused bool

	// Used only by the goroutine that handles requests.
	resumed any  // the State of the pause after which the first request continues
	stay    bool // it is not parked again: the client has sent more
}

// change follows the state of the connection in http.Server.
func (c *errorConn) change(state http.ConnState) {
	c.active.Store(state == http.StateActive)
	if state != http.StateActive {
		c.begun.Store(false)
	}
}

// Read never returns bytes of two requests at once, so that it sees the whole head
// of each request before net/http does. It responds 400 to a request with both
// Content-Length and Transfer-Encoding, and 408 when the head of a request does
// not arrive in time: net/http only closes the connection then. A request that
// never began needs no response.
func (c *errorConn) Read(p []byte) (int, error) {
	if c.refused {
		return 0, io.EOF
	}
	n, err := c.receive(p)
	used, ambiguous := c.framing.next(p[:n])
	if ambiguous {
		c.refuse()
		return 0, io.EOF
	}
	if used < n {
		c.rest = append(bytes.Clone(p[used:n]), c.rest...)
	}
	if used > 0 {
		c.begun.Store(true)
	}
	if isTimeout(err) && c.begun.Load() && !c.active.Load() {
		c.begun.Store(false)
		c.respond(http.StatusRequestTimeout, "the head of the request took too long to arrive")
	}
	return used, err
}

// receive returns what was read before, or reads from the network.
func (c *errorConn) receive(p []byte) (int, error) {
	if len(c.rest) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// refuse responds to a request whose end is ambiguous. It then reads for a moment
// what the client is still sending, because otherwise the response could be lost.
func (c *errorConn) refuse() {
	c.refused = true
	c.respond(http.StatusBadRequest, "Transfer-Encoding cannot be combined with Content-Length or HTTP/1.0: send Content-Length alone")
	_ = c.CloseWrite()
	_ = c.SetReadDeadline(time.Now().Add(500 * time.Millisecond)) // socket deadline, so wall clock
	_, _ = io.CopyN(io.Discard, c.Conn, 256<<10)
}

// respond writes an error response. The client may not read it.
func (c *errorConn) respond(status int, message string) {
	_ = c.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = c.Conn.Write(jsonError(status, message))
}

// plainError follows the status line of the errors that net/http itself writes,
// each with a single Write.
var plainError = []byte("\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n")

const statusLine = "HTTP/1.1 "

// Write replaces a plain-text error with JSON.
func (c *errorConn) Write(p []byte) (int, error) {
	head, text, plain := bytes.Cut(p, plainError)
	if !plain || !bytes.HasPrefix(head, []byte(statusLine)) || bytes.IndexByte(head, '\n') >= 0 || len(p) > 1000 {
		return c.Conn.Write(p)
	}
	status, err := strconv.Atoi(string(head[len(statusLine) : len(statusLine)+3]))
	if err != nil {
		return c.Conn.Write(p)
	}
	if _, err := c.Conn.Write(jsonError(status, string(text))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// CloseWrite closes the sending side, so that the client can read the response
// before the connection closes.
func (c *errorConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

func isTimeout(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// jsonError returns a complete HTTP response.
func jsonError(status int, message string) []byte {
	id := store.NewID("req_", time.Now())
	body, _ := json.Marshal(&gen.Error{Error: gen.ErrorBody{Code: headCode(status), Message: message, RequestID: id}}) // cannot fail for strings
	retry := ""
	if status == http.StatusServiceUnavailable {
		retry = "Retry-After: 1\r\n"
	}
	return fmt.Appendf(nil, "%s%d %s\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: %d\r\n%sX-Request-Id: %s\r\nConnection: close\r\n\r\n%s",
		statusLine, status, http.StatusText(status), len(body), retry, id, body)
}

func headCode(status int) string {
	switch status {
	case http.StatusRequestTimeout:
		return gen.ErrorCodeRequestTimeout
	case http.StatusRequestHeaderFieldsTooLarge:
		return gen.ErrorCodeHeadersTooLarge
	case http.StatusServiceUnavailable:
		return gen.ErrorCodeUnavailable
	}
	return gen.ErrorCodeInvalidRequest
}
