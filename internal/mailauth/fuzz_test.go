package mailauth

import (
	"net/netip"
	"testing"
)

// FuzzSPF evaluates any record with any local part and HELO. It must end within
// the lookup limits and return a valid result; an explanation is one line of
// printable ASCII.
func FuzzSPF(f *testing.F) {
	for _, c := range spfCases {
		f.Add(c.zone, c.from, c.helo)
	}
	f.Add("v=spf1 exists:%{l1r-.+,/_=}.%{ir}.%{v}._spf.%{d2} -all exp=%{p}.example.net", "ann@example.org", "host.example.net")
	f.Fuzz(func(t *testing.T, text, from, helo string) {
		z := &zone{records: map[string][]record{}}
		z.add("example.org", "TXT", text)
		z.add("example.net", "TXT", text)
		z.add("example.net", "A", "192.0.2.1")
		z.add("1.2.0.192.in-addr.arpa", "PTR", "example.net")
		for _, sender := range []string{from, "ann@example.org"} {
			for _, ip := range []string{"192.0.2.1", "2001:db8::1"} {
				got := CheckHost(t.Context(), z, netip.MustParseAddr(ip), helo, sender)
				switch got.Result {
				case None, Pass, Fail, SoftFail, Neutral, TempError, PermError:
				default:
					t.Fatalf("%q is not a result", got.Result)
				}
				for _, c := range []byte(got.Explanation) {
					if c < ' ' || c > 0x7e {
						t.Fatalf("explanation %q", got.Explanation)
					}
				}
			}
		}
		// For each of the four: its record, ten terms (an mx may need ten host
		// lookups), the names of the client, and an explanation.
		if n := len(z.asked); n > 4*(1+10*11+11+2) {
			t.Fatalf("%d questions", n)
		}
	})
}
