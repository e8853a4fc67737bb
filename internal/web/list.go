package web

import (
	"net/url"

	"github.com/postroom/postroom/gen"
)

// listSize is the number of rows on a list page.
const listSize = 50

// paging holds the links to the other pages of a list.
type paging struct {
	First string // first page; empty on the first page
	Next  string // next page; empty on the last page
}

// limit is the page size for API calls.
func limit() gen.OptInt { return gen.NewOptInt(listSize) }

// cursor is the cursor of the current page.
func (p *page) cursor() gen.OptString { return optional(p.r.URL.Query().Get("cursor")) }

// paging returns the links to the other pages, with the same filters.
func (p *page) paging(next gen.NilString) paging {
	var to paging
	q := p.r.URL.Query()
	at := func() string { return (&url.URL{Path: p.r.URL.Path, RawQuery: q.Encode()}).String() }
	if q.Get("cursor") != "" {
		q.Del("cursor")
		to.First = at()
	}
	if !next.Null && next.Value != "" {
		q.Set("cursor", next.Value)
		to.Next = at()
	}
	return to
}

// optional returns a parameter that is left out when empty.
func optional(s string) gen.OptString {
	if s == "" {
		return gen.OptString{}
	}
	return gen.NewOptString(s)
}

// tone returns the colour class of a status.
func tone(status string) string {
	switch status {
	case "delivered", "opened", "clicked", "verified", "succeeded", "active", "pass":
		return "good"
	case "scheduled", "pending", "delayed", "suppressed", "softfail", "temperror", "suspended", "expired":
		return "warn"
	case "bounced", "complained", "failed", "missing", "off", "fail", "permerror", "rejected":
		return "bad"
	}
	return ""
}
