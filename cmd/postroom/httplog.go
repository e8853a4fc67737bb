package main

import (
	"bytes"
	"context"
	"log"
	"log/slog"
)

// httpLog receives the errors that net/http logs. Failed TLS handshakes are
// logged at debug level, because any port scanner causes them.
type httpLog struct{ log *slog.Logger }

var handshakeFailed = []byte("http: TLS handshake error from ")

func (l httpLog) Write(p []byte) (int, error) {
	text := bytes.TrimSpace(p)
	if rest, ok := bytes.CutPrefix(text, handshakeFailed); ok {
		l.log.DebugContext(context.Background(), "TLS handshake failed", "error", string(rest))
	} else {
		l.log.WarnContext(context.Background(), "HTTP connection error", "error", string(text))
	}
	return len(p), nil
}

func newHTTPLog(l *slog.Logger) *log.Logger { return log.New(httpLog{l}, "", 0) }
