package doctor

import (
	"context"
	"crypto/x509"
	"errors"
	"net/netip"
	"strings"
	"time"

	"github.com/postroom/postroom/internal/dns"
	"github.com/postroom/postroom/internal/dnsrec"
	"github.com/postroom/postroom/internal/netguard"
	"github.com/postroom/postroom/smtp/outbound"
	"github.com/postroom/postroom/store"
)

// Config is what is looked at. Resolver, MailDomain, Hostname, Data, OpenStore
// and OpenBlobs are required.
type Config struct {
	// Domain, when it is not empty, is the only domain whose records are looked at:
	// the install's own or an account's.
	Domain string
	// To is a mailbox, or a domain, whose mail servers are called to see whether
	// mail can go out.
	To string

	MailDomain, Hostname string // in A-labels, lower case
	Resolver             dns.Resolver
	// ResolverAddr is the resolver that the settings name; empty means the system's.
	ResolverAddr string
	// Allow are private ranges that mail may be sent to, and Own the addresses of
	// this machine, to which none is.
	Allow []netip.Prefix
	Own   []netip.Addr
	// RootCAs are who may have signed certificates; nil means the system's.
	RootCAs *x509.CertPool
	// MXPort is the port of SMTP servers in the world, this one included; 0 means 25.
	MXPort uint16
	// PolicyPort is the port of MTA-STS policy hosts; 0 means 443.
	PolicyPort uint16
	// Relay takes mail for other domains; nil means that it goes to their MX hosts.
	Relay *outbound.Relay
	// TLSCert and TLSKey are the files of the certificate for STARTTLS, if there are.
	TLSCert, TLSKey string
	// ACME says that a certificate for Hostname is got by ACME.
	ACME bool
	// Listens is where the node's API listens, as host:port; a port of 0 is one that
	// nobody knows from outside.
	Listens string
	// BaseURL is where clients reach the API; empty when nobody said.
	BaseURL string
	// Version is that of this program.
	Version string

	// Data is the data folder, Folders what else is written to on this machine.
	Data    string
	Folders []string
	// NoDatabase says that no database yet.
	NoDatabase bool
	// Migrates says that the next start brings the schema up to date by itself.
	Migrates  bool
	OpenStore func(context.Context) (*store.Store, error)
	// ProveSecret says whether the install secret is there, and the database's.
	ProveSecret func(context.Context, *store.Store) error
	// OpenBlobs opens what keeps large mail; fs.ErrNotExist when it is yet to be made.
	OpenBlobs func(context.Context) (store.Blobs, error)
	// Settings are what is to be said of the settings themselves.
	Settings []Result

	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// ClockSynced says whether the system keeps its clock by others, known is false
	// where it does not tell; nil asks the system.
	ClockSynced func() (synced, known bool)
	// Timeout is how long a check may take; 0 means Timeout.
	Timeout time.Duration
}

func (c *Config) setDefaults() {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.ClockSynced == nil {
		c.ClockSynced = kernelClock
	}
	if c.Timeout == 0 {
		c.Timeout = Timeout
	}
	if c.MXPort == 0 {
		c.MXPort = 25
	}
}

// visit is one run of all checks, with what several of them need.
type visit struct {
	cfg    Config
	prober *outbound.Prober
	public *netguard.Guard // whom others can reach
	host   *later[dnsrec.Host]
	node   *later[nodeState]
	store  *later[opened]
}

// opened is the store, or why there is none.
type opened struct {
	store *store.Store
	err   error
}

var errNoDatabase = errors.New("no database yet")

func newVisit(ctx context.Context, cfg Config) *visit {
	v := &visit{cfg: cfg, public: netguard.New(netguard.Config{Allow: cfg.Allow}), prober: outbound.NewProber(outbound.ProberConfig{
		HELO: cfg.Hostname, MailFrom: "postmaster@" + cfg.MailDomain, Resolver: cfg.Resolver,
		Guard: netguard.New(netguard.Config{Allow: cfg.Allow, Own: cfg.Own}), RootCAs: cfg.RootCAs, MXPort: cfg.MXPort,
	})}
	v.host = begin(func() dnsrec.Host { return dnsrec.CheckHost(ctx, cfg.Resolver, cfg.Hostname) })
	v.node = begin(func() nodeState { return v.callNode(ctx) })
	v.store = begin(func() opened {
		if cfg.NoDatabase {
			return opened{err: errNoDatabase}
		}
		s, err := cfg.OpenStore(ctx)
		return opened{s, err}
	})
	return v
}

// leave closes the store, if it has been opened by now.
func (v *visit) leave() {
	select {
	case <-v.store.done:
		if s := v.store.value.store; s != nil {
			_ = s.Close() // nothing is written any more
		}
	default:
	}
}

// checks are all that there are, in the order of the report.
func (v *visit) checks() []check {
	all := []check{
		{"database", "", v.database},
		{"secret", "", v.secret},
		{"disk", v.cfg.Data, v.disk(v.cfg.Data)},
	}
	for _, folder := range v.cfg.Folders {
		all = append(all, check{"disk", folder, v.disk(folder)})
	}
	return append(all, []check{
		{"blobs", "", v.blobs},
		{"clock", "", v.clock},
		{"node", v.cfg.Listens, v.nodeCheck},
		{"api", v.cfg.BaseURL, v.api},
		{"settings", "", func(context.Context) []Result { return v.cfg.Settings }},
		{"resolver", v.cfg.ResolverAddr, v.resolver},
		{"host", v.cfg.Hostname, v.hostCheck},
		{"inbound", v.cfg.Hostname, v.inbound},
		{"certificate", v.cfg.TLSCert, v.certificate},
		{"dns", v.cfg.MailDomain, v.mailDomain},
		{"spf", v.cfg.MailDomain, v.spf},
		{"mta-sts", v.cfg.MailDomain, v.mtaSTS},
		{"dns", v.cfg.Domain, v.accountDomains},
		{"outbound", v.cfg.To, v.outbound},
		{"relay", v.relayName(), v.relay},
		{"queue", "", v.queue},
		{"webhooks", "", v.webhooks},
	}...)
}

// storeOr returns the store, or what a check says that cannot do without it.
func (v *visit) storeOr(ctx context.Context) (*store.Store, []Result) {
	o, ready := v.store.get(ctx)
	if !ready || o.err != nil {
		return nil, one(skipped("cannot read the database"))
	}
	return o.store, nil
}

// IsLocal says of a name that nobody else knows it, as that of an install that is
// tried out.
func IsLocal(name string) bool {
	return !strings.Contains(name, ".") || strings.HasSuffix(name, ".localhost") || strings.HasSuffix(name, ".local")
}

// ownDomainWanted says whether the records of the mail domain are looked at.
func (v *visit) ownDomainWanted() bool { return v.cfg.Domain == "" || v.cfg.Domain == v.cfg.MailDomain }

// addresses are those of the host that the DNS knows.
func (v *visit) addresses(ctx context.Context) []netip.Addr {
	h, _ := v.host.get(ctx)
	var all []netip.Addr
	for _, a := range h.Addresses {
		if addr, err := netip.ParseAddr(a.Address); err == nil {
			all = append(all, addr.Unmap())
		}
	}
	return all
}

// later is a value that is being found out.
type later[T any] struct {
	done  chan struct{}
	value T
}

func begin[T any](find func() T) *later[T] {
	l := &later[T]{done: make(chan struct{})}
	go func() {
		defer close(l.done)
		l.value = find()
	}()
	return l
}

// get waits for the value; ready is false when ctx ended before.
func (l *later[T]) get(ctx context.Context) (value T, ready bool) {
	select {
	case <-l.done:
		return l.value, true
	case <-ctx.Done():
		var none T
		return none, false
	}
}
