package mailauth

import (
	"net/netip"
	"strconv"
	"strings"
	"testing"
)

// TestSPF checks row A1 with our own cases, in the order of RFC 7208. By
// default a message comes from 192.0.2.10 or 2001:db8::10 and is from
// ann@example.org. Both are addresses of host.example.net.
func TestSPF(t *testing.T) {
	t.Parallel()
	const hosts = `
		host.example.net A 192.0.2.10
		host.example.net AAAA 2001:db8::10
		near.example.net A 192.0.2.77
		near.example.net AAAA 2001:db8::77
		far.example.net A 198.51.100.1
		only6.example.net AAAA 2001:db8::10
		broken.example.net FAIL
		10.2.0.192.in-addr.arpa PTR host.example.net.
		10.2.0.192.in-addr.arpa PTR liar.example.com
		liar.example.com A 198.51.100.9
		0.1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa PTR host.example.net
		yes.example.net TXT v=spf1 ip4:192.0.2.10 -all
		no.example.net TXT v=spf1 -all
		soft.example.net TXT v=spf1 ~all
		open.example.net TXT v=spf1
		wrong.example.net TXT v=spf1 nonsense
		mx.example.net MX 10 far.example.net
		mx.example.net MX 20 host.example.net.
		null.example.net MX 0 .
		192.0.2.10.ann.ok.example.net A 127.0.0.2
		example.org.d.ok.example.net A 127.0.0.2
	`
	for _, tt := range spfCases {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			z := parseZone(t, hosts)
			for line := range strings.SplitSeq(tt.zone, "\n") {
				line = strings.TrimLeft(line, "\t")
				if strings.HasPrefix(line, "v=spf1") {
					line = "example.org TXT " + line
				}
				if name, rest, ok := strings.Cut(line, " "); ok {
					kind, value, _ := strings.Cut(rest, " ")
					z.add(name, kind, value)
				}
			}
			from, helo := "ann@example.org", "host.example.net"
			if tt.from != "" {
				from = strings.TrimSuffix(strings.TrimPrefix(tt.from, "<"), ">")
			}
			if tt.helo != "" {
				helo = tt.helo
			}
			addrs := []string{"192.0.2.10", "2001:db8::10", "::ffff:192.0.2.10"}
			for i, want := range strings.Fields(tt.want) {
				got := CheckHost(t.Context(), z, netip.MustParseAddr(addrs[i]), helo, from)
				if string(got.Result) != want || got.Explanation != tt.exp {
					t.Errorf("from %s: %+v, want %s %q", addrs[i], got, want, tt.exp)
				}
				if explained := got.Result == TempError || got.Result == PermError; explained != (got.Reason != "") {
					t.Errorf("from %s: %s with the reason %q", addrs[i], got.Result, got.Reason)
				}
			}
		})
	}
}

// spfCases are the cases of TestA1SPF. want has the results for the IPv4
// client, the IPv6 client, and the IPv4 client as an IPv4-mapped address. A
// line of zone that begins with v=spf1 is the record of example.org. from is in
// angle brackets if it may be empty.
var spfCases = []struct{ name, from, helo, zone, want, exp string }{
	// 2.4, 4.3: the domain that is checked
	{name: "no record", zone: "example.org TXT hello", want: "none"},
	{name: "no such domain", from: "<ann@nowhere.example.org>", want: "none"},
	{name: "null reverse-path asks HELO", from: "<>", helo: "yes.example.net", want: "pass fail pass"},
	{name: "null reverse-path and HELO without dots", from: "<>", helo: "localhost", want: "none"},
	{name: "null reverse-path and a literal", from: "<>", helo: "[192.0.2.10]", want: "none"},
	{name: "literal", from: "ann@[192.0.2.10]", want: "none"},
	{name: "one label", from: "ann@localhost", want: "none"},
	{name: "empty label", from: "ann@example..org", want: "none"},
	{name: "label of 64", from: "ann@" + strings.Repeat("a", 64) + ".example.org", want: "none"},
	{name: "dot at the end", from: "ann@example.org.", zone: "v=spf1 -all", want: "fail"},
	{name: "upper case", from: "ann@EXAMPLE.ORG", zone: "v=spf1 -all", want: "fail"},
	{name: "U-labels", from: "ann@bücher.example", zone: "xn--bcher-kva.example TXT v=spf1 +all", want: "pass"},
	{name: "two at signs", from: `"a@b"@example.org`, zone: "v=spf1 -all", want: "fail"},
	{name: "not valid as a U-label", from: "ann@b\u0378cher.example", want: "none"},

	// 4.4, 4.5: the record
	{name: "the DNS fails", zone: "example.org FAIL", want: "temperror"},
	{name: "other TXT records beside it", zone: "v=spf1 -all\nexample.org TXT other", want: "fail"},
	{name: "upper-case version", zone: "example.org TXT V=SPF1 ~ALL", want: "softfail"},
	{name: "a version that only begins alike", zone: "example.org TXT v=spf10 -all", want: "none"},
	{name: "two records", zone: "v=spf1 -all\nv=spf1 -all", want: "permerror"},
	{name: "empty record", zone: "example.org TXT v=spf1", want: "neutral"},
	{name: "spaces", zone: "v=spf1   ip4:192.0.2.10    -all  ", want: "pass fail pass"},
	{name: "tab", zone: "v=spf1\t-all", want: "none"},
	{name: "tab between terms", zone: "v=spf1 a\t-all", want: "permerror"},
	{name: "not ASCII", zone: "v=spf1 a:bücher.example -all", want: "permerror"},
	{name: "NUL", zone: "v=spf1 a:host.example.net\x00 -all", want: "permerror"},
	{name: "alias", zone: "example.org CNAME yes.example.net", want: "pass"},
	{name: "alias of itself", zone: "example.org CNAME example.org", want: "temperror"},

	// 4.6: evaluation
	{name: "first match wins", zone: "v=spf1 ?ip4:192.0.2.10 -all", want: "neutral fail"},
	{name: "an error after the match counts", zone: "v=spf1 +all nonsense", want: "permerror"},
	{name: "no match", zone: "v=spf1 ip4:198.51.100.1", want: "neutral"},
	{name: "qualifier alone", zone: "v=spf1 -", want: "permerror"},
	{name: "two qualifiers", zone: "v=spf1 --all", want: "permerror"},
	{name: "unknown modifier", zone: "v=spf1 x-y.z_1=any:thing/%{d} -all", want: "fail"},
	{name: "unknown modifier with a broken macro", zone: "v=spf1 x=%y -all", want: "permerror"},
	{name: "modifier name that begins with a digit", zone: "v=spf1 1x=y -all", want: "permerror"},
	{name: "modifier without a name", zone: "v=spf1 =y -all", want: "permerror"},

	// 5.1: all
	{name: "all with a domain", zone: "v=spf1 all:example.org", want: "permerror"},
	{name: "all with a length", zone: "v=spf1 -all/8", want: "permerror"},
	{name: "all with a dot", zone: "v=spf1 -all.", want: "permerror"},
	{name: "all before redirect", zone: "v=spf1 ?all redirect=no.example.net", want: "neutral"},

	// 5.2: include
	{name: "include that passes", zone: "v=spf1 ~include:yes.example.net -all", want: "softfail fail"},
	{name: "include that does not", zone: "v=spf1 include:no.example.net include:soft.example.net include:open.example.net ?all", want: "neutral"},
	{name: "include of nothing", zone: "v=spf1 include:nowhere.example.net +all", want: "permerror"},
	{name: "include of an error", zone: "v=spf1 include:wrong.example.net +all", want: "permerror"},
	{name: "include of trouble", zone: "v=spf1 include:broken.example.net +all", want: "temperror"},
	{name: "include without a domain", zone: "v=spf1 include", want: "permerror"},
	{name: "include with an empty domain", zone: "v=spf1 include: -all", want: "permerror"},
	{name: "include with a length", zone: "v=spf1 include:yes.example.net/24", want: "permerror"},
	{name: "include that redirects", zone: "v=spf1 include:r.example.net -all\nr.example.net TXT v=spf1 redirect=yes.example.net", want: "pass fail"},
	{name: "include of what no question can ask", zone: "v=spf1 include:%{l}..example.net -all", want: "permerror"},

	// 5.3: a
	{name: "a of the domain", zone: "v=spf1 a -all\nexample.org A 192.0.2.10", want: "pass fail pass"},
	{name: "a by family", zone: "v=spf1 a:only6.example.net -all", want: "fail pass fail"},
	{name: "a with a length", zone: "v=spf1 a:near.example.net/24 -all", want: "pass fail pass"},
	{name: "a with a length of IPv6", zone: "v=spf1 a:near.example.net//64 -all", want: "fail pass"},
	{name: "a with both lengths", zone: "v=spf1 a:near.example.net/25//120 -all", want: "pass pass"},
	{name: "a with lengths that are too narrow", zone: "v=spf1 a:near.example.net/26//122 -all", want: "fail fail"},
	{name: "a with length 0", zone: "v=spf1 a:far.example.net/0 -all", want: "pass fail"},
	{name: "a with length 33", zone: "v=spf1 a/33", want: "permerror"},
	{name: "a with length 129", zone: "v=spf1 a//129", want: "permerror"},
	{name: "a with a leading zero", zone: "v=spf1 a/024", want: "permerror"},
	{name: "a with two single lengths", zone: "v=spf1 a/24/64", want: "permerror"},
	{name: "a with lengths in the wrong order", zone: "v=spf1 a//64/24", want: "permerror"},
	{name: "a with an empty length", zone: "v=spf1 a:host.example.net/", want: "permerror"},
	{name: "a with a slash in the name", zone: "v=spf1 a:x/y.example.net -all\nx/y.example.net A 192.0.2.10", want: "pass"},
	{name: "a with a port", zone: "v=spf1 a:host.example.net:25", want: "permerror"},
	{name: "a with an address", zone: "v=spf1 a:192.0.2.10", want: "permerror"},
	{name: "a with a top label of digits", zone: "v=spf1 a:example.123", want: "permerror"},
	{name: "a with a hyphen before the top label", zone: "v=spf1 a:example.-net", want: "permerror"},
	{name: "a with a hyphen in the top label", zone: "v=spf1 a:example.xn--p1ai -all\nexample.xn--p1ai A 192.0.2.10", want: "pass"},
	{name: "a with one label", zone: "v=spf1 a:example", want: "permerror"},
	{name: "a with a dot at the end", zone: "v=spf1 a:host.example.net. -all", want: "pass"},
	{name: "a with trouble", zone: "v=spf1 a:broken.example.net -all", want: "temperror"},
	{name: "a through an alias", zone: "v=spf1 a:alias.example.org -all\nalias.example.org CNAME host.example.net", want: "pass"},
	{name: "a of what no question can ask", zone: "v=spf1 a:x..example.net -all", want: "fail"},

	// 5.4: mx
	{name: "mx", zone: "v=spf1 mx:mx.example.net -all", want: "pass pass pass"},
	{name: "mx of the domain", zone: "v=spf1 mx -all\nexample.org MX 0 near.example.net", want: "fail fail"},
	{name: "mx with a length", zone: "v=spf1 mx/24//64 -all\nexample.org MX 0 near.example.net", want: "pass pass"},
	{name: "mx without records does not fall back", zone: "v=spf1 mx:host.example.net -all", want: "fail"},
	{name: "null mx", zone: "v=spf1 mx:null.example.net ?all", want: "neutral"},
	{name: "mx with trouble at a host", zone: "v=spf1 mx -all\nexample.org MX 0 broken.example.net", want: "temperror"},
	{name: "ten mx", zone: "v=spf1 mx -all" + numbered("example.org MX # h#.example.net", 9) + "\nexample.org MX 99 host.example.net" + numbered("h#.example.net A 198.51.100.#", 9), want: "pass"},
	{name: "eleven mx", zone: "v=spf1 mx -all" + numbered("example.org MX # host.example.net", 11), want: "permerror"},

	// 5.5: ptr
	{name: "ptr", zone: "v=spf1 ptr:example.net -all", want: "pass pass pass"},
	{name: "ptr of the host itself", zone: "v=spf1 ptr:HOST.example.net -all", want: "pass pass"},
	{name: "ptr whose name is another's", zone: "v=spf1 ptr:example.com -all", want: "fail"},
	{name: "ptr that only ends alike", zone: "v=spf1 ptr:ost.example.net -all", want: "fail"},
	{name: "ptr with a length", zone: "v=spf1 ptr:example.net/24", want: "permerror"},
	{name: "ptr with trouble does not match", zone: "v=spf1 ptr -all\n10.2.0.192.in-addr.arpa FAIL", want: "fail"},

	// 5.6: ip4, ip6
	{name: "ip4 network", zone: "v=spf1 ip4:192.0.2.0/24 -all", want: "pass fail pass"},
	{name: "ip4 everything", zone: "v=spf1 ip4:0.0.0.0/0 -all", want: "pass fail"},
	{name: "ip6 everything", zone: "v=spf1 ip6:::/0 -all", want: "fail pass fail"},
	{name: "ip6 network", zone: "v=spf1 ip6:2001:DB8::/32 -all", want: "fail pass"},
	{name: "ip6 of an IPv4-mapped address", zone: "v=spf1 ip6:::ffff:192.0.2.10 -all", want: "fail fail fail"},
	{name: "ip4 without an address", zone: "v=spf1 ip4", want: "permerror"},
	{name: "ip4 of three parts", zone: "v=spf1 ip4:192.0.2", want: "permerror"},
	{name: "ip4 with a port", zone: "v=spf1 ip4:192.0.2.10:25", want: "permerror"},
	{name: "ip4 with length 33", zone: "v=spf1 ip4:192.0.2.10/33", want: "permerror"},
	{name: "ip4 with two lengths", zone: "v=spf1 ip4:192.0.2.10/24//64", want: "permerror"},
	{name: "ip4 of IPv6", zone: "v=spf1 ip4:2001:db8::10", want: "permerror"},
	{name: "ip6 with length 129", zone: "v=spf1 ip6:2001:db8::10/129", want: "permerror"},
	{name: "ip6 with a zone", zone: "v=spf1 ip6:fe80::1%eth0", want: "permerror"},

	// 5.7: exists
	{name: "exists", zone: "v=spf1 exists:far.example.net -all", want: "pass pass"},
	{name: "exists looks for IPv4", zone: "v=spf1 exists:only6.example.net -all", want: "fail fail"},
	{name: "exists with trouble", zone: "v=spf1 exists:broken.example.net -all", want: "temperror"},
	{name: "exists without a domain", zone: "v=spf1 exists", want: "permerror"},

	// 6.1: redirect
	{name: "redirect", zone: "v=spf1 ip4:198.51.100.1 redirect=yes.example.net", want: "pass fail"},
	{name: "redirect before the mechanisms", zone: "v=spf1 redirect=yes.example.net ?ip4:192.0.2.10", want: "neutral fail"},
	{name: "redirect to nothing", zone: "v=spf1 redirect=nowhere.example.net", want: "permerror"},
	{name: "redirect to trouble", zone: "v=spf1 redirect=broken.example.net", want: "temperror"},
	{name: "redirect changes the domain", zone: "v=spf1 redirect=r.example.net\nr.example.net TXT v=spf1 a -all\nr.example.net A 192.0.2.10", want: "pass"},
	{name: "redirect twice", zone: "v=spf1 redirect=yes.example.net redirect=yes.example.net", want: "permerror"},
	{name: "redirect without a domain", zone: "v=spf1 ?all redirect=", want: "permerror"},
	{name: "redirect with a colon", zone: "v=spf1 redirect:yes.example.net", want: "permerror"},
	{name: "redirect to itself", zone: "v=spf1 redirect=example.org", want: "permerror"},

	// 6.2: exp
	{name: "exp", zone: "v=spf1 -all exp=e.example.net\ne.example.net TXT No: %{i} %{c} %{h} %{l}%% %{R}", want: "fail", exp: "No: 192.0.2.10 192.0.2.10 host.example.net ann% unknown"},
	{name: "exp is for fail alone", zone: "v=spf1 ~all exp=e.example.net\ne.example.net TXT No.", want: "softfail"},
	{name: "exp of two records", zone: "v=spf1 -all exp=e.example.net\ne.example.net TXT a\ne.example.net TXT b", want: "fail"},
	{name: "exp that is broken", zone: "v=spf1 -all exp=e.example.net\ne.example.net TXT %{z}", want: "fail"},
	{name: "exp that is not ASCII", zone: "v=spf1 -all exp=e.example.net\ne.example.net TXT Schließlich", want: "fail"},
	{name: "exp with a line break", zone: "v=spf1 -all exp=e.example.net\ne.example.net TXT a\rb", want: "fail"},
	{name: "exp and trouble", zone: "v=spf1 -all exp=broken.example.net", want: "fail"},
	{name: "exp and nothing there", zone: "v=spf1 -all exp=nowhere.example.net", want: "fail"},
	{name: "exp twice", zone: "v=spf1 -all exp=e.example.net exp=e.example.net", want: "permerror"},
	{name: "exp without a domain", zone: "v=spf1 exp= -all", want: "permerror"},
	{name: "exp with a letter for explanations only", zone: "v=spf1 exp=%{c}.example.net -all", want: "permerror"},
	{name: "exp of an include is not used", zone: "v=spf1 -include:yes.example.org -all\nyes.example.org TXT v=spf1 +all exp=e.example.net\ne.example.net TXT No.", want: "fail"},
	{name: "exp of the redirect's target", zone: "v=spf1 exp=e.example.net redirect=t.example.net\ne.example.net TXT No.\nt.example.net TXT v=spf1 -all exp=f.example.net\nf.example.net TXT From %{d} for %{o}.", want: "fail", exp: "From t.example.net for example.org."},

	// 7: macros
	{name: "i and l", zone: "v=spf1 exists:%{i}.%{l}.ok.example.net -all", want: "pass fail pass"},
	{name: "d and o", zone: "v=spf1 exists:%{d}.d.ok.example.net -all", want: "pass"},
	{name: "ir and v", zone: "v=spf1 exists:%{ir}.%{v}.x.example.net -all\n10.2.0.192.in-addr.x.example.net A 127.0.0.2", want: "pass fail pass"},
	{name: "nibbles", zone: "v=spf1 exists:%{ir}.%{v}.x.example.net -all\n0.1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.x.example.net A 127.0.0.2", want: "fail pass"},
	{name: "s", zone: "v=spf1 exists:%{s1r@}.x.example.net -all", want: "permerror"},
	{name: "parts and delimiters", from: "a-b+c.d@example.org", zone: "v=spf1 exists:%{l2r-+}.x.example.net -all\nb.a.x.example.net A 127.0.0.2", want: "pass"},
	{name: "parts of a name", zone: "v=spf1 exists:%{h2}.x.example.net -all\nexample.net.x.example.net A 127.0.0.2", want: "pass"},
	{name: "more parts than there are", zone: "v=spf1 exists:%{d99999999999999999999}.d.ok.example.net -all", want: "pass"},
	{name: "no parts", zone: "v=spf1 exists:%{d0}.d.ok.example.net -all", want: "permerror"},
	{name: "p", zone: "v=spf1 exists:%{p}.p.example.net -all\nhost.example.net.p.example.net A 127.0.0.2", want: "pass pass"},
	{name: "p without a name", zone: "v=spf1 exists:%{p}.p.example.net -all\n10.2.0.192.in-addr.arpa FAIL\nunknown.p.example.net A 127.0.0.2", want: "pass fail"},
	{name: "upper case escapes", from: "a&b@example.org", zone: "v=spf1 -all exp=e.example.net\ne.example.net TXT /%{L}?%{S}", want: "fail", exp: "/a%26b?a%26b%40example.org"},
	{name: "escapes", zone: "v=spf1 -all exp=e.example.net\ne.example.net TXT a%_b%-c%%", want: "fail", exp: "a b%20c%"},
	{name: "unknown letter", zone: "v=spf1 exists:%{x}.example.net", want: "permerror"},
	{name: "not closed", zone: "v=spf1 exists:%{d.example.net", want: "permerror"},
	{name: "percent alone", zone: "v=spf1 exists:a%b.example.net", want: "permerror"},
	{name: "percent at the end", zone: "v=spf1 exists:example.net%", want: "permerror"},
	{name: "empty braces", zone: "v=spf1 exists:%{}.example.net", want: "permerror"},
	{name: "no local part is postmaster", from: "@example.org", zone: "v=spf1 -all exp=e.example.net\ne.example.net TXT %{s}", want: "fail", exp: "postmaster@example.org"},
	{name: "a long name loses labels on the left", from: "ann@" + strings.Repeat("long-label.", 20) + "example.org", zone: strings.Repeat("long-label.", 20) + "example.org TXT v=spf1 exists:%{o}.%{o}.x.example.net -all\n" + longest(strings.Repeat("long-label.", 20)+"example.org."+strings.Repeat("long-label.", 20)+"example.org.x.example.net") + " A 127.0.0.2", want: "pass"},
	{name: "a local part that no name can hold", from: "jürgen@example.org", zone: "v=spf1 exists:%{l}.example.net -all\njürgen.example.net A 127.0.0.2", want: "fail"},
	{name: "a HELO that no name can hold", helo: "not a name", zone: "v=spf1 a:%{h} -all", want: "fail"},
	{name: "a HELO that no name can hold, at its end", helo: strings.Repeat("%", 64) + ".x", zone: "v=spf1 a:%{h}.example.net -all", want: "fail"},

	// 4.6.4: limits
	{name: "ten lookups", zone: "v=spf1" + strings.Repeat(" a:far.example.net", 10) + " ip4:192.0.2.10", want: "pass"},
	{name: "eleven lookups", zone: "v=spf1" + strings.Repeat(" a:far.example.net", 11) + " ip4:192.0.2.10", want: "permerror"},
	{name: "eleven lookups after the match", zone: "v=spf1 ip4:192.0.2.10" + strings.Repeat(" a:far.example.net", 11) + " -all", want: "pass permerror"},
	{name: "lookups of includes count", zone: "v=spf1 include:i.example.net include:i.example.net ip4:192.0.2.10\ni.example.net TXT v=spf1" + strings.Repeat(" a:far.example.net", 5), want: "permerror"},
	{name: "include loop", zone: "v=spf1 include:example.org", want: "permerror"},
	{name: "two voids", zone: "v=spf1 a:x1.example.net exists:x2.example.net ip4:192.0.2.10", want: "pass"},
	{name: "three voids", zone: "v=spf1 a:x1.example.net exists:x2.example.net mx:x3.example.net ip4:192.0.2.10", want: "permerror"},
}

// numbered repeats a line with # as 1 to n.
func numbered(line string, n int) string {
	var out strings.Builder
	for i := range n {
		out.WriteString("\n" + strings.ReplaceAll(line, "#", strconv.Itoa(i+1)))
	}
	return out.String()
}

// longest removes labels from the left until at most 253 bytes are left.
func longest(name string) string {
	for len(name) > 253 {
		_, name, _ = strings.Cut(name, ".")
	}
	return name
}
