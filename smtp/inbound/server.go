package inbound

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	gosmtp "github.com/emersion/go-smtp"

	"github.com/postroom/postroom/smtp"
	"github.com/postroom/postroom/store"
)

// ServerConfig is what a Server needs. Receiver and Hostname are required; what
// is zero of the rest has the value in brackets.
type ServerConfig struct {
	Receiver *Receiver
	// Hostname is how the server introduces itself.
	Hostname string
	// TLS, when not nil, is offered by STARTTLS.
	TLS *tls.Config
	// Normalize makes CRLF out of a CR or LF that stands alone in a mail. Without
	// it, such mail is refused.
	Normalize bool

	// MaxConns is how many connections there may be [1000], and MaxConnsPerIP
	// from one IPv4 address or IPv6 /64 [50]. One more is answered with 421, or,
	// when MaxConns is reached, the one that is idle.
	MaxConns, MaxConnsPerIP int
	// MaxRecipients is how many recipients a mail may have [100].
	MaxRecipients int
	// MaxSize is the largest mail, in bytes [25 MiB].
	MaxSize int64

	// CommandTimeout is how long a client may wait before it says something [5
	// minutes, RFC 5321 section 4.5.3.2.7], LineTimeout how long a command line or
	// a TLS handshake may take [1 minute], DataTimeout a piece of data [3 minutes],
	// TransactionTimeout all from MAIL to the end of the data [30 minutes], and
	// WriteTimeout to take our answer [1 minute].
	CommandTimeout, LineTimeout, DataTimeout, TransactionTimeout, WriteTimeout time.Duration
	// MinRate is how many bytes of data a second must come [500, as Postfix's
	// smtpd_min_data_rate], once RateGrace is over [1 minute].
	MinRate   int
	RateGrace time.Duration

	// Now is the clock of limits over many connections; nil means time.Now.
	Now func() time.Time
	// Log takes received mail and our own faults; nil means slog.Default().
	Log *slog.Logger
}

func (c ServerConfig) withDefaults() ServerConfig {
	c.MaxConns = cmp.Or(c.MaxConns, defaultMaxConns)
	c.MaxConnsPerIP = cmp.Or(c.MaxConnsPerIP, defaultMaxConnsPerIP)
	c.MaxRecipients = cmp.Or(c.MaxRecipients, smtp.MaxRecipients)
	c.MaxSize = cmp.Or(c.MaxSize, smtp.DefaultMaxSize)
	c.CommandTimeout = cmp.Or(c.CommandTimeout, defaultCommandTimeout)
	c.LineTimeout = cmp.Or(c.LineTimeout, defaultLineTimeout)
	c.DataTimeout = cmp.Or(c.DataTimeout, defaultDataTimeout)
	c.TransactionTimeout = cmp.Or(c.TransactionTimeout, defaultTransactionTimeout)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, defaultWriteTimeout)
	c.MinRate = cmp.Or(c.MinRate, defaultMinRate)
	c.RateGrace = cmp.Or(c.RateGrace, defaultRateGrace)
	c.Log = cmp.Or(c.Log, slog.Default())
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// inboxes is what a session needs of a Receiver.
type inboxes interface {
	target(ctx context.Context, rcpt string) (target, error)
	NewSpool() *Spool
	deliver(ctx context.Context, env smtp.Envelope, to []target, raw *Spool, attempts []*store.Attempt) ([]store.Message, error)
	close(ctx context.Context, raw *Spool)
}

// Server receives mail over SMTP.
type Server struct {
	cfg      ServerConfig
	receiver inboxes
	engine   *gosmtp.Server
	log      *slog.Logger
	ctx      context.Context // of the server's life, for its sessions
	end      context.CancelFunc

	conns        conns
	unknownRcpts *unknownRcpts
	faults       *faultLog
	rest         func(w *wire, d time.Duration) // delays the reply to a client that makes errors
	running      sync.WaitGroup                 // sessions
}

// NewServer returns a server that does not listen yet.
func NewServer(cfg ServerConfig) *Server {
	cfg = cfg.withDefaults()
	s := &Server{cfg: cfg, receiver: cfg.Receiver, log: cfg.Log, unknownRcpts: newUnknownRcpts(cfg.Now), engine: newEngine(cfg), faults: newFaultLog(cfg.Log), rest: (*wire).rest}
	s.ctx, s.end = context.WithCancel(context.Background())
	s.conns.init(cfg.MaxConns, cfg.MaxConnsPerIP)
	return s
}

// Shutdown stops listening, lets mail whose data is coming in finish, and
// answers every other command with 421. It returns when all connections are
// closed; when ctx ends before that, it breaks them off and returns its error.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.conns.stop()
	done := make(chan struct{})
	go func() {
		s.running.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		s.conns.abort()
		err = errors.Join(err, ctx.Err())
	}
	s.end()
	if err != nil {
		return fmt.Errorf("shut down the SMTP server: %w", err)
	}
	return nil
}
