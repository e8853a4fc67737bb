// Package domains manages the domains of accounts: it lists the DNS records
// that a domain needs, looks them up, and has the store update the domain.
//
// A domain is verified when its owner has published the account's token and the
// key that its mail is signed with. It stays so while the DNS is in trouble, and
// for 72 hours after a record has really gone (store.Domain).
package domains

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"github.com/postroom/postroom/internal/dns"
	"github.com/postroom/postroom/internal/dnsrec"
	"github.com/postroom/postroom/store"
)

// Config is what Domains needs. All fields but Relayed are required.
type Config struct {
	Store    *store.Store
	Resolver dns.Resolver
	// MailDomain is the installation's own mail domain, in lower case. Hostname is
	// the host that receives mail.
	MailDomain, Hostname string
	// Relayed says that a relay sends the mail. Remote servers then see the name
	// of the relay, not Hostname.
	Relayed bool
	// TokenKey makes the tokens that show whose a domain is.
	TokenKey []byte
	// NewKeys makes the signing keys of a domain, an RSA key among them.
	NewKeys func(domain string) ([]store.DKIMKey, error)
	// Log takes what the rounds find.
	Log *slog.Logger
}

// Domains are the accounts' domains.
type Domains struct{ cfg Config }

// New returns the domains of the store.
func New(cfg Config) (*Domains, error) {
	if cfg.Store == nil || cfg.Resolver == nil || cfg.MailDomain == "" || cfg.Hostname == "" || cfg.NewKeys == nil || cfg.Log == nil {
		return nil, errors.New("domains: store, resolver, mail domain, hostname, keys and log are required")
	}
	if len(cfg.TokenKey) < sha256.Size {
		return nil, errors.New("domains: the token key is shorter than 32 bytes")
	}
	return &Domains{cfg}, nil
}

// Add makes a pending domain. name is as dnsrec.CheckName returns it. The errors
// are those of store.CreateDomain. The installation's own domain is taken.
func (s *Domains) Add(ctx context.Context, accountID int64, name string, once *store.Once) (store.Domain, error) {
	if name == s.cfg.MailDomain {
		return store.Domain{}, store.ErrDomainTaken
	}
	// Keys take some tenths of a second, so they are not made in vain.
	has, err := s.cfg.Store.HasDomain(ctx, accountID, name)
	if err != nil {
		return store.Domain{}, err
	}
	if has {
		return store.Domain{}, store.ErrDomainTaken
	}
	keys, err := s.cfg.NewKeys(name)
	if err != nil {
		return store.Domain{}, err
	}
	return s.cfg.Store.CreateDomain(ctx, store.Domain{AccountID: accountID, Name: name, Token: s.token(accountID)}, keys, once)
}

// token is what an account publishes to show that a domain is its own. It is not
// secret, but another account cannot compute it.
func (s *Domains) token(accountID int64) string {
	h := hmac.New(sha256.New, s.cfg.TokenKey)
	h.Write([]byte("domain owner " + strconv.FormatInt(accountID, 10)))
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Records returns the records that d needs, with what the last look-up found.
func (s *Domains) Records(d store.Domain) []store.DomainRecord {
	out, _ := s.records(d)
	return out
}

// Published returns the records that are to be published for d.
func (s *Domains) Published(d store.Domain) []dnsrec.Record {
	_, published := s.records(d)
	return published
}

// records returns the records of d as the store and as the DNS knows them.
func (s *Domains) records(d store.Domain) ([]store.DomainRecord, []dnsrec.Record) {
	needs := dnsrec.Domain{Name: d.Name, Token: d.Token, MailDomain: s.cfg.MailDomain, Hostname: s.cfg.Hostname}
	selectors := map[string]string{} // by the name of the record
	for _, k := range d.Keys {
		key := dnsrec.Key{Selector: k.Selector, Algorithm: k.Algorithm, Public: k.Public, Required: required(d.Keys, k)}
		needs.Keys = append(needs.Keys, key)
		selectors[key.Name(d.Name)] = k.Selector
	}
	published := dnsrec.Records(needs)
	out := make([]store.DomainRecord, len(published))
	for i, r := range published {
		out[i] = store.DomainRecord{
			Kind: string(r.Kind), Type: r.Type, Name: r.Name, Value: r.Value, TTL: dnsrec.TTL, Required: r.Required,
			Selector: selectors[r.Name],
		}
		if r.Type == "MX" {
			out[i].Priority = &published[i].Priority
		}
		out[i].RecordLookup = d.Lookup(out[i])
	}
	return out, published
}

// required says whether the record of k must be there: that of the RSA key that
// signs, or that of the first one while none does. Not every receiver reads
// Ed25519 (RFC 8463), and a key that is to follow may be published later.
func required(keys []store.DomainKey, k store.DomainKey) bool {
	if k.Algorithm != "rsa" {
		return false
	}
	for _, o := range keys {
		if o.Algorithm == "rsa" && o.Signs() {
			return o.Seq == k.Seq
		}
	}
	return true
}

// Host looks up the host that mail is sent from, nil when a relay sends it.
func (s *Domains) Host(ctx context.Context) *dnsrec.Host {
	if s.cfg.Relayed {
		return nil
	}
	h := dnsrec.CheckHost(ctx, s.cfg.Resolver, s.cfg.Hostname)
	return &h
}

// Check looks the records of d up and returns d as it then is. asked says that
// a user requested the check. ErrNotFound when d has been deleted meanwhile.
func (s *Domains) Check(ctx context.Context, d store.Domain, asked bool) (store.Domain, error) {
	records, published := s.records(d)
	for i, f := range dnsrec.Check(ctx, s.cfg.Resolver, published) {
		records[i].RecordLookup = store.RecordLookup{Status: StatusOf(f.Finding), Found: f.Has}
	}
	if err := ctx.Err(); err != nil { // then the DNS was not to blame
		return store.Domain{}, err
	}
	after, err := s.cfg.Store.RecordCheck(ctx, d, records, asked)
	if err == nil && after.Status != d.Status {
		s.cfg.Log.InfoContext(ctx, "domain changed its status", "domain_id", d.ID, "domain", d.Name, "from", d.Status, "status", after.Status)
	}
	return after, err
}

// StatusOf is the status that a finding gives a record.
func StatusOf(f dnsrec.Finding) store.RecordStatus {
	switch f {
	case dnsrec.Found:
		return store.RecordVerified
	case dnsrec.Missing:
		return store.RecordMissing
	case dnsrec.Unknown:
	}
	return store.RecordPending
}

// Receives reports whether inboxes of the installation can be made at a domain: it is
// the mail domain or one that an account has verified, or below either.
func Receives(ctx context.Context, s *store.Store, mailDomain, domain string) (bool, error) {
	var names []string
	for d := domain; d != ""; _, d, _ = strings.Cut(d, ".") {
		names = append(names, d)
	}
	if slices.Contains(names, mailDomain) {
		return true, nil
	}
	_, _, err := s.WildcardOwner(ctx, names)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
