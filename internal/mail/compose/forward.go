package compose

import (
	"html"
	"strings"
	"time"

	nethtml "golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/plaintext"
)

// ForwardedHeader holds the header fields of the original that a forward shows.
type ForwardedHeader struct {
	From    mail.Address
	To, Cc  []mail.Address
	Date    time.Time
	Subject string
}

// forwardMark marks the start of the original for mail clients.
const forwardMark = "---------- Forwarded message ---------"

// ForwardText returns the text of a forward: the note, then the original.
func ForwardText(note string, h ForwardedHeader, text string) string {
	var b strings.Builder
	if note = strings.TrimRight(note, "\r\n"); note != "" {
		b.WriteString(note + "\n\n")
	}
	b.WriteString(forwardMark + "\n")
	for _, l := range h.lines() {
		b.WriteString(l[0] + ": " + l[1] + "\n")
	}
	b.WriteString("\n" + text)
	return b.String()
}

// ForwardHTML returns the HTML of a forward: the note, which is HTML, then the
// original. It escapes the original's header fields. It strips the original's
// html, head and body tags, but keeps its styles.
func ForwardHTML(note string, h ForwardedHeader, original string) string {
	var b strings.Builder
	if note != "" {
		b.WriteString(innerHTML(note) + "<br>\n")
	}
	b.WriteString("<div class=\"forwarded\">\n<div>" + forwardMark + "<br>\n")
	for _, l := range h.lines() {
		b.WriteString("<b>" + l[0] + ":</b> " + html.EscapeString(l[1]) + "<br>\n")
	}
	b.WriteString("</div>\n<br>\n<div>" + innerHTML(original) + "</div>\n</div>\n")
	return b.String()
}

// lines returns the names and values of the fields that are set.
func (h *ForwardedHeader) lines() [][2]string {
	lines := [][2]string{{"From", showAddress(h.From)}}
	if !h.Date.IsZero() {
		lines = append(lines, [2]string{"Date", h.Date.UTC().Format("Mon, 2 Jan 2006 15:04:05 -0700")})
	}
	lines = append(lines, [2]string{"Subject", plaintext.OneLine(h.Subject)})
	if len(h.To) > 0 {
		lines = append(lines, [2]string{"To", showAddresses(h.To)})
	}
	if len(h.Cc) > 0 {
		lines = append(lines, [2]string{"Cc", showAddresses(h.Cc)})
	}
	return lines
}

func showAddresses(list []mail.Address) string {
	shown := make([]string, len(list))
	for i, a := range list {
		shown[i] = showAddress(a)
	}
	return strings.Join(shown, ", ")
}

// showAddress formats an address for display.
func showAddress(a mail.Address) string {
	if a.Name == "" {
		return plaintext.OneLine(a.Email)
	}
	if a.Email == "" {
		return plaintext.OneLine(a.Name)
	}
	return plaintext.OneLine(a.Name + " <" + a.Email + ">")
}

// innerHTML returns the content of a document for use inside another: without
// html, head and body tags, titles and scripts, but with its styles.
func innerHTML(doc string) string {
	z := nethtml.NewTokenizer(strings.NewReader(doc))
	var b strings.Builder
	skip := atom.Atom(0) // the element whose text is skipped
	for {
		switch token := z.Next(); token {
		case nethtml.ErrorToken:
			return strings.TrimSpace(b.String())
		case nethtml.DoctypeToken:
		case nethtml.TextToken, nethtml.CommentToken:
			if skip == 0 {
				b.Write(z.Raw())
			}
		default:
			raw := string(z.Raw())
			name, _ := z.TagName()
			switch tag := atom.Lookup(name); tag {
			case atom.Html, atom.Head, atom.Body, atom.Meta, atom.Base, atom.Link:
			case atom.Title, atom.Script:
				skip = 0
				if token == nethtml.StartTagToken {
					skip = tag
				}
			default:
				b.WriteString(raw)
			}
		}
	}
}
