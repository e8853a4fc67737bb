package smtp

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	gosmtp "github.com/emersion/go-smtp"
)

// ServerConfig is what a Server needs. Receiver and Hostname are required; what
// is zero of the rest has the value in brackets.
type ServerConfig struct {
	Receiver *Receiver
	// Hostname is how the server introduces itself.
	Hostname string
	// TLS, when not nil, is offered by STARTTLS.
	TLS *tls.Config

	// MaxConns is how many connections there may be [1000], and MaxConnsPerIP
	// from one address [100]. One more is answered with 421.
	MaxConns, MaxConnsPerIP int
	// MaxRecipients is how many recipients a mail may have [100].
	MaxRecipients int
	// MaxSize is the largest mail, in bytes [25 MiB].
	MaxSize int64

	// CommandTimeout is how long a client may take for a command [5 minutes, RFC
	// 5321 section 4.5.3.2.7], DataTimeout for a piece of data [3 minutes],
	// TransactionTimeout from MAIL to the end of the data [30 minutes], and
	// WriteTimeout to take our answer [1 minute].
	CommandTimeout, DataTimeout, TransactionTimeout, WriteTimeout time.Duration

	// Log takes received mail and our own faults; nil means slog.Default().
	Log *slog.Logger
}

func (c ServerConfig) withDefaults() ServerConfig {
	c.MaxConns = cmp.Or(c.MaxConns, 1000)
	c.MaxConnsPerIP = cmp.Or(c.MaxConnsPerIP, 100)
	c.MaxRecipients = cmp.Or(c.MaxRecipients, 100)
	c.MaxSize = cmp.Or(c.MaxSize, 25<<20)
	c.CommandTimeout = cmp.Or(c.CommandTimeout, 5*time.Minute)
	c.DataTimeout = cmp.Or(c.DataTimeout, 3*time.Minute)
	c.TransactionTimeout = cmp.Or(c.TransactionTimeout, 30*time.Minute)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, time.Minute)
	c.Log = cmp.Or(c.Log, slog.Default())
	return c
}

// Server receives mail over SMTP. go-smtp reads the commands and writes the
// replies; the connections under it are ours (see wire).
type Server struct {
	cfg ServerConfig
	log *slog.Logger
	ctx context.Context // of the server's life, for its sessions
	end context.CancelFunc

	// plain serves connections until STARTTLS, secure those after it, so that
	// nothing of a session in clear survives (RFC 3207 section 4.2).
	plain, secure *gosmtp.Server
	upgrades      *handover
	startSecure   sync.Once

	conns   conns
	running sync.WaitGroup // connections, and mail of theirs being stored
}

// NewServer returns a server that does not listen yet.
func NewServer(cfg ServerConfig) *Server {
	cfg = cfg.withDefaults()
	s := &Server{cfg: cfg, log: cfg.Log, upgrades: newHandover()}
	s.ctx, s.end = context.WithCancel(context.Background())
	s.conns.init(cfg.MaxConns, cfg.MaxConnsPerIP)
	s.plain, s.secure = s.newProtocol(), s.newProtocol()
	s.plain.TLSConfig = cfg.TLS
	return s
}

// newProtocol configures go-smtp. Its limits on time and line length are left
// out: the wire has them.
func (s *Server) newProtocol() *gosmtp.Server {
	p := gosmtp.NewServer(gosmtp.BackendFunc(s.newSession))
	p.Domain = s.cfg.Hostname
	p.MaxRecipients = s.cfg.MaxRecipients
	p.MaxMessageBytes = s.cfg.MaxSize
	p.MaxLineLength = 0
	p.EnableSMTPUTF8 = true
	p.ErrorLog = protocolLog{s}
	return p
}

func (s *Server) newSession(c *gosmtp.Conn) (gosmtp.Session, error) {
	w, ok := c.Conn().(*wire)
	if !ok {
		return nil, replyTryLater
	}
	return &session{server: s, wire: w, conn: c}, nil
}

// Serve accepts connections until Shutdown, after which it returns nil. It
// closes l.
func (s *Server) Serve(l net.Listener) error {
	if !s.conns.listen(l) {
		return l.Close()
	}
	if s.cfg.TLS != nil {
		s.startSecure.Do(func() { go s.serveUpgrades() })
	}
	err := s.plain.Serve(&listener{l, s})
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("accept SMTP connections: %w", errors.Join(err, l.Close()))
	}
	return nil
}

func (s *Server) serveUpgrades() {
	if err := s.secure.Serve(s.upgrades); err != nil && !errors.Is(err, net.ErrClosed) {
		s.log.ErrorContext(s.ctx, "smtp: encrypted sessions ended", "error", err)
	}
}

// Shutdown stops listening, lets mail whose data is coming in finish, and
// answers every other command with 421. It returns when all connections are
// closed; when ctx ends before that, it breaks them off and returns its error.
func (s *Server) Shutdown(ctx context.Context) error {
	closeErr := s.conns.stop()
	errs := []error{closeErr, s.plain.Shutdown(ctx), s.upgrades.Close(), s.secure.Shutdown(ctx)}
	done := make(chan struct{})
	go func() {
		s.running.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		s.conns.abort()
		errs = append(errs, ctx.Err())
	}
	s.end()
	for _, err := range errs {
		if err != nil && !errors.Is(err, gosmtp.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("shut down the SMTP server: %w", err)
		}
	}
	return nil
}

// protocolLog takes what go-smtp itself has to say, which is about faults only.
type protocolLog struct{ s *Server }

// Printf implements gosmtp.Logger.
func (l protocolLog) Printf(format string, v ...any) {
	l.s.log.ErrorContext(l.s.ctx, "smtp protocol", "detail", fmt.Sprintf(format, v...))
}

// Println implements gosmtp.Logger.
func (l protocolLog) Println(v ...any) {
	l.s.log.ErrorContext(l.s.ctx, "smtp protocol", "detail", fmt.Sprintln(v...))
}
