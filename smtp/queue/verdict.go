package queue

import (
	"github.com/postroom/postroom/smtp/outbound"
	"github.com/postroom/postroom/store"
)

// verdict is the result of one attempt for one recipient.
type verdict struct {
	// status is RecipientQueued after a transient failure.
	status   store.RecipientStatus
	response string
	// recorded means that the receiving transaction has already stored the
	// result, or that it must not be stored.
	recorded bool
	// untried means that the attempt was cancelled before it had a result. It can
	// be repeated at once.
	untried bool
	// own means that our own receive path decided.
	own bool
}

// said returns the verdict for a server's reply; taken is the status for a
// positive reply.
func said(r outbound.Response, taken store.RecipientStatus) verdict {
	v := verdict{status: store.RecipientQueued, response: r.String()}
	switch {
	case r.Positive():
		v.status = taken
	case r.Permanent():
		v.status = store.RecipientBounced
	}
	return v
}

// Verdicts of our own, in SMTP form (RFC 3463).
var (
	verdictLocal    = verdict{status: store.RecipientQueued, response: "451 4.3.0 Local error, will be tried again"}
	verdictGone     = verdict{status: store.RecipientFailed, response: "554 5.6.0 The content of the message is deleted"}
	verdictNoUTF8   = verdict{status: store.RecipientBounced, response: "553 5.6.7 The receiving server does not take addresses outside ASCII"}
	verdictAddress  = verdict{status: store.RecipientBounced, response: "553 5.1.3 Not an address that mail can be sent to"}
	verdictNotYours = verdict{status: store.RecipientFailed, response: "550 5.7.1 The sender's domain is not verified for its account"}
	verdictNoInbox  = verdict{status: store.RecipientBounced, response: "550 5.1.1 No such inbox here", own: true}
	verdictUntried  = verdict{status: store.RecipientQueued, untried: true}
	verdictLost     = verdict{recorded: true}

	verdictSuppressed = verdict{status: store.RecipientSuppressed, response: "Suppressed: the address is on the suppression list"}
)

// all returns n copies of a verdict.
func all(n int, v verdict) []verdict {
	vs := make([]verdict, n)
	for i := range vs {
		vs[i] = v
	}
	return vs
}

// verdictOf combines the faults of all servers into a verdict. It is permanent
// only if all faults are.
func verdictOf(faults []outbound.Fault) verdict {
	v := verdict{status: store.RecipientQueued, response: "451 4.4.1 No server could be reached"}
	for i, f := range faults {
		if i == 0 || !f.Permanent {
			v.response = f.Response
		}
		if !f.Permanent {
			return v
		}
	}
	if len(faults) > 0 {
		v.status = store.RecipientBounced
	}
	return v
}
