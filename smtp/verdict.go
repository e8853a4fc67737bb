package smtp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"github.com/postroom/postroom/internal/netguard"
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
func said(r response, taken store.RecipientStatus) verdict {
	v := verdict{status: store.RecipientQueued, response: r.String()}
	switch {
	case r.positive():
		v.status = taken
	case r.permanent():
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

// fault is why a server could not be used. It says nothing about a recipient.
type fault struct {
	permanent bool
	response  string
	err       error // for the log
}

// faultOf puts into words, for those who wait for their mail, why e was not
// used. Addresses and our own errors are for the log alone.
func faultOf(ctx context.Context, e endpoint, err error) fault {
	who := e.name()
	if e.trusted {
		who = "The relay"
	}
	f := fault{err: err}
	if said, ok := errors.AsType[*responseError](err); ok {
		f.permanent, f.response = said.permanent(), said.String()
		return f
	}
	if errors.Is(err, errAuth) {
		f.response = "451 4.7.0 " + who + " does not accept our credentials"
		return f
	}
	if errors.Is(err, netguard.ErrRefused) {
		f.permanent = true
		f.response = fmt.Sprintf("550 5.4.4 %s has an address that mail is not sent to", who)
		return f
	}
	f.response = fmt.Sprintf("451 4.4.1 %s: %s", who, describe(ctx, err))
	return f
}

// describe names the usual ways in which a connection fails.
func describe(ctx context.Context, err error) string {
	_, noTLS := errors.AsType[*tlsError](err)
	switch {
	case errors.Is(err, errNoDomain):
		return "no such host"
	case errors.Is(err, errNoTLS):
		return "no TLS"
	case errors.Is(err, errGarbled):
		return "answer is not SMTP"
	case errors.Is(ctx.Err(), context.DeadlineExceeded), isTimeout(err):
		return "timed out"
	case noTLS:
		return "TLS failed"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "unreachable"
	}
	return "connection lost"
}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout() || errors.Is(err, os.ErrDeadlineExceeded)
}

// verdictOf is what the faults of all the servers mean for a recipient: it is
// given up only when none of them may be better later.
func verdictOf(faults []fault) verdict {
	v := verdict{status: store.RecipientQueued, response: "451 4.4.1 No server could be reached"}
	for i, f := range faults {
		if i == 0 || !f.permanent {
			v.response = f.response
		}
		if !f.permanent {
			return v
		}
	}
	if len(faults) > 0 {
		v.status = store.RecipientBounced
	}
	return v
}
