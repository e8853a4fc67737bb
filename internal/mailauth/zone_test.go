package mailauth

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// errTrouble is the error of a FAIL record.
var errTrouble = &net.DNSError{Err: "server misbehaving", IsTemporary: true}

// zone is a resolver in memory. Names without records do not exist.
type zone struct {
	records map[string][]record // by name in lower case

	mu    sync.Mutex
	asked []string // "TXT _dmarc.example.com", in order
}

type record struct{ kind, value string }

// parseZone reads lines "name TYPE value": TXT, A, AAAA, MX, PTR, CNAME, or FAIL for a name
// whose lookups fail, and SILENT for one whose lookups take as long as they may. MX values are
// a preference and a host.
func parseZone(t testing.TB, text string) *zone {
	t.Helper()
	z := &zone{records: map[string][]record{}}
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimLeft(line, " \t"); line == "" {
			continue
		}
		fields := strings.SplitN(line, " ", 3)
		if len(fields) < 2 {
			t.Fatalf("zone: %q", line)
		}
		z.add(fields[0], fields[1], strings.Join(fields[2:], ""))
	}
	return z
}

func (z *zone) add(name, kind, value string) {
	name = strings.ToLower(name)
	z.records[name] = append(z.records[name], record{kind, value})
}

// get returns the values of one kind, following CNAMEs.
func (z *zone) get(ctx context.Context, name, kind string) ([]string, error) {
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	z.mu.Lock()
	z.asked = append(z.asked, kind+" "+name)
	z.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for range 8 {
		var values []string
		alias := ""
		for _, r := range z.records[name] {
			switch r.kind {
			case kind:
				values = append(values, r.value)
			case "CNAME":
				alias = strings.TrimSuffix(strings.ToLower(r.value), ".")
			case "FAIL":
				return nil, errTrouble
			case "SILENT":
				<-ctx.Done()
				return nil, &net.DNSError{Err: ctx.Err().Error(), Name: name, IsTimeout: true}
			}
		}
		if len(values) > 0 {
			return values, nil
		}
		if alias == "" {
			return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
		}
		name = alias
	}
	return nil, errors.New("too many aliases")
}

func (z *zone) LookupTXT(ctx context.Context, name string) ([]string, error) {
	return z.get(ctx, name, "TXT")
}

func (z *zone) LookupMX(ctx context.Context, name string) ([]*net.MX, error) {
	values, err := z.get(ctx, name, "MX")
	var out []*net.MX
	for _, v := range values {
		pref, host, _ := strings.Cut(v, " ")
		n, err := strconv.ParseUint(pref, 10, 16)
		if err != nil {
			return nil, err
		}
		out = append(out, &net.MX{Host: host, Pref: uint16(n)})
	}
	return out, err
}

func (z *zone) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	values, err := z.get(ctx, host, map[string]string{"ip4": "A", "ip6": "AAAA"}[network])
	var out []netip.Addr
	for _, v := range values {
		out = append(out, netip.MustParseAddr(v))
	}
	return out, err
}

func (z *zone) LookupAddr(ctx context.Context, addr string) ([]string, error) {
	ip := netip.MustParseAddr(addr)
	parts := strings.Split(dotted(ip), ".")
	name := "in-addr.arpa"
	if ip.Is6() {
		name = "ip6.arpa"
	}
	for _, p := range parts {
		name = p + "." + name
	}
	return z.get(ctx, name, "PTR")
}
