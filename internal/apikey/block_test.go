package apikey_test

import (
	"testing"

	"github.com/postroom/postroom/internal/apikey"
)

// TestParseBlock covers the forms of address blocks. Row H4 of docs/testing.md.
func TestParseBlock(t *testing.T) {
	t.Parallel()
	tests := map[string]string{ // empty: refused
		"192.0.2.0/24":          "192.0.2.0/24",
		"192.0.2.77/24":         "192.0.2.0/24",
		"192.0.2.1/32":          "192.0.2.1/32",
		"0.0.0.0/0":             "0.0.0.0/0",
		"2001:db8::/32":         "2001:db8::/32",
		"2001:DB8::5/64":        "2001:db8::/64",
		"::/0":                  "::/0",
		"::ffff:192.0.2.0/120":  "192.0.2.0/24",
		"::ffff:c000:201/128":   "192.0.2.1/32",
		"::ffff:0:0/96":         "0.0.0.0/0",
		"192.0.2.1":             "",
		"192.0.2.0/33":          "",
		"192.0.2.0/-1":          "",
		"192.0.2.0/024":         "",
		"192.0.2.0/":            "",
		"192.0.2/24":            "",
		"192.000.002.000/24":    "",
		" 192.0.2.0/24":         "",
		"192.0.2.0-192.0.2.255": "",
		"2001:db8::/129":        "",
		"fe80::1%eth0/64":       "",
		"example.com/24":        "",
		"*":                     "",
		"":                      "",
	}
	for in, want := range tests {
		got, ok := apikey.ParseBlock(in)
		if ok != (want != "") || ok && got.String() != want {
			t.Errorf("%q: %v %t, want %q", in, got, ok, want)
		}
	}
}
