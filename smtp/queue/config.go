package queue

import (
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

// LocalDelivery puts mail into an inbox of this install. Receiver is the real
// one: see Receiver.DeliverLocal.
type LocalDelivery interface {
	DeliverLocal(ctx context.Context, env smtp.Envelope, rawMail io.Reader, size int64, attempts []*store.Attempt) error
}

// Config is what a Queue needs. Store, Local, Domain and HELO are
// required.
type Config struct {
	// Store holds the queue.
	Store *store.Store
	// Local takes what is for Domain, and for domains whose MX host is HELO.
	Local LocalDelivery
	// Domain is the mail domain of the install.
	Domain string
	// Resolver finds the servers of other domains; nil means NewResolver("").
	Resolver dns.Resolver
	// Guard says which addresses mail may be sent to; nil means public ones. The
	// relay is not asked about.
	Guard *netguard.Guard
	// Relay takes all mail for other domains; nil means direct to their MX.
	Relay *outbound.Relay
	// RootCAs are who may have signed the certificates of the relay, of MX hosts
	// under an MTA-STS policy, and of policy hosts; nil means those that the system
	// trusts.
	RootCAs *x509.CertPool
	// PolicyPort is the port of MTA-STS policy hosts; 0 means 443.
	PolicyPort uint16
	// MXPort is the port of MX hosts; 0 means 25.
	MXPort uint16
	// HELO is what we call ourselves: a name that resolves to our address.
	HELO string
	// Signer signs what is sent; nil sends it unsigned.
	Signer *Signer
	// Feedback makes the return path and the unsubscribe link of what is sent; nil
	// sends it with the address that it is from, and without a link.
	Feedback *Feedback
	// DraftOf makes the draft that a scheduled email becomes whose inbox has come to
	// need approval; nil means that the email fails.
	DraftOf func(ctx context.Context, e store.Email) (store.NewDraft, error)
	// MaxPerDomain is how many transactions the servers of one domain get at the
	// same time; 0 means 5.
	MaxPerDomain int
	// MaxConns is how many transactions with other servers there are at the same
	// time, and how many idle connections are kept besides; 0 means 50.
	MaxConns int
	// MailsPerConn is how many mails go over one connection, one after the other;
	// 0 means 100. A server may want fewer (RFC 9422).
	MailsPerConn int
	// Lease is for how long a claimed recipient is ours alone; 0 means 90
	// seconds. Run renews it while the recipient waits or is being delivered to.
	// After a crash it is how long mail that was being sent waits, and by less
	// than half of it the clocks of nodes may differ.
	Lease time.Duration
	// Grace is how long Run waits for transactions when it is told to end; 0
	// means 15 seconds.
	Grace time.Duration
	// Timeouts of each step; zero means those of RFC 5321.
	Timeouts outbound.Timeouts
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Log takes every attempt; nil means slog.Default().
	Log *slog.Logger
}

func (c *Config) setDefaults() {
	setDefault(&c.MXPort, 25)
	setDefault(&c.MaxPerDomain, 5)
	setDefault(&c.MaxConns, 50)
	setDefault(&c.MailsPerConn, 100)
	setDefault(&c.Lease, 90*time.Second)
	setDefault(&c.Grace, 15*time.Second)
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

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
