package queue

import (
	"errors"
	"slices"

	"github.com/postroom/postroom/internal/netguard"
	"github.com/postroom/postroom/smtp/outbound"
	"github.com/postroom/postroom/store"
)

// result is what one attempt returned for one recipient.
type result struct {
	// status is RecipientQueued after a transient failure.
	status   store.RecipientStatus
	response string
	// recorded means that the receiving transaction has already stored the
	// result, or that it must not be stored.
	recorded bool
	// untried means that the attempt was cancelled before it had a result. It can
	// be repeated at once.
	untried bool
	// own means that we decided, not a server of others.
	own bool
}

// said returns the result for a server's reply; taken is the status for a
// positive reply.
func said(r outbound.Response, taken store.RecipientStatus) result {
	v := result{status: store.RecipientQueued, response: r.String()}
	switch {
	case r.Positive():
		v.status = taken
	case r.Permanent():
		v.status = store.RecipientBounced
	}
	return v
}

// Results of our own, in SMTP form (RFC 3463).
var (
	resultLocal    = result{status: store.RecipientQueued, response: "451 4.3.0 Local error, will be tried again"}
	resultGone     = result{status: store.RecipientFailed, response: "554 5.6.0 The content of the message is deleted"}
	resultNoUTF8   = result{status: store.RecipientBounced, response: "553 5.6.7 The receiving server does not take addresses outside ASCII", own: true}
	resultAddress  = result{status: store.RecipientBounced, response: "553 5.1.3 Not an address that mail can be sent to"}
	resultNotYours = result{status: store.RecipientFailed, response: "550 5.7.1 The sender's domain is not verified for its account"}
	resultNoInbox  = result{status: store.RecipientBounced, response: "550 5.1.1 No such inbox here", own: true}
	resultUntried  = result{status: store.RecipientQueued, untried: true}
	resultLost     = result{recorded: true}

	resultSuppressed = result{status: store.RecipientSuppressed, response: "Suppressed: the address is on the suppression list"}
)

func all(n int, v result) []result {
	return slices.Repeat([]result{v}, n)
}

// resultOf combines the faults of all servers into a result. It is permanent
// only if all faults are, and our own if we refused to connect to each.
func resultOf(faults []outbound.Fault) result {
	v := result{status: store.RecipientQueued, response: "451 4.4.1 No server could be reached", own: len(faults) > 0}
	for i, f := range faults {
		v.own = v.own && errors.Is(f.Err, netguard.ErrRefused)
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
