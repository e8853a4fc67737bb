package mime

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/mail"
)

func TestDecodeWords(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"plain text stays", "Hello world", "Hello world"},
		{"quoted-printable", "=?utf-8?q?Gr=C3=BC=C3=9Fe_aus?= hier", "Grüße aus hier"},
		{"base64", "=?UTF-8?B?R3LDvMOfZQ==?=", "Grüße"},
		{"base64 without padding", "=?UTF-8?B?R3LDvMOfZQ?=", "Grüße"},
		{"space between two words does not count", "=?utf-8?q?a?= \t =?utf-8?q?b?=", "ab"},
		{"space between a word and text counts", "=?utf-8?q?a?= b =?utf-8?q?c?=", "a b c"},
		{"a character split between two words", "=?utf-8?q?Gr=C3?= =?utf-8?q?=BC=C3=9Fe?=", "Grüße"},
		{"two charsets", "=?iso-8859-1?q?=FC?= =?utf-8?q?=C3=9F?=", "üß"},
		{"a language after the charset", "=?utf-8*de?q?=C3=BC?=", "ü"},
		{"a question mark inside", "=?utf-8?q?what??= yes", "what? yes"},
		{"a space inside, against the rules", "=?utf-8?q?two words?=", "two words"},
		{"a word without an end stays", "=?utf-8?q?never", "=?utf-8?q?never"},
		{"an unknown encoding stays", "=?utf-8?x?abc?= =?utf-8?q?d?=", "=?utf-8?x?abc?= d"},
		{"an unknown charset is guessed", "=?x-unknown?q?caf=E9?=", "café"},
		{"broken escapes stay", "=?utf-8?q?50=_=Zx?=", "50= =Zx"},
		{"raw UTF-8", "Grüße", "Grüße"},
		{"raw windows-1252", "Gr\xfc\xdfe", "Grüße"},
		{"NUL goes", "a\x00b=?utf-8?q?c=00d?=", "abcd"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := decodeWords(tt.in); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestLongFields(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ü", 100_000)
	m, err := Parse(strings.NewReader("Subject: "+long+"\nFrom: "+long+" <a@b.c>\n\n"), mail.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	if m.Subject != long || len(m.From.Name) != maxName {
		t.Errorf("got a subject of %d and a name of %d bytes", len(m.Subject), len(m.From.Name))
	}
}

func TestParseMedia(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, param, kind, want string }{
		{"a quoted value", `Text/Plain; charset="utf-8"`, "charset", "text/plain", "utf-8"},
		{"an unquoted value", "text/plain; charset=utf-8; format=flowed", "charset", "text/plain", "utf-8"},
		{"a name in capitals", "text/plain; CHARSET=utf-8", "charset", "text/plain", "utf-8"},
		{"an escaped quote", `a/b; name="x\"y.txt"`, "name", "a/b", `x"y.txt`},
		{"a Windows path keeps its backslashes", `a/b; name="C:\temp\x"`, "name", "a/b", `C:\temp\x`},
		{"a quote that is not escaped", `a/b; name="x"s_y.txt"; size=6`, "name", "a/b", `x"s_y.txt`},
		{"the parameter after it", `a/b; name="x"s_y.txt"; size=6`, "size", "a/b", "6"},
		{"quotes that are not escaped", `a/b; name="The "new" plan.txt"`, "name", "a/b", `The "new" plan.txt`},
		{"a quote at the end", `a/b; name="6 x 4""; size=6`, "name", "a/b", `6 x 4"`},
		{"quotes that are written twice", `a/b; name=""x y.txt""; size=6`, "name", "a/b", "x y.txt"},
		{"escapes that need not be", `a/b; name="x\ \(1\).txt"`, "name", "a/b", "x (1).txt"},
		{"no semicolon before a parameter", `a/b; name="x.txt" size="6"`, "name", "a/b", "x.txt"},
		{"a backslash at the end", `a/b; name="x.txt\"; size=6`, "name", "a/b", "x.txt"},
		{"the parameter after that", `a/b; name="x.txt\"; size=6`, "size", "a/b", "6"},
		{"escaped quotes at the end", `a/b; name="a \"b\""; size=6`, "name", "a/b", `a "b"`},
		{"an encoded word for the kind", `=?utf-8?Q?inline?=; filename=x.png`, "filename", "inline", "x.png"},
		{"an encoded word for all of it", `=?utf-8?Q?attachment=3B_filename=3D=22x.png=22?=`, "filename", "attachment", "x.png"},
		{"a quote without end", `a/b; name="x y.txt`, "name", "a/b", "x y.txt"},
		{"spaces without quotes", "a/b; name=x y.txt; z=1", "name", "a/b", "x y.txt"},
		{"a semicolon in quotes", `a/b; name="x;y"; z=1`, "name", "a/b", "x;y"},
		{"empty parameters", "a/b;; ; name=x;", "name", "a/b", "x"},
		{"a comment", "a/b (really); name=x (see there)", "name", "a/b", "x"},
		{"an encoded word", `a/b; name="=?utf-8?q?=C3=BC.txt?="`, "name", "a/b", "ü.txt"},
		{"RFC 2231", "a/b; name*=utf-8'de'%C3%BC%20x.txt", "name", "a/b", "ü x.txt"},
		{"RFC 2231 before the plain one", "a/b; name=u.txt; name*=utf-8''%C3%BC.txt", "name", "a/b", "ü.txt"},
		{"RFC 2231 in parts, out of order", "a/b; name*1=b; name*0=a; name*2=c", "name", "a/b", "abc"},
		{"RFC 2231 in coded parts", "a/b; name*0*=iso-8859-1''%FC; name*1=b; name*2*=%FC", "name", "a/b", "übü"},
		{"a huge part number", "a/b; name*999999999*=x; name=y", "name", "a/b", "y"},
		{"nothing", "", "name", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := ParseMedia(tt.in)
			if got := m.get(tt.param); got != tt.want || m.Kind != tt.kind {
				t.Errorf("got %q of %q, want %q of %q", got, m.Kind, tt.want, tt.kind)
			}
		})
	}
}

func TestParseDate(t *testing.T) {
	t.Parallel()
	want := time.Date(2026, 11, 13, 9, 14, 20, 0, time.UTC)
	for _, in := range []string{
		"Fri, 13 Nov 2026 09:14:20 +0000",
		"Fri, 13 Nov 2026 10:14:20 +0100 (CET)",
		"13 Nov 26 09:14:20 GMT",
		"Fri,  13  Nov 2026 09:14:20 +0000",
		"Fri, 13 Nov 2026 09:14:20",
		"Fri Nov 13 09:14:20 2026",
		"2026-11-13T09:14:20Z",
		"2026-11-13 10:14:20 +0100",
		"Fri, 13 Nov 2026 10:14:20 +0100 (Mitteleurop\xe4ische Zeit)",
		"Fri, 13 Nov 2026 11:14:20 +0200 (GMT+02:00)",
		"Fri, 13 Nov 2026 11:14:20 (GMT+02:00)",
		"Fri, 13 Nov 2026 11:14:20 GMT+02:00",
		"Fri, 13 Nov 2026 11:14:20 UTC+2",
		"Fri, 13 Nov 2026 04:14:20 EST5EDT",
		"Fri, 13 Nov 2026 04:14:20 EST",
		"Fri, 13 Nov 2026 01:14:20 PST (Pacific)",
	} {
		if got := parseDate(in); !got.Equal(want) {
			t.Errorf("%q: got %v", in, got)
		}
	}
	for _, in := range []string{"", "yesterday", "Fri, 99 Nov 2026 09:14:20 +0000"} {
		if got := parseDate(in); !got.IsZero() {
			t.Errorf("%q: got %v, want none", in, got)
		}
	}
}

func TestMessageIDs(t *testing.T) {
	t.Parallel()
	long := "<" + strings.Repeat("x", maxMessageID) + "@example.com>"
	tests := []struct {
		name, in string
		want     []string
	}{
		{"some with space between", "<a@b>\t<c@d> <e@f>", []string{"<a@b>", "<c@d>", "<e@f>"}},
		{"without space", "<a@b><c@d>", []string{"<a@b>", "<c@d>"}},
		{"words around it", "Message from Ann of Friday <a@b>", []string{"<a@b>"}},
		{"without brackets", " a@b ", []string{"<a@b>"}},
		{"only words", "Your message of Friday", nil},
		{"ids with other characters are ignored", "<a\x01b@c> <g\xfc@h>", nil},
		{"an id that was folded", "<a\t b@c> < d@e > <f@g>", []string{"<ab@c>", "<d@e>", "<f@g>"}},
		{"words in brackets", "<Your message of Friday> <a@b>", []string{"<a@b>"}},
		{"a long id is ignored", long + " <a@b>", []string{"<a@b>"}},
		{"brackets without end", "<a@b> <c@d", []string{"<a@b>"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, MessageIDs(tt.in)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	if got := MessageIDs(strings.Repeat("<a@b> ", 1000) + "<z@z>"); len(got) != maxReferences || got[maxReferences-1] != "<z@z>" {
		t.Errorf("of many, the newest are kept: got %d, last %q", len(got), got[len(got)-1])
	}
}

func TestParseAddressList(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, in string
		want     []mail.Address
	}{
		{"name and address", "Ann Example <Ann@Example.COM>", []mail.Address{{Name: "Ann Example", Email: "Ann@example.com"}}},
		{"address alone", "ann@example.com", []mail.Address{{Email: "ann@example.com"}}},
		{"comment as name", "ann@example.com (Ann (the first))", []mail.Address{{Name: "Ann (the first)", Email: "ann@example.com"}}},
		{"a comma in quotes", `"Example, Ann" <a@b.c>, d@e.f`, []mail.Address{{Name: "Example, Ann", Email: "a@b.c"}, {Email: "d@e.f"}}},
		{"a comma in an encoded word", "=?utf-8?q?Example=2C_Ann?= <a@b.c>", []mail.Address{{Name: "Example, Ann", Email: "a@b.c"}}},
		{"an at sign in the name", "ann@home <a@b.c>", []mail.Address{{Name: "ann@home", Email: "a@b.c"}}},
		{"escaped quotes", `"Ann \"A\" E" <a@b.c>`, []mail.Address{{Name: `Ann "A" E`, Email: "a@b.c"}}},
		{"quotes that do not end", `"Ann <a@b.c>`, []mail.Address{{Name: "Ann", Email: "a@b.c"}}},
		{"a bracket that does not end", "Ann <a@b.c", []mail.Address{{Name: "Ann", Email: "a@b.c"}}},
		{"a group", "Team: a@b.c, Bob <d@e.f>; g@h.i", []mail.Address{{Email: "a@b.c"}, {Name: "Bob", Email: "d@e.f"}, {Email: "g@h.i"}}},
		{"an empty group", "undisclosed-recipients:;", nil},
		{"a source route", "<@relay.example:a@b.c>", []mail.Address{{Email: "a@b.c"}}},
		{"a quoted local part", `"a b"@c.d`, []mail.Address{{Email: `"a b"@c.d`}}},
		{"an at sign in a quoted local part", `Ann <"a@evil.example"@ours.example>`, []mail.Address{{Name: "Ann", Email: `"a@evil.example"@ours.example`}}},
		{"a bracket in a quoted local part", `"<"@c.d`, []mail.Address{{Email: `"<"@c.d`}}},
		{"an apostrophe in the local part", "'0@c.d, 'e@f.g'", []mail.Address{{Email: "'0@c.d"}, {Email: "e@f.g"}}},
		{"bytes that are not UTF-8", "\xf1@c.d", []mail.Address{{Email: "ñ@c.d"}}},
		{"semicolons instead of commas", "a@b.c; d@e.f", []mail.Address{{Email: "a@b.c"}, {Email: "d@e.f"}}},
		{"nothing but commas", ",, ,", nil},
		{"words alone are not an address", "Mail Delivery System", nil},
		{"empty brackets", "<>", nil},
		{"spaces about the at sign", "a @ b.c", []mail.Address{{Email: "a@b.c"}}},
		{"a line break that an encoded word hides", "=?utf-8?q?A=0D=0ABcc:_x@y.z?= <a@b.c>", []mail.Address{{Name: "A Bcc: x@y.z", Email: "a@b.c"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, _ := ParseAddressList(tt.in, 100)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	if got, more := ParseAddressList("a@b.c, d@e.f, g@h.i", 2); len(got) != 2 || !more {
		t.Errorf("limit: got %v, more %v", got, more)
	}
	if got, more := ParseAddressList("a@b.c, d@e.f, ;", 2); len(got) != 2 || more {
		t.Errorf("limit reached, not passed: got %v, more %v", got, more)
	}
}
