package smtp

import "github.com/postroom/postroom/store"

// SuppressedMail returns which mail is suppressed after a hard bounce with this
// enhanced code. An address in a domain that does not exist (5.1.2) or has no
// mail server (5.1.10) is suppressed for emails only: the domain may be new, and
// an inbox may still send to it.
func SuppressedMail(enhanced string) store.SuppressionCategory {
	if enhanced == "5.1.2" || enhanced == "5.1.10" {
		return store.SuppressEmails
	}
	return store.SuppressAll
}
