package mailauth

import (
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/mail"
)

// TestDNSFailures checks row A6: how failures of the DNS affect the results
// for a signed message from ann@signer.example. A DNS failure is temperror and
// never fail, other lookups still count, and the timeout is kept. It is long
// enough for a busy machine to complete all other lookups.
func TestDNSFailures(t *testing.T) {
	t.Parallel()
	const (
		policy = "_dmarc.signer.example TXT v=DMARC1; p=reject\n"
		allows = "signer.example TXT v=spf1 ip4:192.0.2.10 -all\n"
	)
	key := "ed._domainkey.signer.example TXT " + keyRecord(t, "ed", "") + "\n"
	tests := []struct {
		name, zone       string
		spf, dkim, dmarc Result
	}{
		{"no failure", policy + allows + key, Pass, Pass, Pass},
		{"nothing is published", "", None, PermError, None},

		{"SPF: FAIL", policy + key + "signer.example FAIL", TempError, Pass, Pass},
		{"SPF: no response", policy + key + "signer.example SILENT", TempError, Pass, Pass},
		{"SPF: a name without TXT", policy + key + "signer.example A 192.0.2.1", None, Pass, Pass},
		{"SPF: an A without a response", policy + key + "signer.example TXT v=spf1 a:a.example -all\na.example SILENT", TempError, Pass, Pass},
		{"SPF: an MX that fails", policy + key + "signer.example TXT v=spf1 mx:m.example -all\nm.example FAIL", TempError, Pass, Pass},
		{"SPF: an include that fails", policy + key + "signer.example TXT v=spf1 include:i.example -all\ni.example FAIL", TempError, Pass, Pass},
		{"SPF: an include of nothing", policy + key + "signer.example TXT v=spf1 include:i.example -all", PermError, Pass, Pass},
		{"SPF: 60 KB of TXT", policy + key + "signer.example TXT v=spf1" + strings.Repeat(" ip4:198.51.100.1", 3_500) + " ip4:192.0.2.10 -all", Pass, Pass, Pass},
		{"SPF: 60 KB of something else", policy + key + allows + "signer.example TXT " + strings.Repeat("x", 60_000), Pass, Pass, Pass},

		{"key: FAIL", policy + "ed._domainkey.signer.example FAIL", None, TempError, TempError},
		{"key: no response", policy + "ed._domainkey.signer.example SILENT", None, TempError, TempError},
		{"key: no such name", policy, None, PermError, Fail},
		{"key: trouble, but SPF passes", policy + allows + "ed._domainkey.signer.example FAIL", Pass, TempError, Pass},
		{"key: 60 KB of TXT", policy + key + "ed._domainkey.signer.example TXT " + strings.Repeat("x", 60_000), None, Pass, Pass},

		{"policy: FAIL", allows + key + "_dmarc.signer.example FAIL", Pass, Pass, TempError},
		{"policy: no response", allows + key + "_dmarc.signer.example SILENT", Pass, Pass, TempError},
		{"policy: trouble above it", allows + key + "_dmarc.example FAIL", Pass, Pass, TempError},
		{"policy: 60 KB of TXT", allows + key + policy + "_dmarc.signer.example TXT " + strings.Repeat("x", 60_000), Pass, Pass, Pass},

		{"everything fails", "signer.example FAIL\n_dmarc.signer.example FAIL\ned._domainkey.signer.example FAIL", TempError, TempError, TempError},
		{"no server responds", "signer.example SILENT\n_dmarc.signer.example SILENT\ned._domainkey.signer.example SILENT", TempError, TempError, TempError},
	}
	signed := sign(t, plainMail, signOptions{key: "ed"})
	var all sync.WaitGroup // all of them wait at once
	for _, tt := range tests {
		dns := parseZone(t, tt.zone)
		all.Go(func() {
			timeout := DefaultTimeout
			if strings.Contains(tt.zone, "SILENT") {
				timeout = 3 * time.Second
			}
			c := NewChecker(NewCache(dns, nil), timeout, nil)
			begin := time.Now()
			k := c.Start(t.Context(), Envelope{Client: netip.MustParseAddr("192.0.2.10"), HELO: "helo.example", MailFrom: "x@signer.example"})
			if err := k.Read(strings.NewReader(signed), mail.DefaultLimits()); err != nil {
				t.Errorf("%s: %s", tt.name, err)
			}
			v := k.Wait()
			if took := time.Since(begin); took > DefaultTimeout {
				t.Errorf("%s: took %s, with a limit of %s", tt.name, took, timeout)
			}
			if v.SPF.Result != tt.spf || v.Signed() != tt.dkim || v.DMARC.Result != tt.dmarc || v.Fault != nil {
				t.Errorf("%s: %s %s %s, want %s %s %s: %+v", tt.name, v.SPF.Result, v.Signed(), v.DMARC.Result, tt.spf, tt.dkim, tt.dmarc, v)
			}
		})
	}
	all.Wait()
}
