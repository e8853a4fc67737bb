package web

import (
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"strings"

	"github.com/postroom/postroom/gen"
)

// maxSeen is how many bytes of a draft's text a form keeps for comparison. For a
// longer text it keeps a hash.
const maxSeen = 8 << 10

// seen returns what a form keeps of a text that the user saw.
func seen(s string) string {
	s = unixLines(s)
	if len(s) <= maxSeen {
		return "=" + s
	}
	sum := sha256.Sum256([]byte(s))
	return "#" + base64.RawURLEncoding.EncodeToString(sum[:])
}

// change is the change of one part of a draft.
type change struct {
	Field string
	Lines []lineChange // nil if the old text is not known
}

// lineChange is a removed, added or unchanged line.
type lineChange struct {
	Mark string // "−", "+" or " "
	Text string
}

// changesSince returns the changes of a draft since the form was shown.
func changesSince(form url.Values, dr *gen.Draft) []change {
	var out []change
	for _, f := range []struct{ name, title, now string }{
		{"seen_subject", "Subject", dr.Subject}, {"seen_text", "Text", dr.Text.Or("")}, {"seen_html", "HTML", dr.HTML.Or("")},
	} {
		was := unixLines(form.Get(f.name))
		if was == "" || was == seen(f.now) {
			continue
		}
		c := change{Field: f.title}
		if before, kept := strings.CutPrefix(was, "="); kept {
			c.Lines = compareLines(before, unixLines(f.now))
		}
		out = append(out, c)
	}
	return out
}

// compareLines compares two texts: it returns the lines from the first to the last one that
// differs, with a line before and after them.
func compareLines(before, now string) []lineChange {
	a, b := strings.Split(before, "\n"), strings.Split(now, "\n")
	same, ends := 0, 0
	for same < min(len(a), len(b)) && a[same] == b[same] {
		same++
	}
	for ends < min(len(a), len(b))-same && a[len(a)-1-ends] == b[len(b)-1-ends] {
		ends++
	}
	var out []lineChange
	add := func(mark string, lines []string) {
		for _, line := range lines {
			out = append(out, lineChange{mark, line})
		}
	}
	add(" ", a[max(0, same-1):same])
	add("−", a[same:len(a)-ends])
	add("+", b[same:len(b)-ends])
	add(" ", a[len(a)-ends:min(len(a), len(a)-ends+1)])
	return out
}
