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

// ProberConfig is what a Prober needs. HELO, Resolver and Guard are required.
type ProberConfig struct {
	// HELO is what we call ourselves, as the queue does.
	HELO string
	// MailFrom is the reverse-path that a mailbox is asked about with.
	MailFrom string
	Resolver dns.Resolver
	// Guard says which addresses servers of other domains may have.
	Guard *netguard.Guard
	// RootCAs are who may have signed certificates; nil means the system's.
	RootCAs *x509.CertPool
	// MXPort is the port of MX hosts; 0 means 25.
	MXPort uint16
}

// Prober calls servers in the way that the queue does and hands over no mail: it
// finds out what would be in the way of one. It is safe for use by many
// goroutines.
type Prober struct {
	cfg    ProberConfig
	dialer Dialer
	dir    *Directory
}

// NewProber returns a Prober.
func NewProber(cfg ProberConfig) *Prober {
	cfg.MXPort = cmp.Or(cfg.MXPort, 25)
	t := Timeouts{Connect: probeConnect, Banner: probeAnswer, Command: probeAnswer}
	return &Prober{
		cfg:    cfg,
		dialer: Dialer{HELO: cfg.HELO, Timeouts: t.OrDefault(), Guard: cfg.Guard, Roots: cfg.RootCAs},
		dir:    NewDirectory(cfg.Resolver, time.Now),
	}
}

// ProbeStage is how far a call came.
type ProbeStage string

// The stages of a call that can fail.
const (
	ProbeDNS       ProbeStage = "dns"       // the server's address is not to be had
	ProbeConnect   ProbeStage = "connect"   // no connection
	ProbeGreeting  ProbeStage = "greeting"  // no SMTP, or none with us
	ProbeTLS       ProbeStage = "tls"       // not as secret as it must be
	ProbeLogin     ProbeStage = "login"     // name and password are not taken
	ProbeRecipient ProbeStage = "recipient" // no mail from us for the mailbox
)

// ProbeError is why a call failed.
type ProbeError struct {
	Stage  ProbeStage
	Server string // name and address
	Err    error
}

func (e *ProbeError) Error() string { return e.Server + ": " + e.Err.Error() }
func (e *ProbeError) Unwrap() error { return e.Err }

// Probe is what a call found.
type Probe struct {
	Server  string              // name and address
	Name    string              // that the server gives itself
	TLS     string              // version, such as "TLS 1.3"; empty in the clear
	Chain   []*x509.Certificate // that it showed, its own first; none in the clear
	Login   bool                // name and password were taken
	Replied string              // to the mailbox, empty when none was asked about
	// Refused says that the reply was no.
	Refused bool
}

// Relay calls the relay, as far as one could hand it mail. Its error is a
// *ProbeError.
func (p *Prober) Relay(ctx context.Context, r *Relay) (Probe, error) {
	return p.host(ctx, r.At, "")
}

// Host calls the SMTP server of a host at an address. It may be any one: the
// guard is not asked. Its error is a *ProbeError.
func (p *Prober) Host(ctx context.Context, host string, at netip.AddrPort) (Probe, error) {
	return p.call(ctx, Endpoint{Host: host, Port: at.Port(), Trusted: true}, at.Addr(), "")
}

// Domain calls the MX hosts of a domain until one of them talks to us. mailbox, if
// it is not empty, is asked about with RCPT; then the transaction ends. Its error
// is a *ProbeError about the first of them.
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

// host calls the addresses of a server.
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
		if first == nil || NeverLeft(first) { // of IPv6 where there is none
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

// stageOf is the step that an error of dial is of.
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

// ask begins a transaction, and ends it before there is a mail.
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

// firstWord is what a server calls itself in its greeting (RFC 5321 section 4.2).
func (r Response) firstWord() string {
	if len(r.lines) == 0 {
		return ""
	}
	word, _, _ := strings.Cut(r.lines[0], " ")
	return printable(word)
}
