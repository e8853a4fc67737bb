package mailauth

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDMARC checks row A4. The message is from ann@a.example.com unless from says
// otherwise, and is signed by the domains in signed. SPF allows its client to
// send for spf.example.com, example.com and other.example.
func TestDMARC(t *testing.T) {
	t.Parallel()
	const everyone = `
		spf.example.com TXT v=spf1 ip4:192.0.2.10 -all
		example.com TXT v=spf1 ip4:192.0.2.10 -all
		other.example TXT v=spf1 ip4:192.0.2.10 -all
		helo.example TXT v=spf1 ip4:192.0.2.10 -all
		broken.example.com FAIL
		a.example.com A 192.0.2.1
	`
	tests := []struct {
		name     string
		zone     string
		from     string // value of the header From
		mailFrom string
		signed   string // domains
		want     Result
		policy   string
		record   string
	}{
		{name: "no record", signed: "a.example.com", want: None},
		{name: "its own record", zone: "_dmarc.a.example.com TXT v=DMARC1; p=none", signed: "a.example.com", want: Pass, record: "a.example.com"},
		{name: "nothing passed", zone: "_dmarc.a.example.com TXT v=DMARC1; p=reject", want: Fail, policy: "reject", record: "a.example.com"},
		{name: "a foreign signature", zone: "_dmarc.a.example.com TXT v=DMARC1; p=reject", signed: "other.example", mailFrom: "x@other.example", want: Fail, policy: "reject", record: "a.example.com"},
		{name: "any of several signatures", zone: "_dmarc.a.example.com TXT v=DMARC1; p=reject", signed: "other.example a.example.com", want: Pass, record: "a.example.com"},

		// Alignment.
		{name: "relaxed DKIM, of the organization", zone: "_dmarc.example.com TXT v=DMARC1; p=reject", signed: "example.com", want: Pass, record: "example.com"},
		{name: "relaxed DKIM, of a sister", zone: "_dmarc.example.com TXT v=DMARC1; p=reject", signed: "b.c.example.com", want: Pass, record: "example.com"},
		{name: "strict DKIM", zone: "_dmarc.example.com TXT v=DMARC1; p=reject; adkim=s", signed: "example.com", want: Fail, policy: "reject", record: "example.com"},
		{name: "strict DKIM of the same domain", zone: "_dmarc.example.com TXT v=DMARC1; p=reject; adkim=s", signed: "a.example.com", want: Pass, record: "example.com"},
		{name: "relaxed SPF", zone: "_dmarc.example.com TXT v=DMARC1; p=reject; adkim=s", mailFrom: "x@spf.example.com", want: Pass, record: "example.com"},
		{name: "strict SPF", zone: "_dmarc.example.com TXT v=DMARC1; p=reject; aspf=s", mailFrom: "x@spf.example.com", want: Fail, policy: "reject", record: "example.com"},
		{name: "strict SPF of the same domain", zone: "_dmarc.example.com TXT v=DMARC1; p=reject; aspf=s", from: "ann@spf.example.com", mailFrom: "x@spf.example.com", want: Pass, record: "example.com"},
		{name: "SPF that does not pass", zone: "_dmarc.example.com TXT v=DMARC1; p=reject\nb.example.com TXT v=spf1 ~all", mailFrom: "x@b.example.com", want: Fail, policy: "reject", record: "example.com"},
		{name: "null reverse-path counts by HELO", zone: "_dmarc.helo.example TXT v=DMARC1; p=reject", from: "mailer-daemon@helo.example", want: Pass, record: "helo.example"},
		{name: "HELO does not count beside a reverse-path", zone: "_dmarc.helo.example TXT v=DMARC1; p=reject", from: "a@helo.example", mailFrom: "x@other.example", want: Fail, policy: "reject", record: "helo.example"},

		// The walk (section 4.10).
		{name: "a parent's record applies", zone: "_dmarc.example.com TXT v=DMARC1; p=quarantine", want: Fail, policy: "quarantine", record: "example.com"},
		{name: "the one with the fewest labels is the organization's", zone: "_dmarc.b.example.com TXT v=DMARC1; p=none\n_dmarc.example.com TXT v=DMARC1; p=reject", from: "ann@a.b.example.com", want: Fail, policy: "reject", record: "example.com"},
		{name: "psd=n ends the walk", zone: "_dmarc.b.example.com TXT v=DMARC1; p=none; psd=n\n_dmarc.example.com TXT v=DMARC1; p=reject", from: "ann@a.b.example.com", signed: "example.com", want: Fail, policy: "none", record: "b.example.com"},
		{name: "psd=n parts organizations", zone: "_dmarc.a.example.com TXT v=DMARC1; p=reject; psd=n\n_dmarc.example.com TXT v=DMARC1; p=reject", signed: "example.com", want: Fail, policy: "reject", record: "a.example.com"},
		{name: "psd=y makes the name below the organization", zone: "_dmarc.com TXT v=DMARC1; p=reject; psd=y", signed: "b.example.com", want: Pass, record: "com"},
		{name: "names below psd=y have nothing in common", zone: "_dmarc.com TXT v=DMARC1; p=reject; psd=y", signed: "example2.com", want: Fail, policy: "reject", record: "com"},
		{name: "psd=y under an organization with a record", zone: "_dmarc.com TXT v=DMARC1; p=reject; psd=y\n_dmarc.example.com TXT v=DMARC1; p=none", want: Fail, policy: "none", record: "example.com"},
		{name: "psd=y at the author's own domain", zone: "_dmarc.example.com TXT v=DMARC1; p=reject; psd=y", from: "ann@example.com", signed: "example.com", want: Pass, record: "example.com"},
		{name: "a suffix does not speak for those below it", zone: "_dmarc.example.com TXT v=DMARC1; p=reject; psd=y", signed: "example.com", want: Fail, policy: "reject", record: "example.com"},
		{name: "nine labels skip to seven", zone: "_dmarc.2.3.4.5.6.7.8.example.com TXT v=DMARC1; p=reject\n_dmarc.4.5.6.7.8.example.com TXT v=DMARC1; p=none", from: "ann@1.2.3.4.5.6.7.8.example.com", want: Fail, policy: "none", record: "4.5.6.7.8.example.com"},
		{name: "two records count as none", zone: "_dmarc.a.example.com TXT v=DMARC1; p=reject\n_dmarc.a.example.com TXT v=DMARC1; p=none\n_dmarc.example.com TXT v=DMARC1; p=quarantine", want: Fail, policy: "quarantine", record: "example.com"},

		// The record (section 4.7).
		{name: "sp for a subdomain", zone: "_dmarc.example.com TXT v=DMARC1; p=none; sp=reject", want: Fail, policy: "reject", record: "example.com"},
		{name: "sp is not for the domain itself", zone: "_dmarc.example.com TXT v=DMARC1; p=none; sp=reject", from: "ann@example.com", want: Fail, policy: "none", record: "example.com"},
		{name: "np for a subdomain that does not exist", zone: "_dmarc.example.com TXT v=DMARC1; p=none; sp=quarantine; np=reject", from: "ann@nowhere.example.com", want: Fail, policy: "reject", record: "example.com"},
		{name: "np is not for one that does", zone: "_dmarc.example.com TXT v=DMARC1; p=none; sp=quarantine; np=reject", want: Fail, policy: "quarantine", record: "example.com"},
		{name: "np and a name that only takes mail", zone: "_dmarc.example.com TXT v=DMARC1; p=none; np=reject\nm.example.com MX 0 mx.example.net", from: "ann@m.example.com", want: Fail, policy: "none", record: "example.com"},
		{name: "np and a DNS that fails", zone: "_dmarc.example.com TXT v=DMARC1; p=none; np=reject", from: "ann@broken.example.com", want: Fail, policy: "none", record: "example.com"},
		{name: "t=y lowers reject", zone: "_dmarc.a.example.com TXT v=DMARC1; p=reject; t=y", want: Fail, policy: "quarantine", record: "a.example.com"},
		{name: "t=y lowers quarantine", zone: "_dmarc.example.com TXT v=DMARC1; p=none; sp=quarantine; t=y", want: Fail, policy: "none", record: "example.com"},
		{name: "t=y leaves a pass", zone: "_dmarc.a.example.com TXT v=DMARC1; p=reject; t=y", signed: "a.example.com", want: Pass, record: "a.example.com"},
		{name: "a missing p means none", zone: "_dmarc.a.example.com TXT v=DMARC1;", want: Fail, policy: "none", record: "a.example.com"},
		{name: "unreadable p", zone: "_dmarc.a.example.com TXT v=DMARC1; p=yes", signed: "a.example.com", want: None, record: "a.example.com"},
		{name: "unreadable p with an address for reports", zone: "_dmarc.a.example.com TXT v=DMARC1; p=yes; rua=mailto:d@example.com", want: Fail, policy: "none", record: "a.example.com"},
		{name: "unreadable sp", zone: "_dmarc.example.com TXT v=DMARC1; p=reject; sp=no", want: None, record: "example.com"},
		{name: "v is not first", zone: "_dmarc.a.example.com TXT p=reject; v=DMARC1", want: None},
		{name: "v in other letters", zone: "_dmarc.a.example.com TXT v=dmarc1; p=reject", want: None},
		{name: "spaces, case, unknown and broken tags", zone: "_dmarc.a.example.com TXT v = DMARC1 ;P= Reject; pct=7 ; x; adkim=q ;;", signed: "example.com", want: Fail, policy: "reject", record: "a.example.com"},
		{name: "other records beside it", zone: "_dmarc.a.example.com TXT hello\n_dmarc.a.example.com TXT v=DMARC1; p=reject", want: Fail, policy: "reject", record: "a.example.com"},
		{name: "through an alias", zone: "_dmarc.a.example.com CNAME d.example.net\nd.example.net TXT v=DMARC1; p=reject", want: Fail, policy: "reject", record: "a.example.com"},

		// From.
		{name: "two addresses of one domain", zone: "_dmarc.a.example.com TXT v=DMARC1; p=reject", from: "ann@a.example.com, bob@A.example.com", signed: "a.example.com", want: Pass, record: "a.example.com"},
		{name: "two addresses of two domains", zone: "_dmarc.a.example.com TXT v=DMARC1; p=reject", from: "ann@a.example.com, eve@other.example", signed: "a.example.com", want: None},
		{name: "a group of two domains", zone: "_dmarc.a.example.com TXT v=DMARC1; p=reject", from: "team: ann@a.example.com, eve@other.example;", signed: "a.example.com", want: None},
		{name: "two From fields of two domains", zone: "_dmarc.a.example.com TXT v=DMARC1; p=reject", from: "ann@a.example.com\r\nFrom: eve@other.example", signed: "a.example.com", want: None},
		{name: "no address", from: "Ann", want: None},
		{name: "too many addresses", zone: "_dmarc.a.example.com TXT v=DMARC1; p=reject", from: strings.Repeat("ann@a.example.com, ", 101) + "x@a.example.com", signed: "a.example.com", want: None},
		{name: "another domain in the name", zone: "_dmarc.other.example TXT v=DMARC1; p=reject", from: `"ann@a.example.com" <eve@other.example>`, signed: "a.example.com", want: Fail, policy: "reject", record: "other.example"},
		{name: "an at sign in the local part", zone: "_dmarc.other.example TXT v=DMARC1; p=reject", from: `<"ann@a.example.com"@other.example>`, signed: "a.example.com", want: Fail, policy: "reject", record: "other.example"},
		{name: "U-labels", zone: "_dmarc.xn--bcher-kva.example TXT v=DMARC1; p=reject", from: "ann@Bücher.example", signed: "xn--bcher-kva.example", want: Pass, record: "xn--bcher-kva.example"},
		{name: "a top-level domain", zone: "_dmarc.com TXT v=DMARC1; p=reject", from: "ann@com", want: Fail, policy: "reject", record: "com"},

		// Trouble with the DNS (also row A6).
		{name: "trouble with the record", zone: "_dmarc.a.example.com FAIL", signed: "a.example.com", want: TempError},
		{name: "trouble on the walk", zone: "_dmarc.example.com FAIL", signed: "a.example.com", want: TempError},
		{name: "trouble with an aligned key", zone: "_dmarc.a.example.com TXT v=DMARC1; p=reject\nk._domainkey.a.example.com FAIL", signed: "a.example.com", want: TempError, record: "a.example.com"},
		{name: "trouble with a foreign key", zone: "_dmarc.a.example.com TXT v=DMARC1; p=reject\nk._domainkey.other.example FAIL", signed: "other.example", want: Fail, policy: "reject", record: "a.example.com"},
		{name: "trouble with SPF, and a signature", zone: "_dmarc.broken.example.com TXT v=DMARC1; p=reject", from: "a@broken.example.com", mailFrom: "x@broken.example.com", signed: "broken.example.com", want: Pass, record: "broken.example.com"},
		{name: "trouble with aligned SPF", zone: "_dmarc.broken.example.com TXT v=DMARC1; p=reject", from: "a@broken.example.com", mailFrom: "x@broken.example.com", want: TempError, record: "broken.example.com"},
		{name: "trouble on the way to whether it aligns", zone: "_dmarc.a.example.com TXT v=DMARC1; p=reject\n_dmarc.b.example.com FAIL", signed: "b.example.com", want: TempError, record: "a.example.com"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			z := parseZone(t, everyone)
			for line := range strings.SplitSeq(tt.zone, "\n") {
				if name, rest, ok := strings.Cut(line, " "); ok {
					kind, value, _ := strings.Cut(rest, " ")
					z.add(name, kind, value)
				}
			}
			from := tt.from
			if from == "" {
				from = "ann@a.example.com"
			}
			mail := "From: " + from + "\r\nSubject: x\r\n\r\nx\r\n"
			fields := []string{"From", "Subject"}
			if strings.Contains(from, "\r\n") {
				fields = append(fields, "From")
			}
			for domain := range strings.FieldsSeq(tt.signed) {
				name := "ed._domainkey." + domain
				if _, broken := z.records["k._domainkey."+domain]; broken {
					z.add(name, "FAIL", "")
				}
				z.add(name, "TXT", keyRecord(t, "ed", ""))
				mail = sign(t, mail, signOptions{key: "ed", domain: domain, fields: fields})
			}
			v := authenticate(t, z, mail, tt.mailFrom)
			got := DMARC{Result: v.DMARC.Result, Policy: v.DMARC.Policy, Record: v.DMARC.Record}
			if diff := cmp.Diff(DMARC{Result: tt.want, Policy: tt.policy, Record: tt.record}, got); diff != "" {
				t.Errorf("%s\n%+v", diff, v)
			}
			if explained := v.DMARC.Result == None || v.DMARC.Result == TempError; explained != (v.DMARC.Reason != "") {
				t.Errorf("%s with the reason %q", v.DMARC.Result, v.DMARC.Reason)
			}
		})
	}
}

// TestDMARCLookups checks row A4: which names are looked up, each once.
func TestDMARCLookups(t *testing.T) {
	t.Parallel()
	tests := []struct {
		domain string
		want   []string
	}{
		{"example.com", []string{"example.com", "com"}},
		{"a.b.example.com", []string{"a.b.example.com", "b.example.com", "example.com", "com"}},
		{"1.2.3.4.5.6.example.com", []string{"1.2.3.4.5.6.example.com", "2.3.4.5.6.example.com", "3.4.5.6.example.com", "4.5.6.example.com", "5.6.example.com", "6.example.com", "example.com", "com"}},
		{"1.2.3.4.5.6.7.8.9.example.com", []string{"1.2.3.4.5.6.7.8.9.example.com", "5.6.7.8.9.example.com", "6.7.8.9.example.com", "7.8.9.example.com", "8.9.example.com", "9.example.com", "example.com", "com"}},
	}
	for _, tt := range tests {
		z := parseZone(t, "")
		w := walker{resolver: z}
		for range 2 {
			if _, err := w.walk(t.Context(), tt.domain); err != nil {
				t.Fatal(err)
			}
		}
		var want []string
		for _, name := range tt.want {
			want = append(want, "TXT _dmarc."+name)
		}
		if diff := cmp.Diff(want, z.asked); diff != "" {
			t.Errorf("%s: %s", tt.domain, diff)
		}
	}
}
