package netguard_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/dns"
	"github.com/postroom/postroom/internal/netguard"
)

// names resolves from a table.
type names struct {
	dns.Resolver
	addrs map[string][]netip.Addr
}

func (n names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	if addrs := n.addrs[host]; addrs != nil {
		return addrs, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

func testNames() names {
	public, private := netip.MustParseAddr("1.1.1.1"), netip.MustParseAddr("10.0.0.1")
	return names{addrs: map[string][]netip.Addr{
		"hooks.example": {public}, "private.example": {private}, "mixed.example": {private, public},
		"own.example": {netip.MustParseAddr("9.9.9.9")}, "loop6.example": {netip.IPv6Loopback()},
	}}
}

// refusedTargets are 64 ways to ask for what may not be reached.
func refusedTargets(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("testdata/refused.txt")
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Fields(string(text))
	if len(all) != 64 {
		t.Fatalf("there are %d targets", len(all))
	}
	return all
}

func TestPrivateTargetsAreRefused(t *testing.T) { // W1
	t.Parallel()
	guard := netguard.New(netguard.Config{Own: []netip.Addr{netip.MustParseAddr("9.9.9.9")}})
	targets := netguard.NewTargets(guard, testNames())
	for _, target := range append([]string{
		"http://hooks.example/", "https://", "https:///x", "https:hooks.example", "//hooks.example/", "https://-a.example/", "https://a..example/",
		"https://hooks.example:0/", "https://hooks.example:99999/", "https://hooks.example/#x", "https://a b/", "https://xn--/\x00", "unresolved.example",
		"http://unresolved.example/",
	}, refusedTargets(t)...) {
		if err := targets.Check(t.Context(), target); !errors.Is(err, netguard.ErrRefused) {
			t.Errorf("%q: got %v, want ErrRefused", target, err)
		}
	}
}

func TestPublicTargetsPass(t *testing.T) {
	t.Parallel()
	targets := netguard.NewTargets(netguard.New(netguard.Config{}), testNames())
	for _, target := range []string{
		"https://hooks.example/", "https://hooks.example", "https://HOOKS.example./a?b=c", "https://hooks.example:443/", "https://hooks.example:8443/",
		"https://hooks.example:3000/", "https://1.1.1.1:25/", "https://unresolved.example:25/",
		"https://1.1.1.1/", "https://[2606:4700:4700::1111]/", "https://mixed.example/", "https://unresolved.example/",
	} {
		if err := targets.Check(t.Context(), target); err != nil {
			t.Errorf("%q: %v", target, err)
		}
	}
}

func TestAllowedTargetsPass(t *testing.T) { // W1, the operator's ranges
	t.Parallel()
	allow, err := netguard.ParsePrefixes("127.0.0.0/8, 10.0.0.0/8")
	if err != nil {
		t.Fatal(err)
	}
	targets := netguard.NewTargets(netguard.New(netguard.Config{Allow: allow}), testNames())
	for target, pass := range map[string]bool{
		"http://127.0.0.1:3000/": true, "http://localhost:8080/": true, "https://private.example:5000/": true, "http://10.0.0.1/": true,
		"http://unresolved.example/": true,
		"http://192.168.0.1/":        false, "http://hooks.example/": false, "http://[::1]/": false, "https://2130706433/": false,
	} {
		if err := targets.Check(t.Context(), target); pass != (err == nil) {
			t.Errorf("%q: %v", target, err)
		}
	}
}

func TestControlIsOfTheScheme(t *testing.T) { // W1, W2
	t.Parallel()
	allow, err := netguard.ParsePrefixes("127.0.0.0/8")
	if err != nil {
		t.Fatal(err)
	}
	targets := netguard.NewTargets(netguard.New(netguard.Config{Allow: allow}), testNames())
	for _, tt := range []struct {
		scheme, network, address string
		pass                     bool
	}{
		{"https", "tcp4", "1.1.1.1:443", true},
		{"https", "tcp4", "1.1.1.1:9000", true},
		{"http", "tcp4", "1.1.1.1:80", false},
		{"http", "tcp4", "127.0.0.1:3000", true},
		{"https", "tcp6", "[::ffff:127.0.0.1]:3000", true},
		{"https", "tcp6", "[::1]:443", false},
		{"https", "tcp4", "10.0.0.1:443", false},
		{"https", "udp4", "127.0.0.1:443", false},
		{"https", "tcp4", "hooks.example:443", false},
	} {
		err := targets.Control(tt.scheme)(tt.network, tt.address, nil)
		if tt.pass != (err == nil) || err != nil && !errors.Is(err, netguard.ErrRefused) {
			t.Errorf("%s %s %s: %v", tt.scheme, tt.network, tt.address, err)
		}
	}
}

// What a target is at, however its URL is written, is refused again when it is
// dialled (W1).
func TestPrivateAddressesAreRefusedWhenDialled(t *testing.T) {
	t.Parallel()
	targets := netguard.NewTargets(netguard.New(netguard.Config{Own: []netip.Addr{netip.MustParseAddr("9.9.9.9")}}), testNames())
	n := 0
	for _, raw := range refusedTargets(t) {
		u, err := url.Parse(raw)
		if err != nil {
			continue
		}
		addr, err := netip.ParseAddr(u.Hostname())
		if err != nil || addr == netip.MustParseAddr("1.1.1.1") {
			continue
		}
		n++
		for _, scheme := range []string{"http", "https"} {
			if err := targets.Control(scheme)("tcp", netip.AddrPortFrom(addr, 443).String(), nil); !errors.Is(err, netguard.ErrRefused) {
				t.Errorf("%s %s: got %v, want ErrRefused", scheme, addr, err)
			}
		}
	}
	if n < 30 {
		t.Errorf("only %d addresses were tried", n)
	}
}
