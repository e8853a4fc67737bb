package outbound

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/lineartest"
)

// linearReaders reads mail that is sent, and what servers reply. Of a reply, no more is
// read than the limits allow; its readers get all of the text nevertheless.
func linearReaders() []lineartest.Reader {
	reply := []string{"a", " ", "\x80", "5.1.1 ", "250-a\r\n", "\r\n", lineartest.Letter}
	return []lineartest.Reader{
		{Name: "DotWriter.Write", Units: []string{"\r", "\n", ".", "a", "\r\n."}, Read: func(m string) {
			d := DotWriter{W: bufio.NewWriter(io.Discard)}
			_, _ = d.Write([]byte(m)) // io.Discard cannot fail
		}},
		{Name: "Response.String read", Units: reply, Read: func(m string) {
			if r, err := readResponse(bufio.NewReaderSize(strings.NewReader("250-"+m+"\r\n"), len(m)+8)); err == nil {
				_ = r.String()
			}
		}},
		{Name: "Response.String", Units: reply, Read: func(m string) { _ = Response{Code: 550, lines: strings.Split(m, "\n")}.String() }},
		{Name: "FaultOf", Units: reply, Read: func(m string) {
			FaultOf(context.Background(), Endpoint{}, &ResponseError{Response{Code: 550, lines: []string{m}}})
		}},
		{Name: "Peer.MaxTransactions", Units: []string{" ", "a", "MAILMAX=", "1", ","}, Read: func(m string) {
			(&Peer{ext: map[string]string{"LIMITS": m}}).MaxTransactions(1)
		}},
	}
}

func TestReadersAreLinear(t *testing.T) { lineartest.Check(t, linearReaders()) }

func TestLinearReadersAreComplete(t *testing.T) {
	t.Parallel()
	const (
		settings = "takes settings"
		bounded  = "reads replies, whose lines and number the limits bound"
		domain   = "takes a domain, which is checked first"
		peers    = "keeps connections"
		compares = "compares a code or a name"
		formats  = "formats what Response.String reads"
	)
	lineartest.Complete(t, linearReaders(), map[string]string{
		"NewDirectory": settings, "NewPolicies": settings, "NewProber": settings, "NewResolver": settings, "ParseRelay": settings, "Timeouts.OrDefault": settings,
		"Relay.String": settings, "Relay.Loopback": settings, "Endpoint.Name": settings, "Endpoint.String": settings,
		"Dialer.Dial": bounded, "Peer.Envelope": bounded, "Peer.Data": bounded, "Peer.Reset": bounded,
		"Prober.Domain": bounded, "Prober.Host": bounded, "Prober.Relay": bounded,
		"Directory.Hosts": domain, "Directory.Addresses": domain, "Policies.Of": domain,
		"Pool.Take": peers, "Pool.Put": peers, "Pool.Close": peers,
		"Peer.Offers": compares, "Peer.Unmet": compares, "Response.Positive": compares, "Response.Permanent": compares, "NeverLeft": compares,
		"ResponseError.Error": formats, "ProbeError.Error": formats, "ProbeError.Unwrap": formats, "TLSError.Error": formats, "TLSError.Unwrap": formats,
		"DotWriter.End": "writes the last line",
	})
}
