package smtp

import (
	"context"
	"fmt"
	"io"
	"net/netip"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mailauth"
	"github.com/postroom/postroom/store"
)

// judging is one mail whose sender is being judged. nil is one that is not.
type judging struct {
	check *mailauth.Check
	env   mailauth.Envelope
}

// judge begins to judge a mail. It is nil for mail of our own queue, which has
// no client: the API has made sure who that is from.
func (r *Receiver) judge(ctx context.Context, env Envelope) *judging {
	client, err := netip.ParseAddr(env.RemoteAddr)
	if r.auth == nil || err != nil {
		return nil
	}
	e := mailauth.Envelope{Client: client, HELO: env.HELO, MailFrom: env.MailFrom}
	return &judging{r.auth.Start(ctx, e), e}
}

// read gives the mail to the judge. Its errors are those of message.Parse.
func (j *judging) read(whole io.ReadSeeker, lim mail.Limits) error {
	if j == nil {
		return nil
	}
	if _, err := whole.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read the mail: %w", err)
	}
	return j.check.Read(whole, lim)
}

// wait waits until the verdicts are there, which they always come to be.
func (j *judging) wait() {
	if j != nil {
		j.check.Wait()
	}
}

// stop ends what is under way.
func (j *judging) stop() {
	if j != nil {
		j.check.Stop()
	}
}

// authenticated returns the authentication results of a message: of the checks for
// a message from outside, and the sending account for one of our own queue, where
// the queue has checked that the account may use the address.
func (r *Receiver) authenticated(ctx context.Context, env Envelope, j *judging) (*store.JSON[store.AuthResults], error) {
	if env.Account == 0 {
		return r.verdicts(ctx, j), nil
	}
	id, err := r.store.PublicAccountID(ctx, env.Account)
	if err != nil {
		return nil, err
	}
	return &store.JSON[store.AuthResults]{V: store.AuthResults{SPF: "none", DKIM: "none", DMARC: "none", Internal: "pass", Account: id}}, nil
}

// verdicts waits for what has been found out, which always ends; nil when nobody
// judges. No fault there keeps a mail from being stored.
func (r *Receiver) verdicts(ctx context.Context, j *judging) *store.JSON[store.AuthResults] {
	if j == nil {
		return nil
	}
	v := j.check.Wait()
	if v.Fault != nil {
		r.log.ErrorContext(ctx, "mail not judged", "error", v.Fault)
	}
	return &store.JSON[store.AuthResults]{V: store.AuthResults{
		SPF: string(v.SPF.Result), DKIM: string(v.Signed()), DMARC: string(v.DMARC.Result), Field: v.Field(r.host, j.env),
	}}
}
