package httpserver

import (
	"bytes"
	"context"
	"log"
	"log/slog"
)

// errorLog receives the errors that net/http logs. Failed TLS handshakes are
// logged at debug level, because any port scanner causes them.
type errorLog struct{ log *slog.Logger }

var handshakeFailed = []byte("http: TLS handshake error from ")

func (l errorLog) Write(p []byte) (int, error) {
	text := bytes.TrimSpace(p)
	if rest, ok := bytes.CutPrefix(text, handshakeFailed); ok {
		l.log.DebugContext(context.Background(), "TLS handshake failed", "error", string(rest))
	} else {
		l.log.WarnContext(context.Background(), "HTTP connection error", "error", string(text))
	}
	return len(p), nil
}

func newLog(l *slog.Logger) *log.Logger { return log.New(errorLog{l}, "", 0) }
