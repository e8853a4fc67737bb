package outbound

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"strconv"
	"strings"
)

// TLSPolicy is the required protection of a connection.
type TLSPolicy int

const (
	// TLSMaybe uses TLS if the server offers it, without checking certificates,
	// and plain text if TLS fails (opportunistic security, RFC 7435).
	TLSMaybe TLSPolicy = iota
	// tlsNever does not use TLS.
	tlsNever
	// tlsAnyone requires TLS with any certificate.
	tlsAnyone
	// TLSVerified requires TLS with a valid certificate for the host.
	TLSVerified
)

// Endpoint is a server with its connection settings. Connections to equal
// endpoints are interchangeable.
type Endpoint struct {
	Host     string // a name, or an IP address
	Port     uint16
	TLS      TLSPolicy
	implicit bool // TLS from the first byte
	// Trusted marks the operator's own relay: the guard does not apply, and
	// senders see no details about it.
	Trusted        bool
	user, password string
	clearAuth      bool // allows the password without TLS
}

func (e Endpoint) String() string {
	return net.JoinHostPort(e.Name(), strconv.Itoa(int(e.Port)))
}

// Name returns the host without a trailing dot.
func (e Endpoint) Name() string { return strings.TrimSuffix(e.Host, ".") }

// tlsConfig returns the TLS configuration for e under policy p. roots, if not
// nil, are the trusted certificate authorities.
func (e Endpoint) tlsConfig(p TLSPolicy, roots *x509.CertPool) *tls.Config {
	return &tls.Config{
		RootCAs:            roots,
		ServerName:         e.Name(),
		InsecureSkipVerify: p != TLSVerified, //nolint:gosec // opportunistic TLS, see tlsMaybe
		MinVersion:         tls.VersionTLS12,
	}
}
