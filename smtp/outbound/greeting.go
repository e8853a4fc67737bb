package outbound

import (
	"context"
	"crypto/tls"
	"errors"
	"strings"
)

// greet reads the banner and says hello.
func (p *Peer) greet(helo string) error {
	r, err := p.receive(p.timeouts.Banner)
	if err != nil {
		return err
	}
	if r.Code != 220 {
		return p.stop(r)
	}
	p.name = r.firstWord()
	return p.hello(helo)
}

// hello says EHLO, and HELO to a server that does not know it.
func (p *Peer) hello(helo string) error {
	p.ext = map[string]string{}
	extended := true
	r, err := p.command(p.timeouts.Command, "EHLO "+helo)
	if err == nil && r.Permanent() && !r.closing() {
		extended = false
		r, err = p.command(p.timeouts.Command, "HELO "+helo)
	}
	if err != nil {
		return err
	}
	if r.Code != 250 {
		return p.stop(r)
	}
	if !extended {
		return nil
	}
	for _, line := range r.lines[min(1, len(r.lines)):] {
		keyword, params, _ := strings.Cut(line, " ")
		p.ext[strings.ToUpper(keyword)] = params
	}
	return nil
}

// stop ends a dialog that the server does not want to go on with.
func (p *Peer) stop(r Response) error {
	p.Broken = true
	return &ResponseError{r}
}

// TLSError means that a connection could not be made secret.
type TLSError struct{ err error }

func (e *TLSError) Error() string { return "TLS: " + e.err.Error() }
func (e *TLSError) Unwrap() error { return e.err }

// startTLS asks for encryption (RFC 3207) and says hello again. A server that
// refuses leaves the connection as it was: ok is false then.
func (p *Peer) startTLS(ctx context.Context, cfg *tls.Config, helo string) (ok bool, err error) {
	r, err := p.command(p.timeouts.Command, "STARTTLS")
	if err != nil {
		return false, err
	}
	if r.Code != 220 {
		return false, nil
	}
	if p.r.Buffered() > 0 {
		// What came in the clear must not count as said under TLS.
		p.Broken = true
		return false, &TLSError{errors.New("data before the handshake")}
	}
	if err := p.handshake(ctx, cfg); err != nil {
		return false, err
	}
	return true, p.hello(helo)
}

func (p *Peer) handshake(ctx context.Context, cfg *tls.Config) error {
	conn := tls.Client(p.conn, cfg)
	err := p.limit(p.timeouts.Command)
	if err == nil {
		err = conn.HandshakeContext(ctx)
	}
	if err != nil {
		p.Broken = true
		return &TLSError{err}
	}
	p.use(conn)
	p.secure = true
	return nil
}
