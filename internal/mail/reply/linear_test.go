package reply

import (
	"testing"

	"github.com/postroom/postroom/internal/lineartest"
	"github.com/postroom/postroom/internal/mail/htmltext"
)

// linearReaders are the exported functions; all read mail.
func linearReaders() []lineartest.Reader {
	text := []string{":", "From:", "-", " 123456", "é", "\n", "> ", "a", " ", "code ", "https://a.example/" + lineartest.Number + " ", lineartest.Letter, "("}
	html := []string{"x", "<p>", "</div>", "<a href=https://a.example/" + lineartest.Number + ">", "<style>", "<b style='", "<div class=gmail_quote>", ".a" + lineartest.Number + "{color:red}", "<!--", "&amp;", "<blockquote type=cite>"}
	return []lineartest.Reader{
		{Name: "Text", Units: text, Read: func(s string) { Text(s, nil) }},
		{Name: "TextOfPage", Units: html, Read: func(s string) { TextOfPage(htmltext.Read(s, 0, htmltext.WithMarks, nil), nil) }},
		{Name: "NormalizeSubject", Units: []string{"Re: ", "Re[2]:", "Fwd: ", "[", "]", " ", "a", "回复："}, Read: func(s string) { NormalizeSubject(s) }},
		{Name: "HasReplyMark", Units: []string{"Re: ", "Re[2]:", "[", " ", "a", "回复："}, Read: func(s string) { HasReplyMark(s) }},
		{Name: "IsAnswer", Units: []string{"Re: ", "Re[2]:", "Fwd: ", "[", " ", "a", "回复："}, Read: func(s string) { IsAnswer(s) }},
		{Name: "ReplySubject", Units: []string{"Re: ", "a", " "}, Read: func(s string) { ReplySubject(s) }},
		{Name: "ForwardSubject", Units: []string{"Fwd: ", "a", " "}, Read: func(s string) { ForwardSubject(s) }},
	}
}

func TestReadersAreLinear(t *testing.T) { lineartest.Check(t, linearReaders()) }

func TestLinearReadersAreComplete(t *testing.T) {
	t.Parallel()
	lineartest.Complete(t, linearReaders(), nil)
}
