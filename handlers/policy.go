package handlers

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/mime"
	"github.com/postroom/postroom/store"
)

// toVerify returns the domain that an account must have verified to send from it, in
// lower case; empty for the mail domain of the installation.
func (a *API) toVerify(domain string) string {
	if domain == a.cfg.MailDomain || a.cfg.AnySender {
		return ""
	}
	return domain
}

// errSimulated returns the error for a live message that answers a simulated one.
func errSimulated(param, original string) error {
	return &httpapi.Error{
		Status: http.StatusConflict, Code: gen.ErrorCodeTestModeMismatch, Param: param,
		Message: original + " is simulated: only a test key may reply to it or forward it",
	}
}

// checkSource refuses a live message that answers or forwards a simulated one: nobody
// sent that, whatever it says. Submitted mail names the original in its header.
func (a *API) checkSource(ctx context.Context, s *submission) error {
	if s.testMode {
		return nil
	}
	if s.source != nil && s.source.TestMode {
		return errSimulated("message_id", "message "+s.source.ID)
	}
	if s.approved != nil && s.approved.SourceID != nil {
		m, err := a.store.AnyMessage(ctx, s.account, *s.approved.SourceID)
		switch {
		case errors.Is(err, store.ErrNotFound): // deleted since
		case err != nil:
			return err
		case m.TestMode:
			return errSimulated("", "message "+m.ID)
		}
	}
	if s.raw == nil || s.inbox.Seq == 0 {
		return nil
	}
	simulated, err := a.store.SimulatedHeader(ctx, s.inbox.Seq, slices.Concat(s.refs.InReplyTo, s.refs.References))
	if err == nil && simulated != "" {
		err = errSimulated("In-Reply-To", "message "+simulated)
	}
	return err
}

// repliesToMachine reports whether the header marks a message as an automatic
// reply to automated mail. Two such programs would reply to each other without
// end (RFC 3834 section 2).
func repliesToMachine(s *submission) bool {
	if s.kind != store.DraftReply || s.source == nil || !s.source.Automated {
		return false
	}
	var m mime.Message
	for _, h := range s.headers {
		switch name := strings.ToLower(h[0]); {
		case name == "auto-submitted":
			m.AutoSubmitted = h[1]
		case name == "precedence":
			m.Precedence = h[1]
		case strings.HasPrefix(name, "list-"):
			m.HasListField = true
		}
	}
	return m.Automated(false)
}

// haveWritten returns a function that reports whether an address has written to
// the inbox. Simulated messages count only in test mode. The sender of the
// original message, which may be nil, needs no query.
func (a *API) haveWritten(
	ctx context.Context, in store.Inbox, testMode bool, original *store.Message, list []mail.Address,
) (func(email string) bool, error) {
	var found, open []string
	if m := original; m != nil && m.Direction == store.DirectionIn && (testMode || !m.TestMode) {
		found = append(found, m.FromEmail)
	}
	for _, addr := range list {
		if email := mail.FoldAddress(addr.Email); !slices.Contains(found, email) {
			open = append(open, email)
		}
	}
	if len(open) > 0 {
		more, err := a.store.HaveWritten(ctx, in.Seq, open, testMode)
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	return func(email string) bool { return slices.Contains(found, mail.FoldAddress(email)) }, nil
}

// followed returns the Reply-To addresses that a reply goes to. The policy
// reply_only excludes addresses that have never written to the inbox.
func (a *API) followed(ctx context.Context, in store.Inbox, m store.Message) ([]mail.Address, error) {
	replyTo := m.Addresses.V.ReplyTo
	if in.SendPolicy != store.PolicyReplyOnly || m.Direction != store.DirectionIn || len(replyTo) == 0 {
		return replyTo, nil
	}
	written, err := a.haveWritten(ctx, in, httpapi.Caller(ctx).Mode == store.KeyTest, &m, fromStore(replyTo))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(replyTo), func(r mail.Address) bool { return !written(r.Email) }), nil
}
