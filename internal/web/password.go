package web

import (
	"fmt"
	"unicode/utf8"
)

// Bounds on the length of a password, in characters.
const (
	shortestPassword = 12
	longestPassword  = 200
)

// newPassword returns the hash of the new password of a form, which has it twice. The error
// may be the problem of a field.
func (p *page) newPassword() (string, error) {
	password := p.form.Get("password")
	switch n := utf8.RuneCountInString(password); {
	case n < shortestPassword:
		return "", fieldProblem("password", fmt.Sprintf("Use at least %d characters.", shortestPassword))
	case n > longestPassword:
		return "", fieldProblem("password", fmt.Sprintf("Use at most %d characters.", longestPassword))
	case password != p.form.Get("again"):
		return "", fieldProblem("again", "The passwords do not match.")
	}
	return p.d.passwords.Hash(p.ctx(), password)
}
