package smtp

import (
	"testing"

	"github.com/postroom/postroom/internal/lineartest"
)

func linearReaders() []lineartest.Reader {
	path := []string{"a", `\`, `"`, ">", "@", ":", ".", "+", "<"}
	return []lineartest.Reader{
		{Name: "IsMailbox", Units: path, Read: func(m string) { IsMailbox(m) }},
		{Name: "QuoteMailbox", Units: path, Read: func(m string) { QuoteMailbox(m + "@a.example") }},
		{Name: "SplitAddress", Units: append([]string{lineartest.Letter}, path...), Read: func(m string) { SplitAddress("a@" + m) }},
		{Name: "SplitAddress local", Units: path, Read: func(m string) { SplitAddress(`"` + m + `"@a.example`) }},
		{Name: "ASCIIDomain", Units: []string{lineartest.Letter, ".", "a", "xn--", "\u0327"}, Read: func(m string) { _, _ = ASCIIDomain("\u00fc" + m) }},
		{Name: "IsASCII", Units: []string{"a"}, Read: func(m string) { IsASCII(m) }},
		{Name: "IsDomain", Units: []string{"a", ".", "[", lineartest.Letter}, Read: func(m string) { IsDomain(m) }},
		{Name: "FirstLineEnd", Units: []string{"\r", "\n", "a"}, Read: func(m string) {
			for b := []byte(m); len(b) > 0; b = b[min(FirstLineEnd(b)+1, len(b)):] {
			}
		}},
	}
}

func TestReadersAreLinear(t *testing.T) { lineartest.Check(t, linearReaders()) }

func TestLinearReadersAreComplete(t *testing.T) {
	t.Parallel()
	const ours = "formats our own reply"
	lineartest.Complete(t, linearReaders(), map[string]string{
		"Reply.Error": ours, "Reply.Append": ours, "Reply.Temporary": "compares a number", "SuppressedMail": "compares a code",
	})
}
