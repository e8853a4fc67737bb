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

// Config describes the installation to check. Resolver, MailDomain, Hostname,
// Data, OpenStore and OpenBlobs are required.
type Config struct {
	// Domain limits the DNS checks to one domain: the installation's own or an
	// account's. Empty means all.
	Domain string
	// To is an address or a domain. The doctor connects to its mail servers to
	// test outbound SMTP.
	To string

	MailDomain, Hostname string // in A-labels, lower case
	Resolver             dns.Resolver
	// ResolverAddr is the configured resolver; empty means the system's.
	ResolverAddr string
	// Allow are private networks that mail may be sent to. Own are the addresses
	// of this machine, which are never delivered to.
	Allow []netip.Prefix
	Own   []netip.Addr
	// RootCAs are the trusted certificate authorities; nil means the system's.
	RootCAs *x509.CertPool
	// MXPort is the port for SMTP to other hosts and to this one; 0 means 25.
	MXPort uint16
	// PolicyPort is the port of MTA-STS policy hosts; 0 means 443.
	PolicyPort uint16
	// Relay is the smarthost for other domains; nil means direct delivery to
	// their MX hosts.
	Relay *outbound.Relay
	// TLSCert and TLSKey are the files of the STARTTLS certificate, if any.
	TLSCert, TLSKey string
	// ACME reports that the certificate for Hostname comes from ACME.
	ACME bool
	// Listens is the API's listen address as host:port. Port 0 means that the
	// port is unknown.
	Listens string
	// BaseURL is the public URL of the API; empty if not set.
	BaseURL string
	// Version is the program version.
	Version string

	// Data is the data directory. Folders are other directories that this machine
	// writes to.
	Data    string
	Folders []string
	// NoDatabase reports that the database does not exist yet.
	NoDatabase bool
	// Migrates reports that the next start migrates the schema.
	Migrates bool
	// Store is the open store of this process. If it is nil, OpenStore opens one, which
	// is closed at the end.
	Store     *store.Store
	OpenStore func(context.Context) (*store.Store, error)
	// ProveSecret checks the installation secret against the database.
	ProveSecret func(context.Context, *store.Store) error
	// OpenBlobs opens the blob storage. It returns fs.ErrNotExist if the storage
	// has not been created yet.
	OpenBlobs func(context.Context) (store.Blobs, error)
	// Approvers are the addresses of people who get emails about drafts.
	Approvers []string
	// Settings are findings about the configuration itself.
	Settings []Result

	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// ClockSynced reports whether the system clock is synchronized; known is
	// false if the system does not report it. nil asks the system.
	ClockSynced func() (synced, known bool)
	// Timeout bounds each check; 0 means the constant Timeout.
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

// visit is one run of all checks, with their shared state.
type visit struct {
	cfg    Config
	prober *outbound.Prober
	public *netguard.Guard // as other hosts see the network
	host   *later[dnsrec.Host]
	node   *later[nodeState]
	store  *later[opened]
}

// opened is the store, or the error of opening it.
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
		if cfg.Store != nil {
			return opened{store: cfg.Store}
		}
		if cfg.NoDatabase {
			return opened{err: errNoDatabase}
		}
		s, err := cfg.OpenStore(ctx)
		return opened{s, err}
	})
	return v
}

// leave closes the store if it has been opened for the checks.
func (v *visit) leave() {
	if v.cfg.Store != nil {
		return
	}
	select {
	case <-v.store.done:
		if s := v.store.value.store; s != nil {
			_ = s.Close() // nothing to flush
		}
	default:
	}
}

// checks returns all checks in the order of the report.
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
		{"reserved", "", v.reserved},
		{"approvers", strings.Join(v.cfg.Approvers, ", "), v.approvers},
	}...)
}

// storeOr returns the store, or the results of a check that needs it and cannot
// run.
func (v *visit) storeOr(ctx context.Context) (*store.Store, []Result) {
	o, ready := v.store.get(ctx)
	if !ready || o.err != nil {
		return nil, one(skipped("cannot read the database"))
	}
	return o.store, nil
}

// IsLocal reports whether a name is local, such as the name of a test
// installation.
func IsLocal(name string) bool {
	return !strings.Contains(name, ".") || strings.HasSuffix(name, ".localhost") || strings.HasSuffix(name, ".local")
}

func (v *visit) ownDomainWanted() bool { return v.cfg.Domain == "" || v.cfg.Domain == v.cfg.MailDomain }

// addresses returns the addresses of the host in DNS.
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

// later is a value that is computed in the background.
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

// get waits for the value. ready is false if ctx ends first.
func (l *later[T]) get(ctx context.Context) (value T, ready bool) {
	select {
	case <-l.done:
		return l.value, true
	case <-ctx.Done():
		var none T
		return none, false
	}
}
