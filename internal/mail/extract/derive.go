package extract

import (
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/htmltext"
	"github.com/postroom/postroom/internal/mail/mime"
	"github.com/postroom/postroom/internal/mail/plaintext"
	"github.com/postroom/postroom/internal/mail/reply"
)

// Derived is what is shown of a message beside what it says itself.
type Derived struct {
	Text      string // the text; of a message that is only HTML, its text
	FromHTML  bool   // Text was made from the HTML
	ReplyText string // the new part of Text, see [reply.Text]
	Snippet   string // the beginning of what a reader sees
	Extracted mail.Extraction
	// Truncated says that lim.Budget ran out. Then the rest is what was found up to
	// there: ReplyText may hold what is quoted, and OTP and ActionLink are nil,
	// link, since a better one may follow.
	Truncated bool
}

// Derive returns what is shown of a message. It is meant to be called once, when
// the message is received.
func Derive(m *mime.Message, lim mail.Limits) Derived {
	d := Derived{Text: m.Text, FromHTML: m.Text == "" && m.HTML != ""}
	var seen *htmltext.Page
	d.Extracted, seen = extract(m.Subject, m.Text, m.HTML, lim)
	if d.Snippet = plaintext.Snippet(m.Text); d.Snippet == "" && seen != nil {
		d.Snippet = plaintext.Snippet(seen.Plain())
	}
	if d.FromHTML {
		d.Text = htmltext.Read(m.HTML, lim.Links, htmltext.WithTargets, lim.Budget).Plain()
		d.ReplyText = reply.TextOfHTML(m.HTML, lim.Budget)
	} else {
		d.ReplyText = reply.Text(m.Text, lim.Budget)
	}
	if d.Truncated = lim.Budget.Spent(); d.Truncated {
		d.Extracted.OTP, d.Extracted.ActionLink = nil, nil
	}
	return d
}
