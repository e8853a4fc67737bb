package queue

import (
	"github.com/postroom/postroom/smtp/outbound"
	"github.com/postroom/postroom/store"
)

// verdict is what came of one attempt for one recipient.
type verdict struct {
	// status is RecipientQueued when it failed for now.
	status   store.RecipientStatus
	response string
	// recorded means that the transaction that received the mail has stored it
	// already, or that it must not be stored.
	recorded bool
	// untried means that the attempt was given up before anything was learnt:
	// it can be made again at once.
	untried bool
	// own means that it is the word of our own receive path.
	own bool
}

// said is the verdict of a server's answer; taken is the status that a positive
// one means.
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

// Verdicts of our own, in the words of SMTP (RFC 3463).
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

// all gives each of n recipients the same verdict.
func all(n int, v verdict) []verdict {
	vs := make([]verdict, n)
	for i := range vs {
		vs[i] = v
	}
	return vs
}

// verdictOf is what the faults of all the servers mean for a recipient: it is
// given up only when none of them may be better later.
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
