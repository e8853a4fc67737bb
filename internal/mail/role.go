package mail

import "slices"

// roles are local parts that belong to the operator by convention (RFC 2142).
var roles = []string{
	"postmaster", "abuse", "mailer-daemon", "hostmaster", "noreply", "no-reply", "admin", "root", "security", "webmaster",
}

// IsRole reports whether a local part, in lower case, belongs to the operator of a
// domain. No program may have it: certificate authorities, for example, write to
// these addresses to check who owns a domain.
func IsRole(local string) bool { return slices.Contains(roles, local) }
