package outbound

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"strconv"
	"strings"
)

// TLSPolicy is how much secrecy a connection must have.
type TLSPolicy int

const (
	// TLSMaybe encrypts when the server offers it and looks at no certificate;
	// when TLS fails, the mail goes in the clear. That is all that can be had
	// between strangers without further agreement (RFC 7435).
	TLSMaybe TLSPolicy = iota
	// tlsNever does not encrypt.
	tlsNever
	// tlsAnyone encrypts, with whoever answers.
	tlsAnyone
	// TLSVerified encrypts, and the certificate must be good for the name.
	TLSVerified
)

// Endpoint is a server and how we speak to it. Connections to equal endpoints
// can stand in for each other.
type Endpoint struct {
	Host     string // a name, or an IP address
	Port     uint16
	TLS      TLSPolicy
	implicit bool // TLS from the first byte
	// trusted is for the operator's own relay: no guard, and no details about
	// it in what senders are shown.
	Trusted        bool
	user, password string
	clearAuth      bool // the password may go over a connection in the clear
}

func (e Endpoint) String() string {
	return net.JoinHostPort(e.Name(), strconv.Itoa(int(e.Port)))
}

// Name is the host without the dot of an absolute name.
func (e Endpoint) Name() string { return strings.TrimSuffix(e.Host, ".") }

// tlsConfig is for a connection to e under policy p. roots, when not nil, are
// who may have signed a certificate that is looked at.
func (e Endpoint) tlsConfig(p TLSPolicy, roots *x509.CertPool) *tls.Config {
	return &tls.Config{
		RootCAs:            roots,
		ServerName:         e.Name(),
		InsecureSkipVerify: p != TLSVerified, //nolint:gosec // opportunistic TLS, see tlsMaybe
		MinVersion:         tls.VersionTLS12,
	}
}
