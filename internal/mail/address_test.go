package mail

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestParseMailbox(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, in string
		want     Address
	}{
		{"an address", "ann@example.com", Address{"", "ann@example.com"}},
		{"a name", "Ann Example <ann@example.com>", Address{"Ann Example", "ann@example.com"}},
		{"a quoted name", `"Example, Ann" <ann@example.com>`, Address{"Example, Ann", "ann@example.com"}},
		{"an escaped quote", `"Ann \"A\"" <ann@example.com>`, Address{`Ann "A"`, "ann@example.com"}},
		{"the domain in lower case, the local part as it is", "Ann@EXAMPLE.com", Address{"", "Ann@example.com"}},
		{"a quoted local part", `"a b"@example.com`, Address{"", `"a b"@example.com`}},
		{"an at sign in it", `"a@evil.example"@example.com`, Address{"", `"a@evil.example"@example.com`}},
		{"a non-ASCII local part", "jürgen@example.com", Address{"", "jürgen@example.com"}},
		{"a non-ASCII domain", "a@BÜCHER.example", Address{"", "a@bücher.example"}},
		{"a domain with the dot of another script", "a@bücher。example", Address{"", "a@bücher.example"}},
		{"tags and slashes", "a+b/c=d@example.com", Address{"", "a+b/c=d@example.com"}},
		{"brackets alone", "<a@example.com>", Address{"", "a@example.com"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := ParseMailbox(tt.in)
			if err != nil || got != tt.want {
				t.Errorf("got %+v, %v, want %+v", got, err, tt.want)
			}
		})
	}
}

func TestParseMailboxRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"nothing":                        "",
		"no at sign":                     "ann.example.com",
		"no local part":                  "@example.com",
		"no domain":                      "ann@",
		"two addresses":                  "a@example.com, b@example.com",
		"two mailboxes":                  "A <a@example.com>, B <b@example.com>",
		"a leading dot":                  ".a@example.com",
		"a double dot":                   "a..b@example.com",
		"a trailing dot":                 "a.@example.com",
		"a space":                        "a b@example.com",
		"a trailing dot of the domain":   "a@example.com.",
		"an empty label":                 "a@example..com",
		"a hyphen at the end of a label": "a@example-.com",
		"an underscore in the domain":    "a@exa_mple.com",
		"an address literal":             "a@[192.0.2.1]",
		"an IP address":                  "a@192.0.2.1",
		"a percent sign in the domain":   "user%x@ours@example%com",
		"a line break":                   "a@example.com\r\nBcc: v@example.org",
		"a line feed in the name":        "A\nB <a@example.com>",
		"a NUL":                          "a\x00@example.com",
		"a line separator":               "A\u2028B <a@example.com>",
		"a next-line character":          "A\u0085B <a@example.com>",
		"an invisible space":             "a\u200b@example.com",
		"invalid UTF-8":                  "a\xff@example.com",
		"a bracket in the name":          "A <b> <a@example.com>",
		"a quote in the name":            `A "B" <a@example.com>`,
		"a quoted part that ends early":  `"a"b"@example.com`,
		"a long local part":              strings.Repeat("a", 65) + "@example.com",
		"a long label":                   "a@" + strings.Repeat("b", 64) + ".com",
		"a long address":                 "a@" + strings.Repeat("bbbbbbbbb.", 26) + "com",
		"a source route":                 "@ours.example:u@x.example",
		"an unbalanced bracket":          "a@example.com>",
	}
	for name, in := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := ParseMailbox(in); err == nil {
				t.Errorf("%q was taken as %+v", in, got)
			}
		})
	}
}

func TestLikePattern(t *testing.T) {
	t.Parallel()
	tests := []struct {
		pattern, email string
		want           bool
	}{
		{"ann@example.com", "ann@example.com", true},
		{"ANN@example.com", "ann@EXAMPLE.com", true},
		{"ann@example.com", "joann@example.com", false},
		{"*@example.com", "ann@example.com", true},
		{"*@example.com", "ann@mail.example.com", false},
		{"*@example.com", "ann@badexample.com", false},
		{"*@*.example.com", "ann@mail.example.com", true},
		{"*@*.example.com", "ann@a.b.example.com", true},
		{"*@*.example.com", "ann@example.com", false},
		{"no-reply*@example.com", "no-reply+7@example.com", true},
		{"*noreply*", "x-noreply@example.com", true},
		{"*", "a@b", true},
		{"**@*", "a@b", true},
		{"", "a@b", false},
		{"a?b@example.com", "axb@example.com", false},
		{"a_b@example.com", "axb@example.com", false},
		{"a%@example.com", "axb@example.com", false},
		{`a\@example.com`, `a\@example.com`, true},
		{"k@example.com", "\u212a@example.com", false},
		{"*a*a*a*a*a*b", strings.Repeat("a", 200), false},
	}
	for _, tt := range tests {
		if got := like(LikePattern(tt.pattern), FoldAddress(tt.email)); got != tt.want {
			t.Errorf("LIKE %q and %q: got %v", LikePattern(tt.pattern), tt.email, got)
		}
	}
}

func TestFoldAddress(t *testing.T) {
	t.Parallel()
	for email, want := range map[string]string{
		"Ann.Example@OUT.example": "ann.example@out.example",
		"\u212aay@out.example":    "\u212aay@out.example", // the Kelvin sign
		"\u0130da@out.example":    "\u0130da@out.example", // I with a dot, which folds into i
		"Jörg.ÄRGER@out.example":  "jörg.ärger@out.example",
		"":                        "",
	} {
		if got := FoldAddress(email); got != want {
			t.Errorf("%q: got %q, want %q", email, got, want)
		}
	}
}

func TestCanonicalAddress(t *testing.T) {
	t.Parallel()
	const ascii = "ann@xn--bcher-kva.example"
	for _, tt := range []struct {
		email string
		want  []string // the spellings
	}{
		{"Ann+News@Out.example", []string{"ann+news@out.example"}},
		{`"Ann"@out.example`, []string{"ann@out.example", `"ann"@out.example`}},
		{`"a\nn"@out.example`, []string{"ann@out.example", `"a\nn"@out.example`}},
		{`"a\ \"b@c"@out.example`, []string{`"a \"b@c"@out.example`, `"a\ \"b@c"@out.example`}},
		{`"a..b"@out.example`, []string{`"a..b"@out.example`}},
		{`"\"a\""@out.example`, []string{`"\"a\""@out.example`}},
		{`"a"b"@out.example`, []string{`"a"b"@out.example`}},
		{`""@out.example`, []string{`""@out.example`}},
		{"ann@BÜCHER.example", []string{ascii, "ann@bücher.example"}},
		{"ann@XN--Bcher-KVA.example", []string{ascii, "ann@bücher.example"}},
		{`"ann"@bücher.example`, []string{ascii, `"ann"@bücher.example`, "ann@bücher.example"}},
		{"\u212aay@out.example", []string{"\u212aay@out.example"}}, // the Kelvin sign
		{"a@exa_mple.example", []string{"a@exa_mple.example"}},
		{"ann", []string{"ann"}},
		{"", []string{""}},
	} {
		if got := AddressSpellings(tt.email); !slices.Equal(got, tt.want) || CanonicalAddress(tt.email) != tt.want[0] {
			t.Errorf("%q: got %q, want %q", tt.email, got, tt.want)
		}
	}
}

// like is SQL's LIKE with the escape character '\'.
func like(pattern, s string) bool {
	re := "(?s)^"
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; c {
		case '\\':
			i++
			re += regexp.QuoteMeta(pattern[i : i+1])
		case '%':
			re += ".*"
		case '_':
			re += "."
		default:
			re += regexp.QuoteMeta(string(c))
		}
	}
	return regexp.MustCompile(re + "$").MatchString(s)
}
