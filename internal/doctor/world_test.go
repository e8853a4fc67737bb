package doctor_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/dnsrec"
	"github.com/postroom/postroom/internal/doctor"
	"github.com/postroom/postroom/smtp/queue"
	"github.com/postroom/postroom/smtp/smtptest"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

const (
	mailDomain = "agents.example"
	hostname   = "mx.agents.example"
	hostIP     = "127.0.0.2" // no name of /etc/hosts
	outsideIP  = "127.0.0.3"
)

// world is a healthy installation and its environment.
type world struct {
	cfg      doctor.Config
	zones    smtptest.Zones
	storeCfg store.Config
	store    *store.Store
	roots    *x509.CertPool
	host     *smtptest.MX // this one's SMTP server
}

// newWorld creates an installation on e.
func newWorld(t *testing.T, e storetest.Engine) *world {
	t.Helper()
	w := &world{roots: x509.NewCertPool()}
	data := t.TempDir()
	w.storeCfg = storetest.Config(t, e)
	w.store = storetest.OpenConfig(t, w.storeCfg)
	if err := w.store.AddDKIMKeys(t.Context(), installKeys(t)...); err != nil {
		t.Fatal(err)
	}
	cert := w.certificate(t, time.Now().Add(60*24*time.Hour), hostname, "127.0.0.1", outsideIP)
	doors := smtptest.Listen(t, hostIP, outsideIP)
	w.host = smtptest.NewMX(t, smtptest.MXConfig{Listener: doors[0], Name: hostname, TLS: cert})
	smtptest.NewMX(t, smtptest.MXConfig{Listener: doors[1], TLS: cert})
	w.cfg = doctor.Config{
		To: "bob@outside.example", MailDomain: mailDomain, Hostname: hostname,
		Allow: prefixes(t, "127.0.0.0/8"), RootCAs: w.roots, MXPort: w.host.Port(),
		BaseURL:     w.secureAPI(t, cert),
		Folders:     []string{data},
		ProveSecret: func(ctx context.Context, s *store.Store) error { return s.ProveSecret(ctx) },
		ClockSynced: func() (bool, bool) { return true, true }, Timeout: 30 * time.Second,
	}
	w.zones = smtptest.Zones{}.Domain("outside.example", outsideIP)
	w.zones[hostname+"."] = smtptest.A(hostIP)
	w.zones["2.0.0.127.in-addr.arpa."] = smtptest.Zone{PTR: []string{hostname + "."}}
	w.zones[mailDomain+"."] = smtptest.Zone{
		MX: []net.MX{{Host: hostname + ".", Pref: 10}}, TXT: []string{"v=spf1 mx -all"},
	}
	w.zones["_dmarc."+mailDomain+"."] = txt("v=DMARC1; p=quarantine")
	records, err := queue.Records(t.Context(), w.store, mailDomain)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		w.zones[r.Name+"."] = txt(r.Value)
	}
	return w
}

// madeKeys are made once for all tests: it takes long.
var madeKeys = sync.OnceValues(func() ([]store.DKIMKey, error) { return queue.NewKeys(mailDomain) })

func installKeys(t *testing.T) []store.DKIMKey {
	t.Helper()
	keys, err := madeKeys()
	if err != nil {
		t.Fatal(err)
	}
	keys = slices.Clone(keys)
	keys[0].Selector, keys[1].Selector = "postroom-rsa", "postroom-ed25519"
	return keys
}

// certificate makes one that the world trusts.
func (w *world) certificate(t *testing.T, until time.Time, names ...string) *tls.Config {
	t.Helper()
	cfg, _ := smtptest.NewTLSUntil(t, until, names...)
	c, err := x509.ParseCertificate(cfg.Certificates[0].Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	w.roots.AddCert(c)
	return cfg
}

// secureAPI serves a healthy API over https and returns its address.
func (w *world) secureAPI(t *testing.T, cfg *tls.Config) string {
	t.Helper()
	return secureServer(t, cfg, `{"status":"ok"}`)
}

func secureServer(t *testing.T, cfg *tls.Config, body string) string {
	t.Helper()
	srv := httptest.NewUnstartedServer(respondWith(body))
	srv.TLS = cfg.Clone()
	srv.Config.ErrorLog = quietLog
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv.URL
}

func respondWith(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }
}

func txt(texts ...string) smtptest.Zone { return smtptest.Zone{TXT: texts} }

// accountDomain adds a verified domain of an account, with all its records.
func (w *world) accountDomain(t *testing.T, name string) store.Domain {
	t.Helper()
	keys, err := queue.NewKeys(name)
	if err != nil {
		t.Fatal(err)
	}
	a := storetest.Account(t, w.store)
	d, err := w.store.CreateDomain(t.Context(), store.Domain{AccountID: a.Seq, Name: name, Token: "token"}, keys, nil)
	if err != nil {
		t.Fatal(err)
	}
	var found []store.DomainRecord
	needs := dnsrec.Domain{Name: name, Token: "token", MailDomain: mailDomain, Hostname: hostname}
	for _, k := range keys {
		needs.Keys = append(needs.Keys, dnsrec.Key{Selector: k.Selector, Algorithm: k.Algorithm, Public: k.Public})
	}
	for _, r := range dnsrec.Records(needs) {
		zone := w.zones[r.Name+"."]
		if r.Type == "MX" {
			zone.MX = []net.MX{{Host: r.Value + ".", Pref: 10}}
		} else {
			zone.TXT = append(zone.TXT, r.Value)
		}
		w.zones[r.Name+"."] = zone
		found = append(found, store.DomainRecord{
			Kind: string(r.Kind), Type: r.Type, Name: r.Name, Value: r.Value, Required: r.Required,
			RecordLookup: store.RecordLookup{Status: store.RecordVerified},
		})
	}
	if d, err = w.store.RecordCheck(t.Context(), d, found, true); err != nil || d.Status != store.DomainVerified {
		t.Fatalf("the domain is %s: %v", d.Status, err)
	}
	return d
}

// run checks the world in its current state.
func (w *world) run(t *testing.T) doctor.Report {
	t.Helper()
	if w.cfg.Resolver == nil {
		w.cfg.Resolver = w.zones.Resolver()
	}
	cfg := w.cfg
	if cfg.StoreErr == nil {
		cfg.Store, cfg.StoreErr = store.Open(t.Context(), w.storeCfg)
	}
	if cfg.Store != nil {
		defer func() { _ = cfg.Store.Close() }()
	}
	return doctor.Run(t.Context(), cfg)
}

// find returns the results of a check.
func find(r doctor.Report, check string) []doctor.Result {
	var all []doctor.Result
	for _, one := range r.Results {
		if one.Check == check {
			all = append(all, one)
		}
	}
	return all
}

// text is the report as a person reads it.
func text(t *testing.T, r doctor.Report) string {
	t.Helper()
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// wantResult wants a check to have a result of a status that saw and advises what
// holds the texts.
func wantResult(t *testing.T, r doctor.Report, check string, status doctor.Status, saw, advice string) {
	t.Helper()
	for _, one := range find(r, check) {
		if one.Status == status && strings.Contains(one.Saw, saw) && strings.Contains(fmt.Sprint(one.Do), advice) {
			return
		}
	}
	t.Errorf("no result of %q that is %s, saw %q and advises %q:\n%s", check, status, saw, advice, text(t, r))
}
