package mailauth

import (
	"strings"
	"testing"
)

// TestField checks that sender-chosen text cannot end a word, a line or the
// field.
func TestField(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		v    Results
		env  Envelope
		want string
	}{
		{
			name: "all of it",
			v: Results{
				SPF:   SPF{Result: Pass, Domain: "a.example"},
				DKIM:  []Signature{{Result: Pass, Domain: "a.example", Identity: "@a.example", Selector: "s1", Algorithm: "rsa-sha256", Value: "abc+/="}},
				DMARC: DMARC{Result: Pass, Domain: "a.example", Record: "a.example"},
			},
			env:  Envelope{MailFrom: "ann@a.example"},
			want: "mx.example; spf=pass smtp.mailfrom=ann@a.example; dkim=pass header.d=a.example header.i=@a.example header.s=s1 header.a=rsa-sha256 header.b=\"abc+/=\"; dmarc=pass header.from=a.example",
		},
		{
			name: "nothing",
			v:    Results{SPF: SPF{Result: None, HELO: true}, DMARC: DMARC{Result: None, Reason: "From has no address"}},
			env:  Envelope{HELO: "mx.a.example"},
			want: "mx.example; spf=none smtp.helo=mx.a.example; dkim=none; dmarc=none (From has no address)",
		},
		{
			name: "what is asked to be done",
			v:    Results{SPF: SPF{Result: Fail, HELO: true}, DMARC: DMARC{Result: Fail, Policy: "reject", Domain: "a.example"}},
			want: "mx.example; spf=fail; dkim=none; dmarc=fail (p=reject) header.from=a.example",
		},
		{
			name: "hostile words",
			v: Results{
				SPF:  SPF{Result: PermError, Reason: "SPF record of a.example: \"x;) dmarc=pass (\r\n\": is not a mechanism"},
				DKIM: []Signature{{Result: PermError, Domain: "a.example", Selector: "s\r\nX: y", Value: `a";d`, Reason: "cannot be read"}},
			},
			env:  Envelope{MailFrom: `"a; dmarc=pass\"" @a.example`},
			want: `mx.example; spf=permerror (SPF record of a.example: "x; dmarc=pass ": is not a mechanism) smtp.mailfrom="\"a; dmarc=pass\\\"\" @a.example"; dkim=permerror (cannot be read) header.d=a.example header.b="a\";d"; dmarc=`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := strings.ReplaceAll(tt.v.Field("mx.example", tt.env), "\r\n\t", " ")
			if got != tt.want {
				t.Errorf("%s\nwant\n%s", got, tt.want)
			}
			if strings.ContainsAny(got, "\r\n") {
				t.Error("a line ends where it should not")
			}
		})
	}
}

func TestSigned(t *testing.T) {
	t.Parallel()
	for want, all := range map[Result][]Result{
		None:      {None},
		Pass:      {Fail, TempError, Pass},
		TempError: {Fail, TempError, Policy},
		Fail:      {PermError, Policy, Fail},
		Policy:    {PermError, Policy},
		PermError: {None, PermError},
	} {
		var v Results
		for _, r := range all {
			v.DKIM = append(v.DKIM, Signature{Result: r})
		}
		if got := v.Signed(); got != want {
			t.Errorf("%v is %s, want %s", all, got, want)
		}
	}
}
