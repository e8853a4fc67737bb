package extract

import (
	"testing"

	"github.com/postroom/postroom/internal/lineartest"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/mime"
)

// linearReaders are the exported functions; all read mail.
func linearReaders() []lineartest.Reader {
	text := []string{":", "From:", "-", " 123456", "é", "\n", "> ", "a", " ", "code ", "https://a.example/" + lineartest.Number + " ", lineartest.Letter, "("}
	html := []string{"x", "<p>", "</div>", "<a href=https://a.example/" + lineartest.Number + ">", "<style>", "<b style='", "<div class=gmail_quote>", ".a" + lineartest.Number + "{color:red}", "<!--", "&amp;", "<blockquote type=cite>"}
	return []lineartest.Reader{
		{Name: "CodesAndLinks text", Units: text, Read: func(s string) { CodesAndLinks("Your code", s, "") }},
		{Name: "CodesAndLinks html", Units: html, Read: func(s string) { CodesAndLinks("", "", s) }},
		{Name: "CodesAndLinks text-in-html", Units: text, Read: func(s string) { CodesAndLinks("", "", "<p>"+s) }},
		{Name: "CodesAndLinks subject", Units: text[:4], Read: func(s string) { CodesAndLinks(s, s, "") }},
		{Name: "CodesAndLinks cut-links", Units: []string{"<http://a", "http://", "\n", "a", "🎉"}, Read: func(s string) { CodesAndLinks("", s, "<a href='http://a"+s+"'>") }},
		{Name: "Read", Units: text, Read: func(s string) { Read("Your code", s, "", true) }},
		{Name: "Model.CodesAndLinks", Units: text, Read: func(s string) { trained().CodesAndLinks("Your code", s, "") }},
		{Name: "Derive", Units: html, Read: func(s string) { Derive(&mime.Message{HTML: s}, mail.DefaultLimits()) }},
	}
}

func TestReadersAreLinear(t *testing.T) { lineartest.Check(t, linearReaders()) }

func TestLinearReadersAreComplete(t *testing.T) {
	t.Parallel()
	const weights = "reads the weights, not mail"
	lineartest.Complete(t, linearReaders(), map[string]string{
		"Trained": weights, "ParseModel": weights, "NewModel": weights, "SignNames": weights, "Model.String": weights, "Model.Weights": weights,
	})
}
