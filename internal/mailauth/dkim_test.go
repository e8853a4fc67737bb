package mailauth

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-msgauth/dkim"

	"github.com/postroom/postroom/internal/dns"
	"github.com/postroom/postroom/internal/mail"
)

// authenticate checks a message from 192.0.2.10 with a zone.
func authenticate(t *testing.T, z dns.Resolver, raw, mailFrom string) Results {
	t.Helper()
	c := NewChecker(z, 0, func() time.Time { return time.Unix(1_800_000_000, 0) })
	k := c.Start(t.Context(), Envelope{Client: netip.MustParseAddr("192.0.2.10"), HELO: "helo.example", MailFrom: mailFrom})
	if err := k.Read(strings.NewReader(raw), mail.DefaultLimits()); err != nil {
		t.Fatal(err)
	}
	v := k.Wait()
	if v.Fault != nil {
		t.Fatal(v.Fault)
	}
	return v
}

// testKeys are made once: generating RSA keys is slow.
var testKeys = sync.OnceValue(func() map[string]crypto.Signer {
	keys := map[string]crypto.Signer{}
	for name, bits := range map[string]int{"rsa": 2048, "weak": 1024} {
		key, err := rsa.GenerateKey(rand.Reader, bits)
		if err != nil {
			panic(err)
		}
		keys[name] = key
	}
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	keys["ed"] = key
	return keys
})

// keyRecord returns the record of a test key with additional tags.
func keyRecord(t *testing.T, name, tags string) string {
	t.Helper()
	public := testKeys()[name].Public()
	if key, ok := public.(ed25519.PublicKey); ok {
		return "v=DKIM1; k=ed25519; " + tags + "p=" + base64.StdEncoding.EncodeToString(key)
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return "v=DKIM1; k=rsa; " + tags + "p=" + base64.StdEncoding.EncodeToString(der)
}

// signOptions select how a test message is signed.
type signOptions struct {
	key          string
	header, body dkim.Canonicalization
	domain       string
	identity     string
	fields       []string
	expires      time.Time
}

func sign(t *testing.T, mail string, o signOptions) string {
	t.Helper()
	if o.domain == "" {
		o.domain = "signer.example"
	}
	if o.fields == nil {
		o.fields = []string{"From", "To", "Subject", "Date"}
	}
	var out bytes.Buffer
	err := dkim.Sign(&out, strings.NewReader(mail), &dkim.SignOptions{
		Domain: o.domain, Selector: o.key, Identifier: o.identity, Signer: testKeys()[o.key], HeaderKeys: o.fields,
		HeaderCanonicalization: o.header, BodyCanonicalization: o.body, Expiration: o.expires,
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

const plainMail = "From: Ann <ann@signer.example>\r\nTo: bob@reader.example\r\nSubject: Hello  there \r\n\tagain\r\n" +
	"Date: Sat, 21 Nov 2026 08:00:00 +0000\r\n\r\n  One  line \r\n\r\nAnother\t\r\n\r\n\r\n"

func signerZone(t *testing.T) *zone {
	t.Helper()
	z := &zone{records: map[string][]record{}}
	for _, name := range []string{"rsa", "weak", "ed"} {
		z.add(name+"._domainkey.signer.example", "TXT", keyRecord(t, name, ""))
	}
	return z
}

// changes modify a signed message in transit.
var changes = []struct {
	name   string
	change func(string) string
	want   func(header, body string) Result // by the canonicalizations
}{
	{"untouched", func(s string) string { return s }, always(Pass)},
	{"a word in the body", func(s string) string { return strings.Replace(s, "the end", "the End", 1) }, always(Fail)},
	{"a line after the end", func(s string) string { return s + "more\r\n" }, always(Fail)},
	{"empty lines after the end", func(s string) string { return s + "\r\n\r\n" }, always(Pass)},
	{"spaces within lines of the body", func(s string) string { return strings.Replace(s, "inner\t \tspace", "inner space", 1) }, byBody},
	{"a signed field", func(s string) string { return strings.Replace(s, "ann@signer", "eve@signer", 1) }, always(Fail)},
	{"a field that is folded differently", func(s string) string { return strings.Replace(s, " \r\n and a", "\r\n  and a", 1) }, byHeader},
	{"a name in other letters", func(s string) string { return strings.Replace(s, "SUBJECT:", "Subject:", 1) }, byHeader},
	{"a field that is not signed", func(s string) string { return "X-Seen: yes\r\n" + s }, always(Pass)},
}

func always(r Result) func(string, string) Result { return func(string, string) Result { return r } }

func byHeader(header, _ string) Result { return relaxedOnly(header) }

func byBody(_, body string) Result { return relaxedOnly(body) }

func relaxedOnly(form string) Result {
	if form == "relaxed" {
		return Pass
	}
	return Fail
}

// TestDKIMOfOtherSigners checks row A3 with messages that other programs have signed.
func TestDKIMOfOtherSigners(t *testing.T) {
	t.Parallel()
	keys, err := os.ReadFile("testdata/dkim/keys.txt")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/dkim/*.eml")
	if err != nil || len(files) < 13 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.Split(strings.TrimSuffix(filepath.Base(file), ".eml"), "-")
		for _, c := range changes {
			changed := c.change(string(raw))
			if c.name != "untouched" && changed == string(raw) {
				continue // does not apply to the message of nodemailer
			}
			t.Run(strings.Join(parts, "-")+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				v := authenticate(t, parseZone(t, string(keys)), changed, "")
				want := c.want(parts[2], parts[3])
				if len(v.DKIM) != 1 || v.DKIM[0].Result != want || v.Signed() != want {
					t.Errorf("%+v, want %s", v.DKIM, want)
				}
				if d := v.DKIM[0]; d.Domain != "signer.example" || d.Selector != parts[1] || !d.SignsFrom {
					t.Errorf("%+v", d)
				}
			})
		}
	}
}
