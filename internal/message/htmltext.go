package message

import "strings"

// HTMLToText returns an HTML mail as plain text, to stand as text/plain beside
// it: what is hidden is left out, each link's address follows its words in
// angle brackets, and quotations are marked with ">".
func HTMLToText(html string) string {
	return plainCells(readPage(html, DefaultLimits().Links, withTargets, nil).text)
}

// HTMLVisibleText is HTMLToText without the addresses of links: what a reader
// sees, for snippets and searches and to find the new part of a reply.
func HTMLVisibleText(html string) string {
	return plainCells(readPage(html, 0, onlySeen, nil).text)
}

func plainCells(text []byte) string {
	return strings.ReplaceAll(string(text), "\t", " ")
}
