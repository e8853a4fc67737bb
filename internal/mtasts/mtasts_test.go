package mtasts_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/mtasts"
)

func TestParseRecord(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		records []string
		id      string // "" for none
	}{
		{"as it should be", []string{"v=STSv1; id=20160831085700Z;"}, "20160831085700Z"},
		{"without the last semicolon", []string{"v=STSv1; id=1"}, "1"},
		{"without spaces", []string{"v=STSv1;id=1;"}, "1"},
		{"with spaces before semicolons", []string{"v=STSv1 ;\tid=1 ; "}, "1"},
		{"with another field", []string{"v=STSv1; x-y.z_9=!a:b~; id=1;"}, "1"},
		{"beside other records", []string{"hello", "v=spf1 -all", "v=STSv1; id=1;", "v=STSv2; id=2;"}, "1"},
		{"the first id counts", []string{"v=STSv1; id=1; id=2;"}, "1"},
		{"none", nil, ""},
		{"two", []string{"v=STSv1; id=1;", "v=STSv1; id=2;"}, ""},
		{"without an id", []string{"v=STSv1;"}, ""},
		{"the version alone", []string{"v=STSv1"}, ""},
		{"an empty id", []string{"v=STSv1; id=;"}, ""},
		{"an id of 33 letters", []string{"v=STSv1; id=" + strings.Repeat("a", 33) + ";"}, ""},
		{"an id with a hyphen", []string{"v=STSv1; id=a-b;"}, ""},
		{"the version in lower case", []string{"v=stsv1; id=1;"}, ""},
		{"the version not first", []string{"id=1; v=STSv1;"}, ""},
		{"an empty field", []string{"v=STSv1;; id=1;"}, ""},
		{"an invalid field", []string{"v=STSv1; id=1; what;"}, ""},
	}
	for _, tt := range tests {
		id, ok := mtasts.ParseRecord(tt.records)
		if ok != (tt.id != "") || ok && id != tt.id {
			t.Errorf("%s: %q, %v, want %q", tt.name, id, ok, tt.id)
		}
	}
}

func TestParsePolicy(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		want       mtasts.Policy
		err        string
	}{
		{
			"as it should be", "version: STSv1\r\nmode: enforce\r\nmx: mail.example.com\r\nmx: *.example.net\r\nmax_age: 604800\r\n",
			mtasts.Policy{Mode: mtasts.Enforce, MX: []string{"mail.example.com", "*.example.net"}, MaxAge: 7 * 24 * time.Hour},
			"",
		},
		{
			"line ends of Unix, no last one, other fields, upper case", "version:STSv1\nmode:testing\nmx:Mail.Example.COM  \nfuture: thing\n\nmax_age:1",
			mtasts.Policy{Mode: mtasts.Testing, MX: []string{"mail.example.com"}, MaxAge: time.Second},
			"",
		},
		{
			"the first of two counts", "version: STSv1\nmode: none\nmode: enforce\nmax_age: 5\nmax_age: 6\n",
			mtasts.Policy{Mode: mtasts.None, MaxAge: 5 * time.Second},
			"",
		},
		{
			"kept for a year at most", "version: STSv1\nmode: none\nmax_age: 4000000000\n",
			mtasts.Policy{Mode: mtasts.None, MaxAge: 31557600 * time.Second},
			"",
		},
		{"nothing", "", mtasts.Policy{}, "version"},
		{"a page", "<html>no</html>", mtasts.Policy{}, "line"},
		{"another version", "version: STSv2\nmode: none\nmax_age: 5", mtasts.Policy{}, "version"},
		{"no mode", "version: STSv1\nmax_age: 5\nmx: a.example", mtasts.Policy{}, "mode"},
		{"another mode", "version: STSv1\nmode: report\nmax_age: 5\nmx: a.example", mtasts.Policy{}, "mode"},
		{"no age", "version: STSv1\nmode: none", mtasts.Policy{}, "max_age"},
		{"an age that is not a number", "version: STSv1\nmode: none\nmax_age: 1d", mtasts.Policy{}, "max_age"},
		{"a negative age", "version: STSv1\nmode: none\nmax_age: -1", mtasts.Policy{}, "max_age"},
		{"no mx", "version: STSv1\nmode: enforce\nmax_age: 5", mtasts.Policy{}, "no mx"},
		{"an mx that is not a name", "version: STSv1\nmode: enforce\nmax_age: 5\nmx: a b", mtasts.Policy{}, "mx"},
		{"an mx that is an address", "version: STSv1\nmode: enforce\nmax_age: 5\nmx: 192.0.2.1", mtasts.Policy{}, "mx"},
		{"a wildcard inside", "version: STSv1\nmode: enforce\nmax_age: 5\nmx: a.*.example", mtasts.Policy{}, "mx"},
		{"a wildcard alone", "version: STSv1\nmode: enforce\nmax_age: 5\nmx: *.", mtasts.Policy{}, "mx"},
	}
	for _, tt := range tests {
		got, err := mtasts.ParsePolicy([]byte(tt.text))
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: error %v, want %q", tt.name, err, tt.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		} else if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestPolicyAllowsServers(t *testing.T) {
	t.Parallel()
	p := mtasts.Policy{Mode: mtasts.Enforce, MX: []string{"mail.example.com", "*.example.net"}}
	for host, want := range map[string]bool{
		"mail.example.com": true, "Mail.Example.Com.": true, "a.example.net": true, "example.net": false, "a.b.example.net": false,
		"mail.example.com.evil.example": false, "xmail.example.com": false, "": false, "*.example.net": true,
	} {
		if p.Allows(host) != want {
			t.Errorf("%q: %v, want %v", host, !want, want)
		}
	}
}

func FuzzParsePolicy(f *testing.F) {
	f.Add("version: STSv1\r\nmode: enforce\r\nmx: *.example.net\r\nmax_age: 604800\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := mtasts.ParsePolicy([]byte(text))
		if err == nil && (p.Mode == "" || p.MaxAge < 0 || p.Mode != mtasts.None && len(p.MX) == 0) {
			t.Errorf("%+v", p)
		}
	})
}
