package plaintext

import (
	"testing"

	"github.com/postroom/postroom/internal/lineartest"
)

// linearReaders are the exported functions that read text of a message.
func linearReaders() []lineartest.Reader {
	text := []string{":", "From:", "-", " 123456", "é", "\n", "> ", "a", " ", "code ", "https://a.example/" + lineartest.Number + " ", lineartest.Letter, "("}
	url := []string{"a", "(", "🎉", "字", "/", ")", ".", "é", "?", "@", " "}
	return []lineartest.Reader{
		{Name: "Snippet", Units: text, Read: func(s string) { Snippet(s) }},
		{Name: "FoldForSearch", Units: []string{"a", "é", "\u0301", "字", "가", " ", "ﬃ", "\xff"}, Short: 4, Read: func(s string) { FoldForSearch(s) }},
		{Name: "Visible", Units: []string{"a", "\U000E0041", "\U0001F3F4", "\U0001F3F4\U000E0067\U000E0067", "\ufe0f", "\u3164", "\xff"}, Short: 3, Read: func(s string) { Visible(s) }},
		{Name: "FoldSpace", Units: []string{" ", "a", "\n", "\u00a0", "é"}, Short: 3, Read: func(s string) { FoldSpace(s) }},
		{Name: "OneLine", Units: []string{"a", "\n", "\u2028", " "}, Short: 3, Read: func(s string) { OneLine(s) }},
		{Name: "UnixLines", Units: []string{"a", "\r", "\n", "\r\n"}, Read: func(s string) { UnixLines(s) }},
		{Name: "Unquote", Units: []string{"a", `"`, `\`}, Read: func(s string) { Unquote(s) }},
		{Name: "EndsWithColon", Units: []string{"a", ":", "\u200f"}, Read: func(s string) { EndsWithColon(s) }},
		{Name: "HasWord", Units: []string{"-", "é", " "}, Short: 3, Read: func(s string) { HasWord([]byte(s)) }},
		{Name: "HasDigit", Units: []string{"a", "é", "1"}, Read: func(s string) { HasDigit(s) }},
		{Name: "Digits", Units: []string{"a", "é", "1"}, Read: func(s string) { Digits(s) }},
		{Name: "IsASCII", Units: []string{"a", "é"}, Read: func(s string) { IsASCII(s) }},
		{Name: "Truncate", Units: []string{"a", "é", "\x80"}, Read: func(s string) { Truncate(s, len(s)-1) }},
		{Name: "URLLen", Units: url, Read: func(s string) { URLLen("https://" + s) }},
		{Name: "SplitURL", Units: url, Read: func(s string) { SplitURL("https://" + s) }},
		{Name: "CleanHref", Units: url, Read: func(s string) { CleanHref(s) }},
		{Name: "IsWebLink", Units: url[:3], Read: func(s string) { IsWebLink("https://" + s) }},
		{Name: "HostIn", Units: []string{"a", ".", "-", "é", "/", "https://"}, Read: func(s string) { HostIn(s + ".example") }},
		{Name: "Site", Units: []string{"a", ".", "-"}, Read: func(s string) { Site(s + ".example") }},
		{Name: "ASCIIHost", Units: []string{"a", ".", "-", "xn--", lineartest.Letter}, Read: func(s string) { ASCIIHost(s) }},
		{Name: "Invisible.Add", Units: []string{"a", "\U000E0041", "\u200b", "\u200b\u200c", "\ufe0f", "\u202e", "\u3164"}, Read: func(s string) {
			var c Invisible
			c.Add(s)
			c.Hides()
		}},
		{Name: "SchemeLen", Units: url[:3], Read: func(s string) { SchemeLen("http" + s) }},
	}
}

// notReadingMail are the other exported functions.
var notReadingMail = map[string]string{
	"BreaksLine":      "reads one character",
	"Invisible.Count": "reads numbers",
	"Invisible.Hides": "compares what Add keeps, which is bounded",
	"Invisible.Kinds": "reads numbers",
	"Invisible.Plus":  "adds numbers",
	"IsAlnum":         "reads one character",
	"IsDigit":         "reads one character",
	"IsHex":           "reads one character",
	"IsInvisible":     "reads one character",
	"IsUnspaced":      "reads one character",
	"LowerASCII":      "reads one character",
	"Unhex":           "reads one character",
	"WordSet":         "reads lists of the program",
}

func TestReadersAreLinear(t *testing.T) { lineartest.Check(t, linearReaders()) }

func TestLinearReadersAreComplete(t *testing.T) {
	t.Parallel()
	lineartest.Complete(t, linearReaders(), notReadingMail)
}
