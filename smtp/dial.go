package smtp

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

// errNoTLS means that a server does not offer the encryption that it must have.
var errNoTLS = errors.New("server offers no TLS")

// errAuth means that the relay does not take our name and password.
var errAuth = errors.New("credentials not accepted")

// dialer opens connections and brings them to where mail can be sent.
type dialer struct {
	helo     string
	timeouts Timeouts
	guard    *netguard.Guard
	roots    *x509.CertPool
}

// dial connects to e at addr, lent to ctx. With tlsMaybe, a server whose TLS
// does not work is called once more and spoken to in the clear.
func (d *dialer) dial(ctx context.Context, e endpoint, addr netip.Addr) (*peer, error) {
	p, err := d.open(ctx, e, addr, e.tls)
	if _, ok := errors.AsType[*tlsError](err); ok && e.tls == tlsMaybe && ctx.Err() == nil {
		p, err = d.open(ctx, e, addr, tlsNever)
	}
	return p, err
}

func (d *dialer) open(ctx context.Context, e endpoint, addr netip.Addr, policy tlsPolicy) (*peer, error) {
	nd := net.Dialer{Timeout: d.timeouts.Connect}
	if !e.trusted {
		nd.Control = d.guard.Control
	}
	conn, err := nd.DialContext(ctx, "tcp", netip.AddrPortFrom(addr, e.port).String())
	if err != nil {
		return nil, err
	}
	crashpoint.Reach(crashpoint.Connect)
	p := newPeer(e, conn, d.timeouts)
	p.attach(ctx)
	if err := d.ready(ctx, p, policy); err != nil {
		p.quit()
		return nil, err
	}
	return p, nil
}

// ready greets, encrypts as policy asks, and logs in.
func (d *dialer) ready(ctx context.Context, p *peer, policy tlsPolicy) error {
	if p.at.implicit {
		if err := p.handshake(ctx, p.at.tlsConfig(policy, d.roots)); err != nil {
			return err
		}
	}
	if err := p.greet(d.helo); err != nil {
		return err
	}
	if !p.secure && policy != tlsNever {
		if err := d.encrypt(ctx, p, policy); err != nil {
			return err
		}
	}
	if p.at.user == "" {
		return nil
	}
	return p.login()
}

func (d *dialer) encrypt(ctx context.Context, p *peer, policy tlsPolicy) error {
	if p.offers("STARTTLS") {
		ok, err := p.startTLS(ctx, p.at.tlsConfig(policy, d.roots), d.helo)
		if ok || err != nil {
			return err
		}
	}
	if policy != tlsMaybe {
		return errNoTLS
	}
	return nil
}

// login proves who we are by AUTH PLAIN (RFC 4616), or LOGIN to a server that
// has nothing else. A password goes in the clear only over loopback, unless the
// operator says otherwise.
func (p *peer) login() error {
	if !p.secure && !p.at.clearAuth && !p.loopback() {
		return fmt.Errorf("password not sent in the clear: %w", errNoTLS)
	}
	methods := strings.Fields(strings.ToUpper(p.ext["AUTH"]))
	var r response
	var err error
	switch {
	case slices.Contains(methods, "PLAIN"):
		r, err = p.command(p.timeouts.Command, "AUTH PLAIN "+encode64("\x00"+p.at.user+"\x00"+p.at.password))
	case slices.Contains(methods, "LOGIN"):
		r, err = p.loginInSteps()
	default:
		return fmt.Errorf("no AUTH PLAIN: %w", errAuth)
	}
	if err != nil {
		return err
	}
	if r.code != 235 {
		p.broken = true
		return fmt.Errorf("%w: %s", errAuth, r)
	}
	return nil
}

func (p *peer) loginInSteps() (response, error) {
	for _, line := range []string{"AUTH LOGIN", encode64(p.at.user)} {
		r, err := p.command(p.timeouts.Command, line)
		if err != nil || r.code != 334 {
			return r, err
		}
	}
	return p.command(p.timeouts.Command, encode64(p.at.password))
}

func (p *peer) loopback() bool {
	a, ok := p.conn.RemoteAddr().(*net.TCPAddr)
	return ok && a.IP.IsLoopback()
}

func encode64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
