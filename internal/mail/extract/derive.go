package extract

import (
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/calendar"
	"github.com/postroom/postroom/internal/mail/htmltext"
	"github.com/postroom/postroom/internal/mail/mime"
	"github.com/postroom/postroom/internal/mail/plaintext"
	"github.com/postroom/postroom/internal/mail/reply"
	"github.com/postroom/postroom/internal/mail/safety"
)

// Derived holds the values derived from a message for display.
type Derived struct {
	Text      string // the plain text, or the text of the HTML if there is no plain text
	FromHTML  bool   // Text was made from the HTML
	ReplyText string // the new part of Text, see [reply.Text]
	Snippet   string // the beginning of the visible text
	Extracted mail.Extraction
	// Safety holds the facts of the content; the sender is not read yet.
	Safety mail.Safety
	// Truncated reports that lim.Budget ran out, or that an invitation has too many
	// attendees. In the first case, the other fields hold
	// what was found so far: ReplyText may contain quoted text. OTP and
	// ActionLink are nil, because the rest may contain a better one.
	Truncated bool
}

// Derive returns the values derived from a message. Call it once, when the
// message is received.
func Derive(m *mime.Message, lim mail.Limits) Derived {
	d := Derived{Text: m.Text, FromHTML: m.Text == "" && m.HTML != ""}
	var seen *htmltext.Page
	d.Extracted, seen = trained().extract(m.Subject, m.Text, m.HTML, lim)
	if d.Snippet = plaintext.Snippet(m.Text); d.Snippet == "" && seen != nil {
		d.Snippet = plaintext.Snippet(seen.Plain())
	}
	d.Safety = safety.Read(m, seen)
	if d.FromHTML {
		d.Text = plaintext.Visible(seen.Targets())
		d.ReplyText = plaintext.Visible(reply.TextOfPage(seen, lim.Budget))
	} else {
		d.ReplyText = reply.Text(m.Text, lim.Budget)
	}
	var cut bool
	if m.Calendar != "" {
		d.Extracted.Calendar, cut = calendar.Read(m.Calendar)
	}
	if d.Truncated = lim.Budget.Spent(); d.Truncated {
		d.Extracted.OTP, d.Extracted.ActionLink = nil, nil
	}
	d.Truncated = d.Truncated || cut
	return d
}
