package inbound

import (
	"context"
	"net/netip"
	"testing"

	"github.com/postroom/postroom/internal/spool"
	"github.com/postroom/postroom/smtp"
)

// port is a kind of SMTP port.
type port struct {
	name string
	kind func(*ServerConfig) // makes a server of this kind
	// no is a recipient that the port refuses, and noCode the code of the refusal.
	no, noCode string
	submits    bool
}

// ports are the port for receiving, and that for submission. The latter delivers what
// is submitted as the former does, so that tests see what a submission contains. Its
// clients need not log in.
var ports = []port{
	{name: "receiving", kind: func(*ServerConfig) {}, no: "missing@in.example", noCode: "550"},
	{name: "submission", kind: submitsToReceiver, no: "nowhere", noCode: "501", submits: true},
}

// onPorts runs a test on both kinds of ports.
func onPorts(t *testing.T, test func(t *testing.T, p port)) {
	t.Helper()
	for _, p := range ports {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			test(t, p)
		})
	}
}

func submitsToReceiver(c *ServerConfig) {
	c.Submission = &Submission{
		Anonymous: func(ctx context.Context, env smtp.Envelope, raw *spool.Spool) (string, error) {
			_, err := c.Receiver.Receive(ctx, env, raw)
			return "Message stored", err
		},
		Login: func(context.Context, string, netip.Addr) (Submit, error) { return c.Submission.Anonymous, nil },
	}
}

// submitsToKeeper makes a server for submission hand its mail to k.
func submitsToKeeper(c *ServerConfig, k *keeper) {
	c.Submission.Anonymous = func(ctx context.Context, env smtp.Envelope, raw *spool.Spool) (string, error) {
		to := make([]target, len(env.RcptTo))
		_, err := k.deliver(ctx, env, to, raw, nil)
		return "Message stored", err
	}
}
