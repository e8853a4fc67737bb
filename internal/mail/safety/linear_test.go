package safety

import (
	"slices"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/lineartest"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/htmltext"
	"github.com/postroom/postroom/internal/mail/mime"
)

// linearReaders are the functions that read what a stranger wrote.
func linearReaders() []lineartest.Reader {
	known := slices.Repeat([]string{"shop.example"}, 10)
	return []lineartest.Reader{
		{Name: "Skeleton", Units: []string{"a", "rn", "а", "0", "."}, Read: func(s string) { Skeleton(s) }},
		{Name: "LookAlike", Units: []string{"a", "rn", "."}, Read: func(s string) { LookAlike(s+".example", s+".example", known) }},
		{Name: "NamedOther", Units: []string{"a", "@", ".", " ", "é"}, Read: func(s string) { NamedOther(mail.Address{Name: s, Email: "a@b.example"}) }},
		{Name: "Read", Units: []string{"<b>a</b> ", "<a href=https://a.example>b.example</a>", "\u200b", "word "}, Read: func(s string) {
			raw := "Content-Type: multipart/alternative; boundary=b\r\n\r\n--b\r\n\r\n" + s + "\r\n--b\r\nContent-Type: text/html; charset=utf-8\r\n\r\n" + s + "\r\n--b--\r\n"
			m, err := mime.Parse(strings.NewReader(raw), mail.DefaultLimits())
			if err != nil {
				panic(err)
			}
			Read(m, htmltext.Read(m.HTML, 100, htmltext.OnlyVisible, nil))
		}},
	}
}

func TestReadersAreLinear(t *testing.T) { lineartest.Check(t, linearReaders()) }
