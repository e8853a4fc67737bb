// Package htmltext converts the HTML of a message to its visible text and
// links. It reads the tags in one pass without building a tree, so deep nesting
// costs no extra time.
package htmltext

import (
	"strings"

	"github.com/postroom/postroom/internal/mail"
)

// Text returns HTML as plain text, for use as the text/plain alternative. It
// leaves out hidden text, adds the target of each link in angle brackets, and
// marks quotations with ">".
func Text(html string) string {
	return Read(html, mail.DefaultLimits().Links, WithTargets, nil).Targets()
}

// Plain returns the text with spaces instead of tabs between table cells.
func (p *Page) Plain() string { return untabbed(p.Text) }

// Targets is Plain with the targets of the links, if Read was asked for them.
func (p *Page) Targets() string { return untabbed(p.targets) }

// Marked is Plain with the marker lines, if Read was asked for them.
func (p *Page) Marked() string { return untabbed(p.marked) }

func untabbed(text []byte) string { return strings.ReplaceAll(string(text), "\t", " ") }
