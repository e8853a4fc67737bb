package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/postroom/postroom/internal/mailauth"
)

type spfRecord struct {
	ID       string                       `json:"id"`
	Type     string                       `json:"type"`
	HELO     string                       `json:"helo"`
	Host     string                       `json:"host"`
	MailFrom string                       `json:"mailfrom"`
	Zone     map[string][]json.RawMessage `json:"zone"`
	Expected struct {
		Result []mailauth.Result `json:"result"`
	} `json:"expected"`
}

func scoreSPF(ctx context.Context, c *corpus) ([]row, error) {
	list, err := records[spfRecord](c, "auth.jsonl")
	if err != nil {
		return nil, err
	}
	var right share
	for i := range list {
		r := &list[i]
		if r.Type != "spf" {
			continue
		}
		zone, err := newZone(r.Zone)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.ID, err)
		}
		ip, err := netip.ParseAddr(r.Host)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.ID, err)
		}
		got := mailauth.CheckHost(ctx, zone, ip, r.HELO, r.MailFrom)
		ok := slices.Contains(r.Expected.Result, got.Result)
		if right.add(ok); !ok {
			c.miss(r.ID, "SPF %s (%s), want %v", got.Result, got.Reason, r.Expected.Result)
		}
	}
	return []row{right.atLeast("SPF", 0.99)}, nil
}

// zone is the DNS zone of one record. Names that it does not contain do not
// exist.
type zone map[string]*zoneName

// zoneName holds the records of a name.
type zoneName struct {
	txt, spf, a, aaaa, ptr []string
	mx                     []*net.MX
	cname                  string
	timeout                bool // queries without data time out
}

// errTimeout is the error of a server that does not reply.
var errTimeout = &net.DNSError{Err: "timed out", IsTimeout: true, IsTemporary: true}

func newZone(names map[string][]json.RawMessage) (zone, error) {
	z := zone{}
	for name, items := range names {
		n := &zoneName{}
		for _, item := range items {
			if string(item) == `"TIMEOUT"` {
				n.timeout = true
				continue
			}
			var fields map[string]json.RawMessage
			if err := json.Unmarshal(item, &fields); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			for kind, value := range fields {
				if err := n.add(kind, value); err != nil {
					return nil, fmt.Errorf("%s %s: %w", name, kind, err)
				}
			}
		}
		z[strings.ToLower(name)] = n
	}
	return z, nil
}

func (n *zoneName) add(kind string, value json.RawMessage) error {
	if kind == "MX" {
		var pref uint16
		var host string
		if err := json.Unmarshal(value, &[]any{&pref, &host}); err != nil {
			return err
		}
		n.mx = append(n.mx, &net.MX{Pref: pref, Host: host})
		return nil
	}
	text, err := joined(value)
	if err != nil {
		return err
	}
	switch kind {
	case "TXT":
		n.txt = append(n.txt, text)
	case "SPF":
		n.spf = append(n.spf, text)
	case "A":
		n.a = append(n.a, text)
	case "AAAA":
		n.aaaa = append(n.aaaa, text)
	case "PTR":
		n.ptr = append(n.ptr, text)
	case "CNAME":
		n.cname = text
	default:
		return errors.New("unknown type of record")
	}
	return nil
}

// joined reads a string, or joins the strings of one TXT record as a resolver
// does.
func joined(value json.RawMessage) (string, error) {
	var one string
	if json.Unmarshal(value, &one) == nil {
		return one, nil
	}
	var many []string
	err := json.Unmarshal(value, &many)
	return strings.Join(many, ""), err
}

// get follows the aliases of a name and returns the result of pick.
func (z zone) get(name string, pick func(*zoneName) []string) ([]string, error) {
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	for range 10 {
		n := z[name]
		if n == nil {
			break
		}
		if values := pick(n); len(values) > 0 {
			return values, nil
		}
		if n.timeout {
			return nil, errTimeout
		}
		if n.cname == "" {
			break
		}
		name = strings.TrimSuffix(strings.ToLower(n.cname), ".")
	}
	return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

// LookupTXT implements dns.Resolver. The test records use the obsolete type SPF
// for policies; they apply to TXT unless the record sets TXT itself.
func (z zone) LookupTXT(_ context.Context, name string) ([]string, error) {
	return z.get(name, func(n *zoneName) []string {
		switch {
		case len(n.txt) == 0:
			return n.spf
		case len(n.txt) == 1 && n.txt[0] == "NONE":
			return nil
		}
		return n.txt
	})
}

// LookupMX implements dns.Resolver.
func (z zone) LookupMX(_ context.Context, name string) ([]*net.MX, error) {
	var found []*net.MX
	_, err := z.get(name, func(n *zoneName) []string {
		found = n.mx
		return make([]string, len(n.mx))
	})
	return found, err
}

// LookupNetIP implements dns.Resolver.
func (z zone) LookupNetIP(_ context.Context, network, host string) ([]netip.Addr, error) {
	values, err := z.get(host, func(n *zoneName) []string {
		if network == "ip4" {
			return n.a
		}
		return n.aaaa
	})
	var out []netip.Addr
	for _, v := range values {
		ip, err := netip.ParseAddr(v)
		if err != nil {
			return nil, err
		}
		out = append(out, ip)
	}
	return out, err
}

// LookupAddr implements dns.Resolver.
func (z zone) LookupAddr(_ context.Context, addr string) ([]string, error) {
	ip, err := netip.ParseAddr(addr)
	if err != nil {
		return nil, err
	}
	return z.get(reverseName(ip), func(n *zoneName) []string { return n.ptr })
}

// reverseName returns the name of an address in the reverse tree.
func reverseName(ip netip.Addr) string {
	name := "in-addr.arpa"
	if ip.Is4() {
		for _, b := range ip.AsSlice() {
			name = fmt.Sprintf("%d.%s", b, name)
		}
		return name
	}
	name = "ip6.arpa"
	for _, b := range ip.AsSlice() {
		name = fmt.Sprintf("%x.%x.%s", b&15, b>>4, name)
	}
	return name
}
