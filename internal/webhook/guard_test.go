package webhook_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/netguard"
	"github.com/postroom/postroom/internal/webhook"
	"github.com/postroom/postroom/smtp/smtptest"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// names is a DNS server whose records can change.
type names struct {
	*net.Resolver
	server atomic.Value // host:port of the current server
}

func newNames(t *testing.T, zones smtptest.Zones) *names {
	t.Helper()
	n := &names{}
	n.server.Store(smtptest.NewDNS(t, zones))
	n.Resolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, n.server.Load().(string)) //nolint:forcetypeassert // nothing else is stored
	}}
	return n
}

func targetsOf(t *testing.T, n *names, allow string) *netguard.Targets {
	t.Helper()
	prefixes, err := netguard.ParsePrefixes(allow)
	if err != nil {
		t.Fatal(err)
	}
	return netguard.NewTargets(netguard.New(netguard.Config{Allow: prefixes}), n)
}

// listenOn counts the connections to an address. Port 0 means any port.
func listenOn(t *testing.T, address string) (port string, connects *atomic.Int64) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	connects = &atomic.Int64{}
	srv := &httptest.Server{Listener: l, Config: &http.Server{
		Handler:           http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
		ReadHeaderTimeout: patience,
		ConnState: func(_ net.Conn, s http.ConnState) {
			if s == http.StateNew {
				connects.Add(1)
			}
		},
	}}
	srv.Start()
	t.Cleanup(srv.Close)
	_, port, err = net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port, connects
}

const notReached = "the address may not be reached"

// A name may resolve to another address when it is dialed than when its URL was
// set. It is checked again then.
func TestNamesThatPointElsewhereWhenDialled(t *testing.T) { // W2
	t.Parallel()
	s := storetest.OpenSQLite(t)
	in := storetest.Inbox(t, s)
	port, connects := listenOn(t, "127.0.0.1:0")
	const open = "192.0.2.7" // represents a public address; all of its ports are allowed
	dns := newNames(t, smtptest.Zones{"rebind.example.": smtptest.A(open)})
	first := dns.server.Load()
	then := smtptest.NewDNS(t, smtptest.Zones{"rebind.example.": smtptest.A("127.0.0.1")})
	targets := targetsOf(t, dns, open+"/32")
	d := newDispatcher(t, s, time.Now, func(c *webhook.Config) { c.Targets, c.Resolver = targets, dns.Resolver })

	var hooks []store.Webhook
	for _, scheme := range []string{"http", "https"} {
		w, _ := newEndpoint(t, s, in.AccountID, scheme+"://rebind.example:"+port+"/")
		hooks = append(hooks, w)
	}
	for i := range rebinds {
		w := hooks[i%len(hooks)]
		dns.server.Store(first)
		if err := targets.Check(t.Context(), w.URL); err != nil {
			t.Fatalf("given: %v", err)
		}
		dns.server.Store(then)
		r, err := d.Test(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		if r.Error == nil || *r.Error != notReached {
			t.Fatalf("dialled: %+v", r)
		}
	}
	if n := connects.Load(); n != 0 {
		t.Errorf("%d connections of %d", n, rebinds)
	}
}

// Only permitted addresses of a name are dialed. An alias is treated like its
// target.
func TestNamesWithSeveralAddresses(t *testing.T) { // W2
	t.Parallel()
	s := storetest.OpenSQLite(t)
	in := storetest.Inbox(t, s)
	port, good := listenOn(t, "127.0.0.2:0")
	_, bad := listenOn(t, "127.0.0.1:"+port)
	dns := newNames(t, smtptest.Zones{
		"mixed.example.":  smtptest.A("10.0.0.1", "127.0.0.1", "127.0.0.2"),
		"bad.example.":    smtptest.A("127.0.0.1", "10.0.0.1"),
		"alias.example.":  {CNAME: "second.example."},
		"second.example.": {CNAME: "third.example."},
		"third.example.":  smtptest.A("127.0.0.1"),
	})
	d := newDispatcher(t, s, time.Now, func(c *webhook.Config) {
		c.Targets, c.Resolver = targetsOf(t, dns, "127.0.0.2/32"), dns.Resolver
	})
	for name, want := range map[string]store.DeliveryStatus{
		"mixed.example": store.DeliverySucceeded, "bad.example": store.DeliveryFailed, "alias.example": store.DeliveryFailed,
	} {
		w, _ := newEndpoint(t, s, in.AccountID, "http://"+name+":"+port+"/")
		r, err := d.Test(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		if r.Status != want || want == store.DeliveryFailed && *r.Error != notReached {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if good.Load() != 1 || bad.Load() != 0 {
		t.Errorf("%d connections to the good address, %d to the bad one", good.Load(), bad.Load())
	}
}

// For every kind of endpoint URL, events, retries and tests are refused.
// Neither the delivery nor the log contains an address.
func TestEveryCallIsGuarded(t *testing.T) { // W12, W1
	t.Parallel()
	text, err := os.ReadFile("../netguard/testdata/refused.txt")
	if err != nil {
		t.Fatal(err)
	}
	urls := strings.Fields(string(text))
	if len(urls) != 64 {
		t.Errorf("there are %d targets", len(urls))
	}
	var log bytes.Buffer
	s := storetest.OpenSQLite(t, storetest.WithLog(slog.New(slog.NewTextHandler(&log, nil))))
	in := storetest.Inbox(t, s)
	dns := newNames(t, smtptest.Zones{ // these names were public when their URLs were set
		"hooks.example.": smtptest.A("10.0.0.9"), "own.example.": smtptest.A("127.0.0.1"), "private.example.": smtptest.A("10.0.0.1"),
		"loop6.example.": {AAAA: []string{"::1"}},
	})
	own := netguard.New(netguard.Config{Own: ownAddresses})
	d := newDispatcher(t, s, time.Now, func(c *webhook.Config) {
		c.Targets, c.Resolver = netguard.NewTargets(own, dns), dns.Resolver
		c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	for _, url := range urls {
		w, _ := newEndpoint(t, s, in.AccountID, url)
		storetest.Received(t, s, in)
		runOnce(t, d, 1)
		if _, err := s.RetryDelivery(t.Context(), w, deliveries(t, s, w)[0].ID); err != nil {
			t.Fatal(err)
		}
		runOnce(t, d, 1)
		if _, err := d.Test(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		all := deliveries(t, s, w)
		if len(all) != 2 || all[0].Attempts != 1 || all[1].Attempts != 2 {
			t.Errorf("%s: %+v", url, all)
		}
		for _, got := range all {
			wantRefused(t, url, got)
		}
		if err := s.DeleteWebhook(t.Context(), in.AccountID, w.ID); err != nil {
			t.Fatal(err)
		}
	}
	if found := address.FindString(log.String()); found != "" || log.Len() == 0 {
		t.Errorf("%d bytes of log contain %q", log.Len(), found)
	}
}

// ownAddresses stand for our own addresses.
var ownAddresses = []netip.Addr{netip.MustParseAddr("9.9.9.9")}

// address matches IP addresses.
var address = regexp.MustCompile(`\d+\.\d+\.\d+\.\d+|::|\[.*\]:\d`)

func wantRefused(t *testing.T, url string, got store.Delivery) {
	t.Helper()
	faults := []string{notReached, "the URL is not valid", "the name does not resolve"}
	if got.Status == store.DeliverySucceeded || got.LastStatusCode != nil || got.LastError == nil || !slices.Contains(faults, *got.LastError) {
		t.Errorf("%s: %+v", url, got)
	}
}
