package outbound

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/postroom/postroom/internal/crashpoint"
	"github.com/postroom/postroom/internal/netguard"
)

// ErrNoTLS means that a server does not offer the required STARTTLS.
var ErrNoTLS = errors.New("server offers no TLS")

// ErrAuth means that the relay refused our credentials.
var ErrAuth = errors.New("credentials not accepted")

// Dialer opens connections that are ready for a transaction.
type Dialer struct {
	HELO     string
	Timeouts Timeouts
	Guard    *netguard.Guard
	Roots    *x509.CertPool
}

// Dial connects to e at addr and binds the connection to ctx. With TLSMaybe, it
// retries without TLS if TLS fails.
func (d *Dialer) Dial(ctx context.Context, e Endpoint, addr netip.Addr) (*Peer, error) {
	p, err := d.open(ctx, e, addr, e.TLS)
	if _, ok := errors.AsType[*TLSError](err); ok && e.TLS == TLSMaybe && ctx.Err() == nil {
		p, err = d.open(ctx, e, addr, tlsNever)
	}
	return p, err
}

func (d *Dialer) open(ctx context.Context, e Endpoint, addr netip.Addr, policy TLSPolicy) (*Peer, error) {
	nd := net.Dialer{Timeout: d.Timeouts.Connect}
	if !e.Trusted {
		nd.Control = d.Guard.Control
	}
	conn, err := nd.DialContext(ctx, "tcp", netip.AddrPortFrom(addr, e.Port).String())
	if err != nil {
		return nil, err
	}
	crashpoint.Reach(crashpoint.Connect)
	p := newPeer(e, conn, d.Timeouts)
	p.attach(ctx)
	if err := d.ready(ctx, p, policy); err != nil {
		p.quit()
		return nil, err
	}
	return p, nil
}

// ready performs greeting, TLS and authentication.
func (d *Dialer) ready(ctx context.Context, p *Peer, policy TLSPolicy) error {
	if p.At.implicit {
		if err := p.handshake(ctx, p.At.tlsConfig(policy, d.Roots)); err != nil {
			return err
		}
	}
	if err := p.greet(d.HELO); err != nil {
		return err
	}
	if !p.secure && policy != tlsNever {
		if err := d.encrypt(ctx, p, policy); err != nil {
			return err
		}
	}
	if p.At.user == "" {
		return nil
	}
	return p.login()
}

func (d *Dialer) encrypt(ctx context.Context, p *Peer, policy TLSPolicy) error {
	if p.Offers("STARTTLS") {
		ok, err := p.startTLS(ctx, p.At.tlsConfig(policy, d.Roots), d.HELO)
		if ok || err != nil {
			return err
		}
	}
	if policy != TLSMaybe {
		return ErrNoTLS
	}
	return nil
}

// login authenticates with AUTH PLAIN (RFC 4616), or LOGIN if the server offers
// only that. Without TLS it sends the password only over loopback, unless the
// operator allows it.
func (p *Peer) login() error {
	if !p.secure && !p.At.clearAuth && !p.loopback() {
		return fmt.Errorf("password not sent in the clear: %w", ErrNoTLS)
	}
	methods := strings.Fields(strings.ToUpper(p.ext["AUTH"]))
	var r Response
	var err error
	switch {
	case slices.Contains(methods, "PLAIN"):
		r, err = p.command(p.timeouts.Command, "AUTH PLAIN "+encode64("\x00"+p.At.user+"\x00"+p.At.password))
	case slices.Contains(methods, "LOGIN"):
		r, err = p.loginInSteps()
	default:
		return fmt.Errorf("no AUTH PLAIN: %w", ErrAuth)
	}
	if err != nil {
		return err
	}
	if r.Code != 235 {
		p.Broken = true
		return fmt.Errorf("%w: %s", ErrAuth, r)
	}
	return nil
}

func (p *Peer) loginInSteps() (Response, error) {
	for _, line := range []string{"AUTH LOGIN", encode64(p.At.user)} {
		r, err := p.command(p.timeouts.Command, line)
		if err != nil || r.Code != 334 {
			return r, err
		}
	}
	return p.command(p.timeouts.Command, encode64(p.At.password))
}

func (p *Peer) loopback() bool {
	a, ok := p.conn.RemoteAddr().(*net.TCPAddr)
	return ok && a.IP.IsLoopback()
}

func encode64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
