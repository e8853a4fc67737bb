package web

import (
	"net/url"

	"github.com/postroom/postroom/gen"
)

// listSize is how many rows a page of a list shows.
const listSize = 50

// paging is where the rows before and after those of a page are.
type paging struct {
	First string // address of the first page; empty on it
	Next  string // address of the next page; empty on the last
}

// limit is how many rows to ask the API for.
func limit() gen.OptInt { return gen.NewOptInt(listSize) }

// cursor is where the rows of this page begin.
func (p *page) cursor() gen.OptString { return optional(p.r.URL.Query().Get("cursor")) }

// paging returns where to go on from here, with the same filters.
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

// optional is a parameter that is not sent when it is empty.
func optional(s string) gen.OptString {
	if s == "" {
		return gen.OptString{}
	}
	return gen.NewOptString(s)
}

// tone is how good or bad a state is, as the pages colour it.
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
