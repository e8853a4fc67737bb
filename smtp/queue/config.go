package queue

import (
	"cmp"
	"context"
	"crypto/x509"
	"io"
	"log/slog"
	"time"

	"github.com/postroom/postroom/internal/dns"
	"github.com/postroom/postroom/internal/netguard"
	"github.com/postroom/postroom/smtp"
	"github.com/postroom/postroom/smtp/outbound"
	"github.com/postroom/postroom/store"
)

// LocalDelivery delivers to inboxes of this installation. Receiver implements it:
// see Receiver.DeliverLocal.
type LocalDelivery interface {
	DeliverLocal(ctx context.Context, env smtp.Envelope, rawMail io.Reader, size int64, attempts []*store.Attempt) error
}

// AttemptReport describes an attempt for one recipient.
type AttemptReport struct {
	MessageID, Domain string
	Attempt           int
	Status            store.RecipientStatus // of the recipient, after the attempt
	Code              string                // of the reply, such as 250
	Began             time.Time
	// Age is the time since the message was accepted.
	Age time.Duration
}

// Config configures a Queue. Store, Local, Domain and HELO are required.
type Config struct {
	// Store holds the queue.
	Store *store.Store
	// Local receives messages for Domain, and for domains whose MX host is HELO.
	Local LocalDelivery
	// Domain is the mail domain of the installation.
	Domain string
	// AllLocal delivers mail for every domain to Local, from any sender and without
	// a signature. It is for development.
	AllLocal bool
	// Resolver looks up the servers of other domains; nil means NewResolver("").
	Resolver dns.Resolver
	// Guard decides which addresses we may connect to; nil means public ones. It
	// does not apply to the relay.
	Guard *netguard.Guard
	// Relay is the smarthost for other domains; nil means direct delivery to
	// their MX hosts.
	Relay *outbound.Relay
	// RootCAs are the certificate authorities for the relay, for MX hosts with an
	// MTA-STS policy, and for policy hosts; nil means the system's.
	RootCAs *x509.CertPool
	// PolicyPort is the port of MTA-STS policy hosts; 0 means 443.
	PolicyPort uint16
	// MXPort is the port of MX hosts; 0 means 25.
	MXPort uint16
	// HELO is our host name in EHLO. It should resolve to our address.
	HELO string
	// Signer signs outbound messages; nil sends them unsigned.
	Signer *Signer
	// Feedback creates reverse-paths and unsubscribe links; nil uses the From
	// address and no link.
	Feedback *Feedback
	// MaxPerDomain is the number of concurrent transactions per domain; 0 means
	// 5.
	MaxPerDomain int
	// MaxConns is the number of concurrent transactions with other servers of one
	// account, and the number of idle connections in addition; 0 means 50. All
	// accounts together may have half as many transactions more.
	MaxConns int
	// MessagesPerConn is the number of messages per connection; 0 means 100. A
	// server may set a lower limit (RFC 9422).
	MessagesPerConn int
	// Lease is how long a claim lasts; 0 means 90 seconds. Run renews it while
	// the recipient waits or is being delivered. After a crash, messages wait for
	// the rest of the lease. The clocks of nodes must differ by less than half of
	// it.
	Lease time.Duration
	// Grace is how long Run waits for transactions after ctx ends; 0 means 15
	// seconds.
	Grace time.Duration
	// Timeouts bound each step; zero fields mean those of RFC 5321.
	Timeouts outbound.Timeouts
	// OnAttempt, if not nil, is called after the result of an attempt is stored.
	OnAttempt func(AttemptReport)
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Log receives every attempt; nil means slog.Default().
	Log *slog.Logger
}

func (c *Config) setDefaults() {
	c.MXPort = cmp.Or(c.MXPort, 25)
	c.MaxPerDomain = cmp.Or(c.MaxPerDomain, 5)
	c.MaxConns = cmp.Or(c.MaxConns, 50)
	c.MessagesPerConn = cmp.Or(c.MessagesPerConn, 100)
	c.Lease = cmp.Or(c.Lease, 90*time.Second)
	c.Grace = cmp.Or(c.Grace, 15*time.Second)
	if c.Resolver == nil {
		c.Resolver = outbound.NewResolver("")
	}
	if c.Guard == nil {
		c.Guard = netguard.New(netguard.Config{})
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
}
