// Package htmltext converts the HTML of a message to the text and the links that a
// reader sees. It reads the tags in one pass and builds no tree, so deep nesting
// costs no more than length.
package htmltext

import (
	"strings"

	"github.com/postroom/postroom/internal/mail"
)

// Text returns an HTML mail as plain text, to stand as text/plain beside
// it: what is hidden is left out, each link's address follows its words in
// angle brackets, and quotations are marked with ">".
func Text(html string) string {
	return Read(html, mail.DefaultLimits().Links, WithTargets, nil).Plain()
}

// VisibleText is Text without the addresses of links: what a reader
// sees, for snippets and searches and to find the new part of a reply.
func VisibleText(html string) string {
	return Read(html, 0, OnlyVisible, nil).Plain()
}

// Plain returns the text with spaces between the cells of tables.
func (p *Page) Plain() string { return strings.ReplaceAll(string(p.Text), "\t", " ") }
