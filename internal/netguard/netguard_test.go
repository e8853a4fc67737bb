package netguard_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/netguard"
)

func TestOnlyPublicAddressesPass(t *testing.T) {
	t.Parallel()
	guard := netguard.New(netguard.Config{Own: []netip.Addr{netip.MustParseAddr("9.9.9.9"), netip.MustParseAddr("2620:fe::9")}})

	tests := []struct {
		addr string
		pass bool
	}{
		{"1.1.1.1", true},
		{"2606:4700:4700::1111", true},
		{"0.0.0.0", false},
		{"0.1.2.3", false},
		{"10.1.2.3", false},
		{"100.64.0.1", false},
		{"127.0.0.1", false},
		{"127.9.9.9", false},
		{"168.63.129.16", false},
		{"169.254.169.254", false},
		{"172.16.0.1", false},
		{"192.0.0.1", false},
		{"192.0.2.1", false},
		{"192.168.1.1", false},
		{"198.18.0.1", false},
		{"203.0.113.9", false},
		{"224.0.0.1", false},
		{"240.0.0.1", false},
		{"255.255.255.255", false},
		{"::", false},
		{"::1", false},
		{"fc00::1", false},
		{"fe80::1", false},
		{"fe80::1%lo", false},
		{"fec0::1", false},
		{"ff02::1", false},
		{"::ffff:127.0.0.1", false},
		{"::ffff:10.0.0.1", false},
		{"64:ff9b::7f00:1", false},
		{"64:ff9b:1::1", false},
		{"2001:db8::1", false},
		{"2002:7f00:1::", false},
		{"9.9.9.9", false},
		{"::ffff:9.9.9.9", false},
		{"2620:fe::9", false},
	}
	for _, tt := range tests {
		err := guard.Check(netip.MustParseAddr(tt.addr))
		if tt.pass != (err == nil) {
			t.Errorf("%s: %v", tt.addr, err)
		}
		if err != nil && !errors.Is(err, netguard.ErrRefused) {
			t.Errorf("%s: %v is not ErrRefused", tt.addr, err)
		}
	}
}

func TestAllowedRangesPass(t *testing.T) {
	t.Parallel()
	allow, err := netguard.ParsePrefixes("127.0.0.0/8, ::1, 9.9.9.9")
	if err != nil {
		t.Fatal(err)
	}
	guard := netguard.New(netguard.Config{Allow: allow, Own: []netip.Addr{netip.MustParseAddr("9.9.9.9")}})

	for addr, pass := range map[string]bool{
		"127.0.0.1": true, "::ffff:127.0.0.1": true, "::1": true, "9.9.9.9": true, "10.0.0.1": false, "::2": false,
	} {
		if err := guard.Check(netip.MustParseAddr(addr)); pass != (err == nil) {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

// A name may resolve to one address when it is checked and to another when it
// is dialled. The second one decides (W2).
func TestControlChecksTheAddressThatIsDialled(t *testing.T) {
	t.Parallel()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	port := uint16(l.Addr().(*net.TCPAddr).Port) //nolint:gosec // a port fits

	tests := []struct {
		name string
		cfg  netguard.Config
		pass bool
	}{
		{"private", netguard.Config{}, false},
		{"allowed", netguard.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, true},
		{"allowed, this port", netguard.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Ports: []uint16{port}}, true},
		{"allowed, another port", netguard.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Ports: []uint16{1}}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := net.Dialer{Control: netguard.New(tt.cfg).Control}
			conn, err := d.DialContext(context.Background(), "tcp", l.Addr().String())
			if conn != nil {
				_ = conn.Close()
			}
			if tt.pass && err != nil {
				t.Errorf("refused: %v", err)
			}
			if !tt.pass && !errors.Is(err, netguard.ErrRefused) {
				t.Errorf("got %v, want ErrRefused", err)
			}
		})
	}
}

func TestParsePrefixes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in   string
		want []string
		err  string
	}{
		{in: ""},
		{in: "10.0.0.0/8", want: []string{"10.0.0.0/8"}},
		{in: "10.1.2.3/8 ::1,192.168.0.7", want: []string{"10.0.0.0/8", "::1/128", "192.168.0.7/32"}},
		{in: "::ffff:10.0.0.0/104", want: []string{"10.0.0.0/8"}},
		{in: "10.0.0.0/8,lan", err: `"lan" is not a range such as 10.0.0.0/8`},
		{in: "10.0.0.0/33", err: `"10.0.0.0/33" is not a range such as 10.0.0.0/8`},
	}
	for _, tt := range tests {
		got, err := netguard.ParsePrefixes(tt.in)
		if err != nil || tt.err != "" {
			if err == nil || err.Error() != tt.err {
				t.Errorf("%q: error %v, want %q", tt.in, err, tt.err)
			}
			continue
		}
		var texts []string
		for _, p := range got {
			texts = append(texts, p.String())
		}
		if diff := cmp.Diff(tt.want, texts); diff != "" {
			t.Errorf("%q: %s", tt.in, diff)
		}
	}
}

func TestInterfaceAddrsKnowsLoopback(t *testing.T) {
	t.Parallel()
	addrs, err := netguard.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		if a.IsLoopback() {
			return
		}
	}
	t.Errorf("no loopback address among %v", addrs)
}
