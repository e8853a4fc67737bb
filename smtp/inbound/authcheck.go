package inbound

import (
	"context"
	"fmt"
	"io"
	"net/netip"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mailauth"
	"github.com/postroom/postroom/smtp"
	"github.com/postroom/postroom/store"
)

// authCheck is the SPF, DKIM and DMARC check of one message. A nil authCheck
// means that the message is not checked.
type authCheck struct {
	check *mailauth.Check
	env   mailauth.Envelope
	begun bool // check has read the message
}

// startAuthCheck starts to authenticate a message. It returns nil for a message
// of our own queue, whose sender the API has checked.
func (r *Receiver) startAuthCheck(ctx context.Context, env smtp.Envelope) *authCheck {
	client, err := netip.ParseAddr(env.RemoteAddr)
	if r.cfg.Auth == nil || err != nil {
		return nil
	}
	e := mailauth.Envelope{Client: client, HELO: env.HELO, MailFrom: env.MailFrom}
	return &authCheck{check: r.cfg.Auth.Start(ctx, e), env: e}
}

// read passes the message to the check, once. Its errors are those of mime.Parse.
func (c *authCheck) read(whole io.ReadSeeker, lim mail.Limits) error {
	if c == nil || c.begun {
		return nil
	}
	c.begun = true
	if _, err := whole.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read the message: %w", err)
	}
	return c.check.Read(whole, lim)
}

// wait waits for the results. The check has a time limit of its own.
func (c *authCheck) wait() {
	if c != nil {
		c.check.Wait()
	}
}

// author waits for the results and returns the domain of the From address, in lower
// case and as A-labels, if DMARC passes, or "".
func (c *authCheck) author() string {
	if c == nil {
		return ""
	}
	if v := c.check.Wait(); v.DMARC.Result == mailauth.Pass {
		return v.DMARC.Domain
	}
	return ""
}

func (c *authCheck) stop() {
	if c != nil {
		c.check.Stop()
	}
}

// authenticated waits for the results of a message from outside, and returns them. They are
// nil if it is not checked. For a message of our own queue, which has checked that the
// account may use the address, the result is that account.
func (r *Receiver) authenticated(ctx context.Context, env smtp.Envelope, c *authCheck) (*store.JSON[mail.AuthResult], error) {
	if env.Account != 0 {
		id, err := r.cfg.Store.PublicAccountID(ctx, env.Account)
		return &store.JSON[mail.AuthResult]{V: mail.AuthResult{SPF: "none", DKIM: "none", DMARC: "none", Internal: "pass", Account: id}}, err
	}
	var none *store.JSON[mail.AuthResult]
	if c == nil {
		return none, nil
	}
	v := c.check.Wait()
	if v.Fault != nil { // the message is stored nevertheless
		r.cfg.Log.ErrorContext(ctx, "message not authenticated", "error", v.Fault)
	}
	return &store.JSON[mail.AuthResult]{V: mail.AuthResult{
		SPF: string(v.SPF.Result), DKIM: string(v.Signed()), DMARC: string(v.DMARC.Result), Field: v.Field(r.cfg.Hostname, c.env),
	}}, nil
}
