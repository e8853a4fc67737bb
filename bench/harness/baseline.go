package harness

import (
	"io"
	"net"

	"github.com/emersion/go-smtp"
)

// ServeBaseline accepts messages from l and discards them, until l is closed: go-smtp with
// nothing behind it. Its rate is what an SMTP server in Go can reach if it does nothing
// else, so the rate of a real server is best expressed as a share of it, measured in the
// same run.
func ServeBaseline(l net.Listener) error {
	s := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return discard{}, nil }))
	s.Domain = "baseline.localhost"
	s.MaxRecipients = 100
	s.MaxMessageBytes = 25 << 20
	return s.Serve(l)
}

type discard struct{}

// Mail implements smtp.Session.
func (discard) Mail(string, *smtp.MailOptions) error { return nil }

// Rcpt implements smtp.Session.
func (discard) Rcpt(string, *smtp.RcptOptions) error { return nil }

// Data implements smtp.Session.
func (discard) Data(r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	return err
}

// Reset implements smtp.Session.
func (discard) Reset() {}

// Logout implements smtp.Session.
func (discard) Logout() error { return nil }
