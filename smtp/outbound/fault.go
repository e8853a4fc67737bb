package outbound

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"github.com/postroom/postroom/internal/netguard"
)

// Fault explains why a server could not be used. It does not concern a recipient.
type Fault struct {
	Permanent bool
	Response  string
	Err       error // for the log
}

// FaultOf describes for senders why e could not be used. Addresses and our own
// errors appear only in Err, which is logged.
func FaultOf(ctx context.Context, e Endpoint, err error) *Fault {
	who := e.Name()
	if e.Trusted {
		who = "The relay"
	}
	said, replied := errors.AsType[*ResponseError](err)
	switch {
	case replied:
		return &Fault{said.Permanent(), said.String(), err}
	case errors.Is(err, ErrAuth):
		return &Fault{false, "451 4.7.0 " + who + " does not accept our credentials", err}
	case errors.Is(err, netguard.ErrRefused):
		return &Fault{true, fmt.Sprintf("550 5.4.4 %s has an address that mail is not sent to", who), err}
	}
	return &Fault{false, fmt.Sprintf("451 4.4.1 %s: %s", who, describe(ctx, err)), err}
}

// describe describes common connection errors.
func describe(ctx context.Context, err error) string {
	_, noTLS := errors.AsType[*TLSError](err)
	switch {
	case errors.Is(err, ErrNoDomain):
		return "no such host"
	case errors.Is(err, ErrNoTLS):
		return "no TLS"
	case errors.Is(err, errGarbled):
		return "the reply is not SMTP"
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded), isTimeout(err):
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

// NeverLeft reports whether a connection failed locally, for example over IPv6
// without IPv6 connectivity. This costs no time and does not count as a try.
func NeverLeft(err error) bool {
	return errors.Is(err, netguard.ErrRefused) || errors.Is(err, syscall.ENETUNREACH) ||
		errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT)
}
