package mailauth

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-msgauth/dkim"

	"github.com/postroom/postroom/internal/cputime"
	"github.com/postroom/postroom/internal/mail"
)

// shortKey is the public half of an RSA key of 512 bits.
const shortKey = "MFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBAM2h9gygaFlkVIbGqmFrr/9D7j3f+E7htum6ao3fkAkDz7trMScffSLrotHHZc+8TtEIhkwS5EYd2wD0tqujCBsCAwEAAQ=="

// TestDKIMKeyRecords checks row A3: the content and the location of the key record.
func TestDKIMKeyRecords(t *testing.T) {
	t.Parallel()
	ed := func(tags string) string { return keyRecord(t, "ed", tags) }
	tests := []struct {
		name     string
		records  string // at ed._domainkey.signer.example, one to a line
		identity string
		want     Result
	}{
		{name: "as it should be", records: ed(""), want: Pass},
		{name: "in pieces", records: strings.Replace(ed(""), "p=", "p= ", 1) + " ", want: Pass},
		{name: "beside another record", records: ed("") + "\nv=spf1 -all", want: Pass},
		{name: "without a version", records: strings.TrimPrefix(ed(""), "v=DKIM1; "), want: Pass},
		{name: "for sha256", records: ed("h=sha1:sha256; "), want: Pass},
		{name: "for sha1 only", records: ed("h=sha1; "), want: PermError},
		{name: "for mail", records: ed("s=other:email; "), want: Pass},
		{name: "for everything", records: ed("s=*; "), want: Pass},
		{name: "for something else", records: ed("s=other; "), want: PermError},
		{name: "of another version", records: strings.Replace(ed(""), "DKIM1", "DKIM2", 1), want: PermError},
		{name: "of another algorithm", records: keyRecord(t, "rsa", ""), want: PermError},
		{name: "of an unknown algorithm", records: strings.Replace(ed(""), "ed25519", "x25519", 1), want: PermError},
		{name: "of another signer", records: "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=", want: Fail},
		{name: "too short for its kind", records: "v=DKIM1; k=ed25519; p=AAAA", want: PermError},
		{name: "revoked", records: "v=DKIM1; k=ed25519; p=", want: PermError},
		{name: "not base64", records: "v=DKIM1; k=ed25519; p=!", want: PermError},
		{name: "without a key", records: "v=DKIM1; k=ed25519", want: PermError},
		{name: "twice", records: ed("") + "\n" + ed(""), want: PermError},
		{name: "nowhere", want: PermError},
		{name: "in testing", records: ed("t=y; "), want: None},
		{name: "in testing, and of another signer", records: "v=DKIM1; k=ed25519; t=y:s; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=", want: None},
		{name: "for a subdomain", records: ed(""), identity: "ann@news.signer.example", want: Pass},
		{name: "not for a subdomain", records: ed("t=s; "), identity: "ann@news.signer.example", want: PermError},
		{name: "not for subdomains, and the identity is not one", records: ed("t=s; "), identity: "ann@SIGNER.example", want: Pass},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			z := parseZone(t, "trouble.example FAIL")
			for line := range strings.SplitSeq(tt.records, "\n") {
				if line != "" {
					z.add("ed._domainkey.signer.example", "TXT", line)
				}
			}
			v := authenticate(t, z, sign(t, plainMail, signOptions{key: "ed", identity: tt.identity}), "")
			if len(v.DKIM) != 1 || v.DKIM[0].Result != tt.want || (v.DKIM[0].Reason == "") != (tt.want == Pass) {
				t.Errorf("%+v, want %s", v.DKIM, tt.want)
			}
		})
	}
}

// TestDKIMSignatureTags checks row A3: the tags of the signature.
func TestDKIMSignatureTags(t *testing.T) {
	t.Parallel()
	swap := func(old, with string) func(string) string {
		return func(s string) string {
			head, body, _ := strings.Cut(s, "\r\nFrom:")
			return strings.Replace(head, old, with, 1) + "\r\nFrom:" + body
		}
	}
	late := time.Unix(1_800_000_001, 0) // a second after the clock of the test checker
	tests := []struct {
		name    string
		change  func(string) string
		expires time.Time
		want    Result
	}{
		{name: "not expired", expires: late, want: Pass},
		{name: "expired", expires: late.Add(-2 * time.Second), want: Fail},
		{name: "expires before it was made", change: swap("t=", "x=1; t="), want: PermError},
		{name: "no time", change: swap("t=", "t=x"), want: PermError},
		{name: "another version", change: swap("v=1", "v=2"), want: PermError},
		{name: "no version", change: swap("v=1", "y=1"), want: PermError},
		{name: "a tag twice", change: swap("v=1", "v=1; v=1"), want: PermError},
		{name: "no domain", change: swap("d=signer.example", "d="), want: PermError},
		{name: "no selector", change: swap("s=rsa", "s=.."), want: PermError},
		{name: "another domain", change: swap("d=signer.example", "d=example"), want: PermError},
		{name: "rsa-sha1", change: swap("a=rsa-sha256", "a=rsa-sha1"), want: Policy},
		{name: "unknown algorithm", change: swap("a=rsa-sha256", "a=rsa-md5"), want: PermError},
		{name: "the other algorithm", change: swap("a=rsa-sha256", "a=ed25519-sha256"), want: PermError},
		{name: "unknown canonicalization", change: swap("c=relaxed/relaxed", "c=relaxed/tight"), want: PermError},
		{name: "unknown query method", change: swap("v=1", "v=1; q=http/get"), want: PermError},
		{name: "From is not signed", change: swap("h=From:", "h=X-From:"), want: PermError},
		{name: "a foreign identity", change: swap("v=1", "v=1; i=ann@other.example"), want: PermError},
		{name: "an identity that only ends alike", change: swap("v=1", "v=1; i=ann@xsigner.example"), want: PermError},
		{name: "an invalid length", change: swap("v=1", "v=1; l=-1"), want: PermError},
		{name: "a length that is beyond the mail", change: swap("v=1", "v=1; l=99999999999999999999"), want: Fail},
		{name: "not base64", change: swap("bh=", "bh=!"), want: PermError},
		{name: "the key is elsewhere", change: swap("s=rsa", "s=ed"), want: PermError},
		{name: "the key is too short", change: swap("s=rsa", "s=short"), want: Policy},
		{name: "the DNS fails", change: swap("s=rsa", "s=trouble"), want: TempError},
		{name: "an unknown tag", change: swap("v=1", "v=1; zz=1"), want: Fail}, // it is signed as well
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			signed := sign(t, plainMail, signOptions{
				key: "rsa", header: dkim.CanonicalizationRelaxed, body: dkim.CanonicalizationRelaxed, expires: tt.expires,
			})
			if tt.change != nil {
				before := signed
				if signed = tt.change(signed); signed == before {
					t.Fatal("nothing was changed in", signed)
				}
			}
			z := signerZone(t)
			z.add("short._domainkey.signer.example", "TXT", "p="+shortKey)
			z.add("trouble._domainkey.signer.example", "FAIL", "")
			v := authenticate(t, z, signed, "")
			if len(v.DKIM) != 1 || v.DKIM[0].Result != tt.want {
				t.Errorf("%+v, want %s", v.DKIM, tt.want)
			}
		})
	}
}

// TestDKIMBodyLength checks row A3: l= is respected, and text beyond it is not
// accepted.
func TestDKIMBodyLength(t *testing.T) {
	t.Parallel()
	keys, err := os.ReadFile("testdata/dkim/keys.txt")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile("testdata/dkim/other/dkimpy-length.eml")
	if err != nil {
		t.Fatal(err)
	}
	sha1, err := os.ReadFile("testdata/dkim/other/opendkim-rsa-sha1.eml")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, mail string
		want       Result
	}{
		{"all of the body", string(raw), Pass},
		{"empty lines after it", string(raw) + "\r\n\r\n", Pass},
		{"more after it", string(raw) + "Pay here.\r\n", Policy},
		{"changed before it", strings.Replace(string(raw), "the end", "The end", 1), Fail},
		{"less than it", strings.Replace(string(raw), "the end", "", 1), Fail},
		{"rsa-sha1 of another program", string(sha1), Policy},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if v := authenticate(t, parseZone(t, string(keys)), tt.mail, ""); v.Signed() != tt.want {
				t.Errorf("%+v, want %s", v.DKIM, tt.want)
			}
		})
	}
}

// TestDKIMMustSignEveryFrom checks row A3: a signature passes only if it signs every From field.
// Postroom shows the first From, and a signature signs the last one first.
func TestDKIMMustSignEveryFrom(t *testing.T) {
	t.Parallel()
	const forged = "From: Boss <boss@signer.example>\r\n"
	tests := []struct {
		name  string
		mail  func(t *testing.T) string
		dkim  Result
		dmarc Result
	}{
		{"one From", func(t *testing.T) string { return sign(t, plainMail, signOptions{key: "ed"}) }, Pass, Pass},
		{"another From on top", func(t *testing.T) string { return forged + sign(t, plainMail, signOptions{key: "ed"}) }, Policy, Fail},
		{"another From below", func(t *testing.T) string {
			signed := sign(t, plainMail, signOptions{key: "ed"})
			return strings.Replace(signed, "\r\nTo:", "\r\n"+forged+"To:", 1)
		}, Fail, Fail},
		{"another From on top of an oversigned one", func(t *testing.T) string {
			return forged + sign(t, plainMail, signOptions{key: "ed", fields: []string{"From", "From", "Subject"}})
		}, Fail, Fail},
		{"two From, both signed", func(t *testing.T) string {
			return sign(t, forged+plainMail, signOptions{key: "ed", fields: []string{"From", "From", "Subject"}})
		}, Pass, Pass},
		{"From of another domain on top", func(t *testing.T) string {
			return "From: eve@other.example\r\n" + sign(t, plainMail, signOptions{key: "ed"})
		}, Policy, None},
		{"no From", func(t *testing.T) string {
			signed := sign(t, plainMail, signOptions{key: "ed"})
			return strings.Replace(signed, "\r\nFrom:", "\r\nX-From:", 1)
		}, Fail, None},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			z := signerZone(t)
			z.add("_dmarc.signer.example", "TXT", "v=DMARC1; p=reject")
			v := authenticate(t, z, tt.mail(t), "")
			if v.Signed() != tt.dkim || v.DMARC.Result != tt.dmarc {
				t.Errorf("%s and %s, want %s and %s: %+v", v.Signed(), v.DMARC.Result, tt.dkim, tt.dmarc, v)
			}
		})
	}
}

// TestTenOfManySignaturesAreVerified checks row A3: the first ten are verified, and
// the others cost nothing.
func TestTenOfManySignaturesAreVerified(t *testing.T) {
	signed := sign(t, plainMail, signOptions{key: "rsa"})
	field, _, _ := strings.Cut(signed, "\r\nFrom:")
	signed = strings.Repeat(field+"\r\n", 9_999) + signed
	lim := mail.DefaultLimits()
	lim.HeaderBytes = 16 << 20
	cputime.AtMost(t, time.Second, func() {
		z := signerZone(t)
		k := NewChecker(z, 0, time.Now).Start(t.Context(), Envelope{})
		if err := k.Read(strings.NewReader(signed), lim); err != nil {
			t.Fatal(err)
		}
		if v := k.Wait(); len(v.DKIM) != 10 || v.Other != 9_990 || v.Signed() != Pass {
			t.Errorf("%d verified, %d left, %s", len(v.DKIM), v.Other, v.Signed())
		}
		if len(z.asked) > 20 {
			t.Errorf("%d questions", len(z.asked))
		}
	})
}

// TestLongDKIMListsTakeLinearTime checks row A3: ten signatures that name every field of a
// large header, and missing fields, take linear time in the size of the header.
func TestLongDKIMListsTakeLinearTime(t *testing.T) {
	var fields, names strings.Builder
	names.WriteString("From")
	for i := range 4_000 {
		fmt.Fprintf(&fields, "X-%d: y\r\n", i%2_000)
		fmt.Fprintf(&names, ":X-%d:Z-%d", i, i)
	}
	signature := "DKIM-Signature: v=1; a=rsa-sha256; d=signer.example; s=rsa; h=" + names.String() + "; bh=AAAA; b=AAAA\r\n"
	mail := strings.Repeat(signature, 10) + fields.String() + plainMail
	cputime.AtMost(t, time.Second, func() {
		if v := authenticate(t, signerZone(t), mail, ""); len(v.DKIM) != 10 || v.Signed() != Fail {
			t.Errorf("%d verified, %s", len(v.DKIM), v.Signed())
		}
	})
}
