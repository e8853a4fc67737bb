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

// authenticated returns the authentication results of a message: of the checks for
// a message from outside, and the sending account for one of our own queue, where
// the queue has checked that the account may use the address.
func (r *Receiver) authenticated(ctx context.Context, env smtp.Envelope, c *authCheck) (*store.JSON[mail.AuthResult], error) {
	if env.Account == 0 {
		return r.authResults(ctx, c), nil
	}
	id, err := r.cfg.Store.PublicAccountID(ctx, env.Account)
	if err != nil {
		return nil, err
	}
	return &store.JSON[mail.AuthResult]{V: mail.AuthResult{SPF: "none", DKIM: "none", DMARC: "none", Internal: "pass", Account: id}}, nil
}

// authResults waits for the results and returns them, or nil if the message is not
// checked. A fault of the check is logged; the message is stored nevertheless.
func (r *Receiver) authResults(ctx context.Context, c *authCheck) *store.JSON[mail.AuthResult] {
	if c == nil {
		return nil
	}
	v := c.check.Wait()
	if v.Fault != nil {
		r.cfg.Log.ErrorContext(ctx, "message not authenticated", "error", v.Fault)
	}
	return &store.JSON[mail.AuthResult]{V: mail.AuthResult{
		SPF: string(v.SPF.Result), DKIM: string(v.Signed()), DMARC: string(v.DMARC.Result), Field: v.Field(r.cfg.Hostname, c.env),
	}}
}
