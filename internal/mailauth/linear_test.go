package mailauth

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/lineartest"
	"github.com/postroom/postroom/internal/mail"
)

func linearReaders() []lineartest.Reader {
	client := netip.MustParseAddr("192.0.2.1")
	check := func(raw string) {
		k := NewChecker(&zone{}, 0, nil).Start(context.Background(), Envelope{Client: client, HELO: "a.example", MailFrom: "a@a.example"})
		_ = k.Read(strings.NewReader(raw), mail.DefaultLimits())
		k.Wait()
	}
	const from = "From: a@a.example\r\n"
	tags := map[string]string{"v": "1", "a": "ed25519-sha256", "b": "QQ==", "bh": "QQ==", "d": "a.example", "h": "From", "s": "s", "c": "relaxed/relaxed"}
	signed := func(tag, value string) string {
		var b strings.Builder
		b.WriteString("DKIM-Signature: ")
		for _, name := range []string{"v", "a", "b", "bh", "d", "h", "s", "c", "i", "l", "q", "t", "x", "z"} {
			v, known := tags[name]
			if name == tag {
				v, known = value, true
			}
			if known {
				b.WriteString(name + "=" + v + ";")
			}
		}
		return b.String() + "\r\n"
	}
	readers := []lineartest.Reader{
		{Name: "Check.Read signature", Units: []string{";", "=", "a" + lineartest.Number + "=b;", " ", "\r\n ", "é"}, Short: 4, Read: func(s string) { check("DKIM-Signature: " + s + "\r\n" + from + "\r\nx") }},
		{Name: "Check.Read from", Units: []string{"a" + lineartest.Number + "@b.example,", lineartest.Letter, "é", "(", "<", `"`, "."}, Short: 4, Read: func(s string) { check("From: a@" + s + "\r\n\r\nx") }},
		{Name: "Check.Read other-fields", Units: []string{"From: a@b.example\r\n", "a" + lineartest.Number + ": b\r\n", "a", " "}, Read: func(s string) { check(signed("h", strings.Repeat("from:a:", 1000)) + from + s + "\r\n\r\nx") }},
		{Name: "Check.Read signatures", Units: []string{signed("", ""), "a: b\r\n"}, Read: func(s string) { check(s + from + "\r\nx") }},
		{Name: "Check.Read body", Units: []string{"a", " ", "\r\n", "\t", "\r"}, Short: 4, Read: func(s string) { check(signed("", "") + signed("c", "simple/simple") + from + "\r\n" + s) }},
		{Name: "CheckHost sender", Units: []string{"a", lineartest.Letter, ".", "@"}, Read: func(s string) { CheckHost(context.Background(), &zone{}, client, s, "a@"+s) }},
		{Name: "CheckHost record", Units: []string{"a", " ", "ip4:192.0.2.2 ", "%{l}", "/", "exists:%{d1r-.+}"}, Short: 4, Read: func(s string) {
			z := &zone{records: map[string][]record{"a.example": {{"TXT", "v=spf1 " + s}}}}
			CheckHost(context.Background(), z, client, "a.example", "b-c.d@a.example")
		}},
		{Name: "Results.Field", Units: []string{"a", "(", `"`, "\r\n", "é"}, Short: 3, Read: func(s string) {
			v := Results{SPF: SPF{Reason: s}, DKIM: []Signature{{Domain: s, Identity: s, Reason: s}}, DMARC: DMARC{Policy: s, Domain: s}}
			v.Field("a.example", Envelope{HELO: s, MailFrom: s})
		}},
	}
	for _, tag := range []string{"d", "s", "i", "h", "b", "c", "l", "z"} {
		readers = append(readers, lineartest.Reader{
			Name: "Check.Read " + tag + "=", Units: []string{lineartest.Letter, "a", ".", ":", "é", "@", " ", "\r\n "}, Short: 4,
			Read: func(s string) { check(signed(tag, s) + from + "\r\nx") },
		})
	}
	return readers
}

func TestReadersAreLinear(t *testing.T) { lineartest.Check(t, linearReaders()) }

func TestLinearReadersAreComplete(t *testing.T) {
	t.Parallel()
	lineartest.Complete(t, linearReaders(), map[string]string{
		"NewCache": "takes a resolver", "NewChecker": "takes a resolver", "Checker.Start": "reads the envelope with CheckHost",
		"Check.Wait": "waits for what Check.Read began", "Check.Stop": "ends a check", "Check.Envelope": "returns what Start was given", "Results.Signed": "reads results",
		"Cache.LookupTXT": "takes one name for the DNS", "Cache.LookupMX": "takes one name for the DNS",
		"Cache.LookupNetIP": "takes one name for the DNS", "Cache.LookupAddr": "takes an IP address",
	})
}
