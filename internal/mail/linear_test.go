package mail

import (
	"testing"

	"github.com/postroom/postroom/internal/lineartest"
)

// linearReaders are the exported functions that read addresses and fields.
func linearReaders() []lineartest.Reader {
	header := []string{`"`, "(", "<", ",", "=?utf-8?q?a?=", "a" + lineartest.Number + "@b.example", "\r\n ", "a", " ", ";", "é", "="}
	list := NewList([]ListEntry{{Pattern: "*@*.example", Action: ListBlock}, {Pattern: "a@b.example", Action: ListAllow}})
	return []lineartest.Reader{
		{Name: "FoldAddress", Units: []string{"A", "é", "\xff", "\u212a"}, Read: func(s string) { FoldAddress(s) }},
		{Name: "CanonicalAddress", Units: []string{"A", "é", `"`, `\`, "."}, Read: func(s string) { CanonicalAddress(`"` + s + `"@b.example`) }},
		{Name: "CanonicalAddress domain", Units: []string{"a", lineartest.Letter, ".", "-"}, Read: func(s string) { CanonicalAddress("a@" + s) }},
		{Name: "AddressSpellings", Units: []string{"a", lineartest.Letter, ".", "-", "xn--"}, Read: func(s string) { AddressSpellings("a@" + s) }},
		{Name: "Mailbox", Units: []string{"A", "é", "+", `"`, `\`}, Read: func(s string) { Mailbox(s + "@b.example") }},
		{Name: "Mailbox domain", Units: []string{"a", lineartest.Letter, ".", "-"}, Read: func(s string) { Mailbox("a@" + s) }},
		{Name: "ParseMailbox", Units: header, Read: func(s string) { _, _ = ParseMailbox(s) }},
		{Name: "ParseMailbox domain", Units: []string{"a", lineartest.Letter, ".", "-"}, Read: func(s string) { _, _ = ParseMailbox("a@" + s) }},
		{Name: "ValidAddress", Units: []string{"a", lineartest.Letter, ".", "@", `"`}, Read: func(s string) { _ = ValidAddress("a@" + s) }},
		{Name: "CheckLine", Units: []string{"a", "\xff", "é", "\u2028"}, Read: func(s string) { _ = CheckLine(s) }},
		{Name: "ParseListPattern", Units: []string{"a", lineartest.Letter, ".", "*", "@", `"`}, Read: func(s string) { _, _ = ParseListPattern("*@" + s) }},
		{Name: "List.Of", Units: []string{"a", ".", "%", "!", "+", `"`, `\`, "@"}, Read: func(s string) { list.Of(s+"@b.example", true) }},
		{Name: "List.Of domain", Units: []string{"a", lineartest.Letter, ".", "-"}, Read: func(s string) { list.Of("a@"+s, true) }},
		{Name: "WithoutSESRegion", Units: []string{"a", "@", "."}, Read: func(s string) { WithoutSESRegion("<" + s + "@a.amazonses.com>") }},
		{Name: "ClaimsHost", Units: header[:6], Read: func(s string) { ClaimsHost(s, "a.example") }},
	}
}

// notReadingMail are the other exported functions.
var notReadingMail = map[string]string{
	"DefaultLimits":       "takes nothing",
	"IsAtomText":          "reads one character",
	"IsRole":              "compares with a few names",
	"LikePattern":         "reads a pattern of the API, which the contract bounds",
	"List.OfPattern":      "reads a pattern that ParseListPattern returned",
	"ListAction.Stricter": "reads no text",
	"IsSESMessageID":      "compares the end",
	"SESMessageID":        "reads no text",
	"NewList":             "reads patterns that ParseListPattern returned",
	"Reserved":            "compares with a few names",
	"Safety.Rate":         "reads no text",
	"SafetyLevel.AtLeast": "compares two of three names",
}

func TestReadersAreLinear(t *testing.T) { lineartest.Check(t, linearReaders()) }

func TestLinearReadersAreComplete(t *testing.T) {
	t.Parallel()
	lineartest.Complete(t, linearReaders(), notReadingMail)
}
