package smtp

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"strconv"
	"strings"
)

// tlsPolicy is how much secrecy a connection must have.
type tlsPolicy int

const (
	// tlsMaybe encrypts when the server offers it and looks at no certificate;
	// when TLS fails, the mail goes in the clear. That is all that can be had
	// between strangers without further agreement (RFC 7435).
	tlsMaybe tlsPolicy = iota
	// tlsNever does not encrypt.
	tlsNever
	// tlsAnyone encrypts, with whoever answers.
	tlsAnyone
	// tlsVerified encrypts, and the certificate must be good for the name.
	tlsVerified
)

// endpoint is a server and how we speak to it. Connections to equal endpoints
// can stand in for each other.
type endpoint struct {
	host     string // a name, or an IP address
	port     uint16
	tls      tlsPolicy
	implicit bool // TLS from the first byte
	// trusted is for the operator's own relay: no guard, and no details about
	// it in what senders are shown.
	trusted        bool
	user, password string
	clearAuth      bool // the password may go over a connection in the clear
}

func (e endpoint) String() string {
	return net.JoinHostPort(e.name(), strconv.Itoa(int(e.port)))
}

// name is the host without the dot of an absolute name.
func (e endpoint) name() string { return strings.TrimSuffix(e.host, ".") }

// tlsConfig is for a connection to e under policy p. roots, when not nil, are
// who may have signed a certificate that is looked at.
func (e endpoint) tlsConfig(p tlsPolicy, roots *x509.CertPool) *tls.Config {
	return &tls.Config{
		RootCAs:            roots,
		ServerName:         e.name(),
		InsecureSkipVerify: p != tlsVerified, //nolint:gosec // opportunistic TLS, see tlsMaybe
		MinVersion:         tls.VersionTLS12,
	}
}
