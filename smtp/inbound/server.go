package inbound

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	gosmtp "github.com/emersion/go-smtp"

	"github.com/postroom/postroom/internal/spool"
	"github.com/postroom/postroom/smtp"
	"github.com/postroom/postroom/store"
)

// ServerConfig configures a Server. Receiver and Hostname are required. Other
// zero fields have the default in brackets.
type ServerConfig struct {
	Receiver *Receiver
	// Hostname is the server's name in its greeting.
	Hostname string
	// TLS, if not nil, enables STARTTLS.
	TLS *tls.Config
	// ImplicitTLS starts TLS before the greeting (RFC 8314) instead of STARTTLS.
	ImplicitTLS bool
	// Submission, if not nil, makes this a server for submission (RFC 6409). It
	// passes messages on instead of storing them in inboxes.
	Submission *Submission
	// Normalize converts a bare CR or LF in a message to CRLF. Otherwise the
	// message is refused.
	Normalize bool

	// MaxConns limits the connections [1000], and MaxConnsPerIP those of one IPv4
	// address or IPv6 /64 [50]. At the limit a new client is refused with 421; at
	// MaxConns, an idle client is disconnected instead if there is one.
	MaxConns, MaxConnsPerIP int
	// MaxSize is the maximum size of a message in bytes. It must be set.
	MaxSize int64

	// OnRefused, if not nil, is called when a session ends in which the server refused
	// something, and for a client whose connection it refused.
	OnRefused func(Refusal)
	// Now is the clock for limits that span connections; nil means time.Now.
	Now func() time.Time
	// Log receives accepted messages and our own faults; nil means
	// slog.Default().
	Log *slog.Logger

	limits // zero means defaultLimits
}

// Refusal is a session in which the server refused something.
type Refusal struct {
	IP, HELO string
	From, To string // the sender, and the recipient of the refused command; empty before
	// Reply is the first refusal, and Count is how many there were.
	Reply string
	Count int
}

// inboxes is the part of Receiver that a session uses.
type inboxes interface {
	target(ctx context.Context, rcpt string) (target, error)
	hasRoom(to []target) error
	NewSpool() *spool.Spool
	deliver(ctx context.Context, env smtp.Envelope, to []target, raw *spool.Spool, attempts []*store.Attempt) ([]store.Message, error)
	close(ctx context.Context, raw *spool.Spool)
}

// Server receives messages over SMTP.
type Server struct {
	cfg      ServerConfig
	receiver inboxes
	engine   *gosmtp.Server  // runs the dialogue
	ctx      context.Context // ends with the server
	end      context.CancelFunc

	conns        conns
	unknownRcpts unknownRcpts
	sameHost     func(client netip.Addr) bool // the client runs on this host
	faults       sync.Map                     // when a fault of ours was last logged, by step
}

// NewServer returns a server that does not listen yet.
func NewServer(cfg ServerConfig) *Server {
	cfg.MaxConns = cmp.Or(cfg.MaxConns, 1000)
	cfg.MaxConnsPerIP = cmp.Or(cfg.MaxConnsPerIP, 50)
	cfg.limits = cmp.Or(cfg.limits, defaultLimits)
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &Server{
		cfg: cfg, receiver: cfg.Receiver, engine: newEngine(cfg), sameHost: netip.Addr.IsLoopback,
		conns: conns{
			max: cfg.MaxConns, perNetwork: cfg.MaxConnsPerIP, minIdle: minIdle, mailGrace: mailGrace,
			open: map[*conn]struct{}{}, byNetwork: map[netip.Prefix]int{},
		},
		unknownRcpts: unknownRcpts{now: cfg.Now},
	}
	s.ctx, s.end = context.WithCancel(context.Background())
	return s
}

// newEngine returns the go-smtp server that runs the dialogue. Its conn limits lines,
// sizes and times, and the session checks sizes, so that a message of exactly the limit
// is accepted.
func newEngine(cfg ServerConfig) *gosmtp.Server {
	e := gosmtp.NewServer(gosmtp.BackendFunc(func(engine *gosmtp.Conn) (gosmtp.Session, error) {
		c, _ := engine.Conn().(*conn) // as Accept returns it
		return c.session, nil
	}))
	e.Domain = cfg.Hostname
	e.MaxRecipients = cfg.MaxRecipients
	e.MaxLineLength = 0
	e.EnableSMTPUTF8 = true
	e.AllowInsecureAuth = true                                         // the session checks that AUTH is encrypted
	e.ErrorLog = slog.NewLogLogger(cfg.Log.Handler(), slog.LevelError) // for a recovered panic
	return e
}

// Serve accepts connections until Shutdown, then returns nil. It closes l.
func (s *Server) Serve(l net.Listener) error {
	defer context.AfterFunc(s.ctx, func() { _ = l.Close() })() // Shutdown may have come first
	if err := s.engine.Serve(listener{l, s}); err != nil {
		return fmt.Errorf("accept SMTP connections: %w", errors.Join(err, l.Close()))
	}
	return nil
}

// listener accepts connections, and enforces the limits on them.
type listener struct {
	net.Listener
	server *Server
}

// Accept returns the next connection that the server may serve.
func (l listener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := newConn(l.server, raw)
		refusal := l.server.conns.enter(c)
		if refusal == nil {
			return c, nil
		}
		if l.server.cfg.OnRefused != nil {
			l.server.cfg.OnRefused(Refusal{IP: c.ip.String(), Reply: refusal.Error(), Count: 1})
		}
		_, _ = io.WriteString(raw, refusal.Error()+"\r\n") // it fits the buffer of the socket; the client may be gone
		_ = raw.Close()
	}
}

// Shutdown stops listening, lets messages in progress finish, and replies 421 to
// every other command. It returns when all connections are closed. If ctx ends
// first, it closes them and returns its error.
func (s *Server) Shutdown(ctx context.Context) error {
	defer s.end()
	s.conns.stop()
	if err := s.engine.Shutdown(ctx); err != nil && !errors.Is(err, gosmtp.ErrServerClosed) {
		s.conns.abort()
		return fmt.Errorf("shut down the SMTP server: %w", err)
	}
	return nil
}
