package apikey_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/apikey"
)

func TestNew(t *testing.T) {
	t.Parallel()
	tests := []struct{ mode, brand, want string }{
		{"live", "sk", `^sk_live_[0-9A-Za-z]{42}$`},
		{"test", "sk", `^sk_test_[0-9A-Za-z]{42}$`},
		{"restricted", "sk", `^sk_restr_[0-9A-Za-z]{42}$`},
		{"live", "acme", `^acme_live_[0-9A-Za-z]{42}$`},
	}
	for _, tt := range tests {
		t.Run(tt.brand+" "+tt.mode, func(t *testing.T) {
			t.Parallel()
			seen := map[string]bool{}
			for range 1000 {
				secret := apikey.New(tt.mode, tt.brand)
				if !regexp.MustCompile(tt.want).MatchString(secret) {
					t.Fatalf("%q does not match %s", secret, tt.want)
				}
				if !apikey.WellFormed(secret) {
					t.Fatalf("%q is not well formed", secret)
				}
				if seen[secret] {
					t.Fatalf("%q was returned twice", secret)
				}
				seen[secret] = true
			}
		})
	}
}

func TestNewUsesAllDigitsEvenly(t *testing.T) {
	t.Parallel()
	count := map[rune]int{}
	const keys = 3000
	for range keys {
		for _, r := range strings.TrimPrefix(apikey.New("live", "sk"), "sk_live_")[:36] {
			count[r]++
		}
	}
	if len(count) != 62 {
		t.Fatalf("%d different characters, want 62", len(count))
	}
	mean := keys * 36 / 62
	for r, n := range count {
		// Ten standard deviations; a byte taken modulo 62 would be off by 25 %.
		if n < mean*3/4 || n > mean*5/4 {
			t.Errorf("%q occurred %d times, the mean is %d", r, n, mean)
		}
	}
}

func TestWellFormedRefusesAChangedSecret(t *testing.T) {
	t.Parallel()
	secret := apikey.New("live", "sk")
	for i := range secret {
		other := byte('x')
		if secret[i] == other {
			other = 'y'
		}
		changed := secret[:i] + string(other) + secret[i+1:]
		if apikey.WellFormed(changed) {
			t.Errorf("%q, changed at %d, is well formed", changed, i)
		}
	}
	for _, s := range []string{"", "sk_live_", secret[:49], secret + "0", "a key chosen by the operator"} {
		if apikey.WellFormed(s) {
			t.Errorf("%q is well formed", s)
		}
	}
}

// A fixed secret: a scanner's rule that works today must keep working.
func TestChecksumStays(t *testing.T) {
	t.Parallel()
	const secret = "sk_live_000000000000000000000000000000000000" + "3SKqo7"
	if !apikey.WellFormed(secret) {
		t.Errorf("%s is no longer well formed", secret)
	}
}

func TestPrefixAndHint(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, secret, prefix, hint string }{
		{"a live key", "sk_live_abcdefghijklmnop", "sk_live_abcd", "…mnop"},
		{"a restricted key", "sk_restr_abcdefghijklmnop", "sk_restr_abcd", "…mnop"},
		{"a key of another form", "Correct horse battery staple", "Corr", "…aple"},
		{"characters of several bytes", "ключ-ключ-ключ-ключ-ключ", "ключ", "…ключ"},
		{"a short one", "abc", "abc", "…abc"},
		{"none", "", "", "…"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := apikey.Prefix(tt.secret); got != tt.prefix {
				t.Errorf("Prefix = %q, want %q", got, tt.prefix)
			}
			if got := apikey.Hint(tt.secret); got != tt.hint {
				t.Errorf("Hint = %q, want %q", got, tt.hint)
			}
		})
	}
}
