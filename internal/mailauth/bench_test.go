package mailauth

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/mail"
)

// BenchmarkCheck authenticates a message whose DNS records are cached, the
// common case.
func BenchmarkCheck(b *testing.B) {
	const signed = "DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=example.org; s=x; h=From:To:Subject; bh=AAAA; b=AAAA\r\n"
	raw := "Received: from a by b; Sat, 21 Nov 2026 08:00:00 +0000\r\nFrom: Ann <ann@example.org>\r\nTo: bob@reader.example\r\n" +
		"Subject: Hello\r\nDate: Sat, 21 Nov 2026 08:00:00 +0000\r\nMessage-ID: <1@example.org>\r\n\r\n" + strings.Repeat("A line of text, and more of it.\r\n", 120)
	for name, raw := range map[string]string{"unsigned": raw, "signed": signed + raw} {
		b.Run(name, func(b *testing.B) {
			z := parseZone(b, "example.org TXT v=spf1 a mx -all\nexample.org A 192.0.2.10\n_dmarc.example.org TXT v=DMARC1; p=reject")
			c := NewChecker(NewCache(z, nil), 0, nil)
			env := Envelope{Client: netip.MustParseAddr("192.0.2.10"), HELO: "mx.example.org", MailFrom: "ann@example.org"}
			lim := mail.DefaultLimits()
			b.ReportAllocs()
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				k := c.Start(b.Context(), env)
				if err := k.Read(strings.NewReader(raw), lim); err != nil {
					b.Fatal(err)
				}
				if v := k.Wait(); v.SPF.Result != Pass {
					b.Fatalf("%+v", v)
				} else if v.Field("mx.example.net", env) == "" {
					b.Fatal("no field")
				}
			}
		})
	}
}
