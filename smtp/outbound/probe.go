package outbound

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/postroom/postroom/internal/dns"
	"github.com/postroom/postroom/internal/netguard"
)

// ProberConfig configures a Prober. HELO, Resolver and Guard are required.
type ProberConfig struct {
	// HELO is our host name in EHLO, the same as the queue's.
	HELO string
	// MailFrom is the reverse-path for RCPT probes.
	MailFrom string
	Resolver dns.Resolver
	// Guard decides which addresses we may connect to.
	Guard *netguard.Guard
	// RootCAs are the trusted certificate authorities; nil means the system's.
	RootCAs *x509.CertPool
	// MXPort is the port of MX hosts; 0 means 25.
	MXPort uint16
}

// Prober connects to servers as the queue does, without sending a message, to
// find out whether one could be sent. It is safe for concurrent use.
type Prober struct {
	cfg    ProberConfig
	dialer Dialer
	dir    *Directory
}

// NewProber returns a Prober.
func NewProber(cfg ProberConfig) *Prober {
	cfg.MXPort = cmp.Or(cfg.MXPort, 25)
	t := Timeouts{Connect: probeConnect, Banner: probeReply, Command: probeReply}
	return &Prober{
		cfg:    cfg,
		dialer: Dialer{HELO: cfg.HELO, Timeouts: t.OrDefault(), Guard: cfg.Guard, Roots: cfg.RootCAs},
		dir:    NewDirectory(cfg.Resolver, time.Now),
	}
}

// ProbeStage is the step at which a probe failed.
type ProbeStage string

// Stages of a probe.
const (
	ProbeDNS       ProbeStage = "dns"       // the address lookup failed
	ProbeConnect   ProbeStage = "connect"   // the connection failed
	ProbeGreeting  ProbeStage = "greeting"  // the server does not speak SMTP or refuses us
	ProbeTLS       ProbeStage = "tls"       // the required TLS failed
	ProbeLogin     ProbeStage = "login"     // the credentials were refused
	ProbeRecipient ProbeStage = "recipient" // the mailbox was refused
)

// ProbeError is the error of a failed probe.
type ProbeError struct {
	Stage  ProbeStage
	Server string // name and address
	Err    error
}

func (e *ProbeError) Error() string { return e.Server + ": " + e.Err.Error() }
func (e *ProbeError) Unwrap() error { return e.Err }

// Probe is the result of a probe.
type Probe struct {
	Server  string              // name and address
	Name    string              // name in the server's greeting
	TLS     string              // version, such as "TLS 1.3"; empty without TLS
	Chain   []*x509.Certificate // the server's certificates, its own first; empty without TLS
	Login   bool                // the credentials were accepted
	Replied string              // reply to RCPT, empty without a mailbox
	// Refused means that the reply was negative.
	Refused bool
}

// Relay connects to the relay and authenticates. Its error is a *ProbeError.
func (p *Prober) Relay(ctx context.Context, r *Relay) (Probe, error) {
	return p.host(ctx, r.At, "")
}

// Host connects to the SMTP server of a host at any address; the guard does not
// apply. Its error is a *ProbeError.
func (p *Prober) Host(ctx context.Context, host string, at netip.AddrPort) (Probe, error) {
	return p.call(ctx, Endpoint{Host: host, Port: at.Port(), Trusted: true}, at.Addr(), "")
}

// Domain connects to the MX hosts of a domain until one accepts the session. If
// mailbox is not empty, it is checked with RCPT. The error is a *ProbeError about
// the first host.
func (p *Prober) Domain(ctx context.Context, domain, mailbox string) (Probe, error) {
	hosts, err := p.dir.Hosts(ctx, domain)
	if err != nil {
		return Probe{}, &ProbeError{ProbeDNS, domain, err}
	}
	var first error
	for _, host := range hosts[:min(len(hosts), probeTries)] {
		found, err := p.host(ctx, Endpoint{Host: host, Port: p.cfg.MXPort, TLS: TLSMaybe}, mailbox)
		if err == nil || ctx.Err() != nil {
			return found, err
		}
		if first == nil {
			first = err
		}
	}
	return Probe{}, first
}

// host connects to the addresses of a server.
func (p *Prober) host(ctx context.Context, e Endpoint, mailbox string) (Probe, error) {
	addrs, err := p.dir.Addresses(ctx, e.Host)
	if err != nil {
		return Probe{}, &ProbeError{ProbeDNS, e.Name(), err}
	}
	var first error
	tries := 0
	for _, addr := range addrs {
		found, err := p.call(ctx, e, addr, mailbox)
		if err == nil {
			return found, nil
		}
		if first == nil || NeverLeft(first) { // for example IPv6 without connectivity
			first = err
		}
		if !NeverLeft(err) {
			tries++
		}
		if tries == probeTries || ctx.Err() != nil {
			break
		}
	}
	return Probe{}, first
}

func (p *Prober) call(ctx context.Context, e Endpoint, addr netip.Addr, mailbox string) (Probe, error) {
	out := Probe{Server: fmt.Sprintf("%s [%s]", e, addr)}
	peer, err := p.dialer.Dial(ctx, e, addr)
	if err != nil {
		return Probe{}, &ProbeError{stageOf(err), out.Server, err}
	}
	defer peer.quit()
	out.Name, out.Login = peer.name, e.user != ""
	if conn, secure := peer.conn.(*tls.Conn); secure {
		state := conn.ConnectionState()
		out.TLS, out.Chain = tls.VersionName(state.Version), state.PeerCertificates
	}
	if mailbox == "" {
		return out, nil
	}
	r, err := peer.ask(p.cfg.MailFrom, mailbox)
	if err != nil {
		return Probe{}, &ProbeError{ProbeRecipient, out.Server, err}
	}
	out.Replied, out.Refused = r.String(), !r.Positive()
	return out, nil
}

func stageOf(err error) ProbeStage {
	_, failed := errors.AsType[*TLSError](err)
	op, network := errors.AsType[*net.OpError](err)
	switch {
	case errors.Is(err, ErrAuth):
		return ProbeLogin
	case failed, errors.Is(err, ErrNoTLS):
		return ProbeTLS
	case network && op.Op == "dial":
		return ProbeConnect
	}
	return ProbeGreeting
}

// ask runs a transaction up to RCPT and resets it.
func (p *Peer) ask(from, mailbox string) (Response, error) {
	r, err := p.command(p.timeouts.Command, "MAIL FROM:<"+from+">")
	if err != nil || !r.Positive() {
		return r, err
	}
	if r, err = p.command(p.timeouts.Command, "RCPT TO:<"+mailbox+">"); err != nil {
		return r, err
	}
	if !p.Broken {
		_ = p.Reset() // QUIT follows
	}
	return r, nil
}

// firstWord returns the server's name in its greeting (RFC 5321 section 4.2).
func (r Response) firstWord() string {
	if len(r.lines) == 0 {
		return ""
	}
	word, _, _ := strings.Cut(r.lines[0], " ")
	return printable(word)
}
