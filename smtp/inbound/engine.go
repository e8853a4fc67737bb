package inbound

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	gosmtp "github.com/emersion/go-smtp"
)

// newEngine returns the go-smtp server that runs the dialogue. It sees every
// connection through a guard, which bounds lines, sizes and times; the limits set
// here are the ones that it announces and checks itself.
func newEngine(cfg ServerConfig) *gosmtp.Server {
	e := gosmtp.NewServer(gosmtp.BackendFunc(func(c *gosmtp.Conn) (gosmtp.Session, error) {
		return c.Conn().(*guard).session, nil
	}))
	e.Domain = cfg.Hostname
	e.MaxRecipients = cfg.MaxRecipients
	e.MaxMessageBytes = cfg.MaxSize
	e.MaxLineLength = 0
	e.EnableSMTPUTF8 = true
	e.AllowInsecureAuth = true // the guard checks that AUTH is encrypted
	e.ErrorLog = engineLog{cfg.Log}
	return e
}

// engineLog writes what go-smtp reports, such as a recovered panic.
type engineLog struct{ log *slog.Logger }

func (l engineLog) Printf(format string, v ...any) {
	l.log.Error("SMTP engine", "error", fmt.Sprintf(format, v...))
}

func (l engineLog) Println(v ...any) { l.log.Error("SMTP engine", "error", fmt.Sprint(v...)) }

// guardListener accepts connections for the engine: it enforces the limits on
// connections and puts a guard before each.
type guardListener struct {
	net.Listener
	server *Server
}

// Accept returns the next connection that the server may serve.
func (l guardListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		w := newWire(l.server, conn)
		refusal := l.server.conns.enter(w)
		if refusal == nil {
			return newGuard(l.server, w), nil
		}
		if l.server.cfg.OnRefused != nil {
			l.server.cfg.OnRefused(Refusal{IP: w.ip.String(), Reply: refusal.Error(), Count: 1})
		}
		if conn.SetWriteDeadline(time.Now().Add(refuseTimeout)) == nil {
			_, _ = io.WriteString(conn, refusal.Error()+"\r\n") // the client may have disconnected
		}
		_ = conn.Close()
	}
}

// Serve accepts connections until Shutdown, then returns nil. It closes l.
func (s *Server) Serve(l net.Listener) error {
	if !s.conns.listen(l) {
		return l.Close()
	}
	err := s.engine.Serve(guardListener{l, s})
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return fmt.Errorf("accept SMTP connections: %w", errors.Join(err, l.Close()))
}
