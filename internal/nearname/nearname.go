// Package nearname finds the name that a misspelled name was probably meant to
// be: of a setting, a command, a field or a parameter.
package nearname

import "strings"

const (
	// maxDistance is the largest edit distance at which names are similar.
	maxDistance = 3
	// maxLength limits the names that are compared, since the time grows with
	// the product of the lengths. No known name is longer.
	maxLength = 64
)

// sameForm makes names equal that differ only in how they join words:
// scheduledAt, scheduled_at and scheduled-at.
var sameForm = strings.NewReplacer("_", "", "-", "")

// Nearest returns the most similar of names, or "" if none is similar. Of equally
// similar names it returns the first.
func Nearest(name string, names []string) string {
	if len(name) > maxLength {
		return ""
	}
	best, least := "", maxDistance+1
	name = sameForm.Replace(strings.ToLower(name))
	for _, n := range names {
		form := sameForm.Replace(strings.ToLower(n))
		if d := distance(name, form); d < least && 2*d <= len(form) {
			best, least = n, d
		}
	}
	return best
}

// Hint returns ": did you mean X?" for the most similar of names, or "" if none
// is similar.
func Hint(name string, names []string) string {
	if near := Nearest(name, names); near != "" {
		return ": did you mean " + near + "?"
	}
	return ""
}

// distance returns the edit distance of a and b: letters to insert, delete,
// replace or swap with a neighbour.
func distance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := last[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(change, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
