// Package smtptest provides the other hosts of the mail system for tests: SMTP
// servers that store messages, servers with scripted replies, and a DNS server.
// They listen on loopback addresses and stop at the end of the test.
package smtptest

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	gosmtp "github.com/emersion/go-smtp"
)

// Message is a message that an MX accepted.
type Message struct {
	From string
	To   []string // accepted recipients
	Data []byte   // as received, with CRLF
	HELO string
	TLS  bool
	UTF8 bool   // MAIL had SMTPUTF8
	User string // authenticated user
	Peer string // address of the client, different for each connection
}

// MXConfig configures an MX. The zero value accepts everything.
type MXConfig struct {
	// Listener is the listener; nil means a free port of 127.0.0.1.
	Listener net.Listener
	// Name is the server's host name; empty means mx.test.
	Name string
	// TLS enables STARTTLS; with Implicit, TLS from the first byte.
	TLS      *tls.Config
	Implicit bool
	// Users requires AUTH PLAIN; it maps names to passwords.
	Users map[string]string
	// UTF8 enables SMTPUTF8.
	UTF8 bool
	// MaxSize is the maximum size of a message in bytes; 0 means unlimited.
	MaxSize int64
	// Mail, Rcpt and Data, if set, run before the reply. An error from Refuse
	// becomes the reply.
	Mail func(from string) error
	Rcpt func(rcpt string) error
	Data func(m Message) error
}

// Refuse returns an error for a reply such as 550 5.1.1.
func Refuse(code int, enhanced [3]int, text string) error {
	return &gosmtp.SMTPError{Code: code, EnhancedCode: enhanced, Message: text}
}

// MX is an SMTP server that stores messages in memory.
type MX struct {
	cfg   MXConfig
	addr  *net.TCPAddr
	conns atomic.Int64
	open  atomic.Int64
	most  atomic.Int64

	mu       sync.Mutex
	messages []Message
	arrived  chan struct{} // closed and replaced with each message
}

// NewMX starts an MX.
func NewMX(t testing.TB, cfg MXConfig) *MX {
	t.Helper()
	if cfg.Listener == nil {
		cfg.Listener = Listen(t, "127.0.0.1")[0]
	}
	m := &MX{cfg: cfg, addr: cfg.Listener.Addr().(*net.TCPAddr), arrived: make(chan struct{})}
	srv := gosmtp.NewServer(gosmtp.BackendFunc(m.newSession))
	srv.Domain, srv.TLSConfig, srv.EnableSMTPUTF8 = cmp.Or(cfg.Name, "mx.test"), cfg.TLS, cfg.UTF8
	srv.MaxMessageBytes, srv.AllowInsecureAuth = cfg.MaxSize, true
	srv.ReadTimeout, srv.WriteTimeout = time.Minute, time.Minute
	srv.ErrorLog = quiet{}
	var l net.Listener = &counter{cfg.Listener, m}
	if cfg.Implicit {
		srv.TLSConfig, l = nil, tls.NewListener(l, cfg.TLS)
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	t.Cleanup(func() {
		_ = srv.Close()          // a test may have closed the listener
		_ = cfg.Listener.Close() // if srv did not serve it yet
		if err := <-served; err != nil && !errors.Is(err, gosmtp.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			t.Errorf("fake MX: %v", err)
		}
	})
	return m
}

// Port returns the listening port.
func (m *MX) Port() uint16 { return uint16(m.addr.Port) } //nolint:gosec // a port fits

// IP returns the listening address.
func (m *MX) IP() string { return m.addr.IP.String() }

// Addr returns host:port.
func (m *MX) Addr() string { return m.addr.String() }

// Conns returns the number of connections so far.
func (m *MX) Conns() int { return int(m.conns.Load()) }

// MostConns returns the maximum number of simultaneous connections.
func (m *MX) MostConns() int { return int(m.most.Load()) }

// Messages returns the accepted messages, oldest first.
func (m *MX) Messages() []Message {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.messages)
}

// Wait waits until n messages have arrived and returns them. It fails the test
// after 20 seconds.
func (m *MX) Wait(t testing.TB, n int) []Message {
	t.Helper()
	timeout := time.After(time.Minute)
	for {
		m.mu.Lock()
		messages, arrived := slices.Clone(m.messages), m.arrived
		m.mu.Unlock()
		if len(messages) >= n {
			return messages
		}
		select {
		case <-arrived:
		case <-timeout:
			t.Fatalf("the fake MX has %d messages, want %d", len(messages), n)
		}
	}
}

func (m *MX) keep(message Message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.messages = append(m.messages, message)
	close(m.arrived)
	m.arrived = make(chan struct{})
}

func (m *MX) newSession(c *gosmtp.Conn) (gosmtp.Session, error) {
	return &session{mx: m, conn: c}, nil
}

type session struct {
	mx      *MX
	conn    *gosmtp.Conn
	user    string
	message Message
}

func (s *session) AuthMechanisms() []string {
	if s.mx.cfg.Users == nil {
		return nil
	}
	return []string{sasl.Plain}
}

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if want, ok := s.mx.cfg.Users[user]; !ok || want != password {
			return gosmtp.ErrAuthFailed
		}
		s.user = user
		return nil
	}), nil
}

func (s *session) Mail(from string, opts *gosmtp.MailOptions) error {
	if s.mx.cfg.Users != nil && s.user == "" {
		return gosmtp.ErrAuthRequired
	}
	_, secure := s.conn.TLSConnectionState()
	s.message = Message{From: from, HELO: s.conn.Hostname(), TLS: secure, UTF8: opts.UTF8, User: s.user, Peer: s.conn.Conn().RemoteAddr().String()}
	if s.mx.cfg.Mail != nil {
		return s.mx.cfg.Mail(from)
	}
	return nil
}

func (s *session) Rcpt(rcpt string, _ *gosmtp.RcptOptions) error {
	if s.mx.cfg.Rcpt != nil {
		if err := s.mx.cfg.Rcpt(rcpt); err != nil {
			return err
		}
	}
	s.message.To = append(s.message.To, rcpt)
	return nil
}

func (s *session) Data(r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.message.Data = data
	if s.mx.cfg.Data != nil {
		if err := s.mx.cfg.Data(s.message); err != nil {
			return err
		}
	}
	s.mx.keep(s.message)
	return nil
}

func (s *session) Reset()        { s.message = Message{} }
func (s *session) Logout() error { return nil }

// counter counts connections.
type counter struct {
	net.Listener
	mx *MX
}

func (c *counter) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c.mx.conns.Add(1)
	open := c.mx.open.Add(1)
	for most := c.mx.most.Load(); open > most && !c.mx.most.CompareAndSwap(most, open); {
		most = c.mx.most.Load()
	}
	return &counted{Conn: conn, mx: c.mx}, nil
}

type counted struct {
	net.Conn
	mx   *MX
	once sync.Once
}

func (c *counted) Close() error {
	c.once.Do(func() { c.mx.open.Add(-1) })
	return c.Conn.Close()
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}
func (quiet) Println(...any)        {}

// Listen listens on the same free port of every ip. Only Linux has loopback
// addresses other than 127.0.0.1; elsewhere the test is skipped.
func Listen(t testing.TB, ips ...string) []net.Listener {
	t.Helper()
	var err error
	for range 50 { // the port may be in use on another address
		var listeners []net.Listener
		if listeners, err = listen(t, ips); err == nil {
			for _, l := range listeners {
				t.Cleanup(func() { _ = l.Close() })
			}
			return listeners
		}
	}
	if runtime.GOOS != "linux" && len(ips) > 1 {
		t.Skipf("no loopback addresses %v on %s", ips, runtime.GOOS)
	}
	t.Fatalf("listen on %v: %v", ips, err)
	return nil
}

func listen(t testing.TB, ips []string) (listeners []net.Listener, err error) {
	var lc net.ListenConfig
	port := "0"
	for _, ip := range ips {
		l, err := lc.Listen(t.Context(), "tcp", net.JoinHostPort(ip, port))
		if err != nil {
			for _, l := range listeners {
				_ = l.Close()
			}
			return nil, err
		}
		listeners = append(listeners, l)
		port = fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
	}
	return listeners, nil
}
