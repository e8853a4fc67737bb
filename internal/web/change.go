package web

import (
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"slices"
	"strings"

	"github.com/postroom/postroom/gen"
)

// maxSeen is how many bytes of a draft's text a form keeps for comparison. For a
// longer text it keeps a hash.
const maxSeen = 8 << 10

// maxCompared is the maximum number of lines to compare.
const maxCompared = 300

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

// Gone reports whether the line was removed.
func (l lineChange) Gone() bool { return l.Mark == "−" }

// New reports whether the line was added.
func (l lineChange) New() bool { return l.Mark == "+" }

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

// compareLines compares two texts by their longest common subsequence of lines.
// It returns nil if they are too long.
func compareLines(before, now string) []lineChange {
	a, b := strings.Split(before, "\n"), strings.Split(now, "\n")
	if len(a) > maxCompared || len(b) > maxCompared {
		return nil
	}
	common := make([][]int, len(a)+1) // of a[i:] and b[j:]
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i, v := range slices.Backward(a) {
		for j := len(b) - 1; j >= 0; j-- {
			if v == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	var out []lineChange
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			out = append(out, lineChange{" ", a[i]})
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			out = append(out, lineChange{"−", a[i]})
			i++
		default:
			out = append(out, lineChange{"+", b[j]})
			j++
		}
	}
	return out
}
