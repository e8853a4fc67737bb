package mail

import (
	"testing"

	"github.com/postroom/postroom/internal/lineartest"
)

// linearReaders are the exported functions that read addresses and fields.
func linearReaders() []lineartest.Reader {
	header := []string{`"`, "(", "<", ",", "=?utf-8?q?a?=", "a" + lineartest.Number + "@b.example", "\r\n ", "a", " ", ";", "é", "="}
	return []lineartest.Reader{
		{Name: "FoldAddress", Units: []string{"A", "é", "\xff", "\u212a"}, Read: func(s string) { FoldAddress(s) }},
		{Name: "MatchAddress", Units: []string{"a", "b", "@"}, Read: func(s string) { MatchAddress("*a*b*@*.example", s) }},
		{Name: "Mailbox", Units: []string{"A", "é", "+", `"`, `\`}, Read: func(s string) { Mailbox(s + "@b.example") }},
		{Name: "Mailbox domain", Units: []string{"a", lineartest.Letter, ".", "-"}, Read: func(s string) { Mailbox("a@" + s) }},
		{Name: "ParseMailbox", Units: header, Read: func(s string) { _, _ = ParseMailbox(s) }},
		{Name: "ParseMailbox domain", Units: []string{"a", lineartest.Letter, ".", "-"}, Read: func(s string) { _, _ = ParseMailbox("a@" + s) }},
		{Name: "ValidAddress", Units: []string{"a", lineartest.Letter, ".", "@", `"`}, Read: func(s string) { _ = ValidAddress("a@" + s) }},
		{Name: "CheckLine", Units: []string{"a", "\xff", "é", "\u2028"}, Read: func(s string) { _ = CheckLine(s) }},
		{Name: "ClaimsHost", Units: header[:6], Read: func(s string) { ClaimsHost(s, "a.example") }},
	}
}

// notReadingMail are the other exported functions.
var notReadingMail = map[string]string{
	"DefaultLimits": "takes nothing",
	"IsAtomText":    "reads one character",
	"LikePattern":   "reads a pattern of the API, which the contract bounds",
}

func TestReadersAreLinear(t *testing.T) { lineartest.Check(t, linearReaders()) }

func TestLinearReadersAreComplete(t *testing.T) {
	t.Parallel()
	lineartest.Complete(t, linearReaders(), notReadingMail)
}
