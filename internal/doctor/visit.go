package doctor

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/postroom/postroom/internal/dns"
	"github.com/postroom/postroom/internal/dnsrec"
	"github.com/postroom/postroom/internal/netguard"
	"github.com/postroom/postroom/smtp/outbound"
	"github.com/postroom/postroom/store"
)

// Config describes the installation to check. Resolver, MailDomain and
// Hostname are required, and Store or StoreErr.
type Config struct {
	// Domain limits the DNS checks to one domain: the installation's own or an
	// account's. Empty means all.
	Domain string
	// To is an address or a domain. The doctor connects to its mail servers to
	// test outbound SMTP.
	To string

	MailDomain, Hostname string // in A-labels, lower case
	Resolver             dns.Resolver
	// Allow are private networks that mail may be sent to. Own are the addresses
	// of this machine, which are never delivered to.
	Allow []netip.Prefix
	Own   []netip.Addr
	// RootCAs are the trusted certificate authorities; nil means the system's.
	RootCAs *x509.CertPool
	// MXPort is the port for SMTP to other hosts and to this one; 0 means 25.
	MXPort uint16
	// Relay is the smarthost for other domains; nil means direct delivery to
	// their MX hosts.
	Relay *outbound.Relay
	// BaseURL is the public URL of the API; empty if not set.
	BaseURL string

	Folders []string // that this machine writes to
	// Migrates reports that the next start migrates the schema.
	Migrates bool
	// Store is the open store, or StoreErr is why there is none.
	Store    *store.Store
	StoreErr error
	// ProveSecret checks the installation secret against the database.
	ProveSecret func(context.Context, *store.Store) error
	// Settings are findings about the configuration itself.
	Settings []Result

	// ClockSynced reports whether the system clock is synchronized; known is
	// false if the system does not report it. nil asks the system.
	ClockSynced func() (synced, known bool)
	// Timeout bounds each check; 0 means the constant Timeout.
	Timeout time.Duration
}

func (c *Config) setDefaults() {
	if c.ClockSynced == nil {
		c.ClockSynced = kernelClock
	}
	c.Timeout = cmp.Or(c.Timeout, Timeout)
	c.MXPort = cmp.Or(c.MXPort, 25)
}

// ErrNoDatabase reports that the database does not exist before the first start.
var ErrNoDatabase = errors.New("no database yet")

// visit is one run of all checks.
type visit struct {
	cfg    Config
	prober *outbound.Prober
	public *netguard.Guard    // as other hosts see the network
	host   func() dnsrec.Host // looked up once, for several checks
}

func newVisit(ctx context.Context, cfg Config) *visit {
	return &visit{
		cfg: cfg, public: netguard.New(netguard.Config{Allow: cfg.Allow}),
		prober: outbound.NewProber(outbound.ProberConfig{
			HELO: cfg.Hostname, MailFrom: "postmaster@" + cfg.MailDomain, Resolver: cfg.Resolver,
			Guard: netguard.New(netguard.Config{Allow: cfg.Allow, Own: cfg.Own}), RootCAs: cfg.RootCAs, MXPort: cfg.MXPort,
		}),
		host: sync.OnceValue(func() dnsrec.Host { return dnsrec.CheckHost(ctx, cfg.Resolver, cfg.Hostname) }),
	}
}

// checks returns the checks that apply, in the order of the report.
func (v *visit) checks() []check {
	cfg := &v.cfg
	all := []check{{"database", "", v.database}, {"secret", "", v.secret}}
	for _, folder := range cfg.Folders {
		all = append(all, check{"disk", folder, func(context.Context) []Result { return one(folderResult(folder)) }})
	}
	all = append(all, []check{
		{"clock", "", v.clock},
		{"api", cfg.BaseURL, v.api},
		{"settings", "", func(context.Context) []Result { return cfg.Settings }},
		{"host", cfg.Hostname, v.hostCheck},
		{"inbound", cfg.Hostname, v.inbound},
	}...)
	if cfg.Domain == "" || cfg.Domain == cfg.MailDomain {
		all = append(all, check{"dns", cfg.MailDomain, v.mailDomain})
		if cfg.Relay == nil { // what else SPF must include, the relay's operator knows
			all = append(all, check{"spf", cfg.MailDomain, v.spf})
		}
	}
	if cfg.Domain != cfg.MailDomain {
		all = append(all, check{"dns", cfg.Domain, v.accountDomains})
	}
	if cfg.Relay != nil {
		return append(all, check{"relay", cfg.Relay.String(), v.relay})
	}
	return append(all, check{"outbound", cfg.To, v.outbound})
}

// IsLocal reports whether a name is local, such as that of a test installation.
func IsLocal(name string) bool {
	return !strings.Contains(name, ".") || strings.HasSuffix(name, ".localhost") || strings.HasSuffix(name, ".local")
}

// addresses returns the addresses of the host in DNS.
func (v *visit) addresses() []netip.Addr {
	if IsLocal(v.cfg.Hostname) {
		return nil
	}
	var all []netip.Addr
	for _, a := range v.host().Addresses {
		if addr, err := netip.ParseAddr(a.Address); err == nil {
			all = append(all, addr.Unmap())
		}
	}
	return all
}
