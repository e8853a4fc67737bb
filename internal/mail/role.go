package mail

import "slices"

// Local parts that are not for the inboxes of programs.
var (
	// roles belong to the operator of every domain (RFC 2142), or to the return paths of
	// this service. Certificate authorities write to some of them to check who controls a
	// domain.
	roles = []string{
		"postmaster", "abuse", "mailer-daemon", "hostmaster", "noreply", NoticeName, "admin", "root", "security", "webmaster", "bounce",
		"administrator", "ssladmin", "ssladministrator", "sslwebmaster",
	}
	// services belong to the operator of the domain that all accounts share.
	services = []string{"mailerdaemon", "bounces", "dmarc", "tlsrpt", "tls-reports", "noc", "dns"}
	// contacts speak for the whole installation on the domain that all accounts share.
	contacts = []string{"is", "it", "mis", "info", "support"}
)

// NoticeName is the local part of the address that the service sends its notices from,
// on the domain that all accounts share.
const NoticeName = "no-reply"

// IsRole reports whether a local part, in lower case, belongs to the operator of a
// domain, whichever it is. No program may have it.
func IsRole(local string) bool { return slices.Contains(roles, local) }

// Reservation is who may give a local part to an inbox, besides the operator.
type Reservation int

const (
	// Free local parts are for everyone.
	Free Reservation = iota
	// ForFirstAccount is for the admins of the installation's first account.
	ForFirstAccount
	// ForOperator is for the operator alone.
	ForOperator
)

// Reserved returns who may have a local part, in lower case. shared says whether the
// domain is the one that all accounts share.
func Reserved(local string, shared bool) Reservation {
	switch {
	case IsRole(local), shared && slices.Contains(services, local):
		return ForOperator
	case shared && slices.Contains(contacts, local):
		return ForFirstAccount
	}
	return Free
}
