package outbound

import (
	"context"
	"crypto/tls"
	"errors"
	"strings"
)

// greet reads the greeting and sends EHLO.
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

// hello sends EHLO, or HELO if the server does not support EHLO.
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

// stop ends the dialog after a negative reply.
func (p *Peer) stop(r Response) error {
	p.Broken = true
	return &ResponseError{r}
}

// TLSError means that TLS failed.
type TLSError struct{ err error }

func (e *TLSError) Error() string { return "TLS: " + e.err.Error() }
func (e *TLSError) Unwrap() error { return e.err }

// startTLS sends STARTTLS (RFC 3207), and EHLO again. If the server refuses, the
// connection stays usable and ok is false.
func (p *Peer) startTLS(ctx context.Context, cfg *tls.Config, helo string) (ok bool, err error) {
	r, err := p.command(p.timeouts.Command, "STARTTLS")
	if err != nil {
		return false, err
	}
	if r.Code != 220 {
		return false, nil
	}
	if p.r.Buffered() > 0 {
		// Discard the connection: data received before TLS must not be processed
		// under TLS.
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
