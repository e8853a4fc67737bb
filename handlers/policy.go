package handlers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/mime"
	"github.com/postroom/postroom/store"
)

// inboxWorks says whether the state of an inbox lets mail in and out.
func (a *API) inboxWorks(in store.Inbox) error {
	switch {
	case in.Status == store.InboxSuspended:
		return errForbidden(gen.ErrorCodeSendingPaused, "this inbox is suspended")
	case in.Expired(store.NewTime(a.now())):
		return errForbidden(gen.ErrorCodeInboxExpired, "this inbox has expired")
	}
	return nil
}

// checkSender refuses mail from an inbox whose domain is no longer the account's.
func (a *API) checkSender(ctx context.Context, in store.Inbox) error {
	ours, err := a.mayUse(ctx, in.AccountID, in.Domain)
	if err == nil && !ours {
		return fmt.Errorf("domain %s: %w", in.Domain, store.ErrDomainNotVerified)
	}
	return err
}

// mayUse says whether an account may send from a domain, in lower case: from the
// install's own, and from those that are verified for it.
func (a *API) mayUse(ctx context.Context, accountID int64, domain string) (bool, error) {
	if domain == a.cfg.MailDomain {
		return true, nil
	}
	owner, err := a.store.DomainOwner(ctx, domain)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil && owner == accountID, err
}

// checkPolicy refuses a mail that the inbox may not send, to whomever has
// approved it.
func (a *API) checkPolicy(ctx context.Context, s submission) error {
	if answersMachine(s) {
		return errForbidden(gen.ErrorCodeLoopDetected, "this is an automatic reply to automated mail")
	}
	if s.inbox.SendPolicy == store.PolicyReplyOnly {
		return a.checkWritten(ctx, s)
	}
	return nil
}

// answersMachine says whether an automatic reply, going by its own header,
// answers mail that no person wrote: two programs that do so would never end
// (RFC 3834 section 2).
func answersMachine(s submission) bool {
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

// checkWritten refuses recipients who have not themselves written to the inbox.
func (a *API) checkWritten(ctx context.Context, s submission) error {
	written, err := a.haveWritten(ctx, s.inbox, s.testMode, s.source, slices.Concat(s.to, s.cc, s.bcc))
	if err != nil {
		return err
	}
	for _, list := range []struct {
		field string
		of    []mail.Address
	}{{"to", s.to}, {"cc", s.cc}, {"bcc", s.bcc}} {
		for i, to := range list.of {
			if !written(to.Email) {
				// By place: an address may hold any words, and agents read errors.
				place := fmt.Sprintf("%s[%d]", list.field, i)
				return &apiError{
					status: http.StatusForbidden, code: gen.ErrorCodeRecipientNotAllowed, param: place,
					message: place + " has not written to this inbox",
				}
			}
		}
	}
	return nil
}

// haveWritten returns a test for whether one of the addresses has written to
// the inbox. A simulated mail was written by nobody, and lets no real mail out.
// Who wrote the message that is answered, which may be nil, need not be looked
// for.
func (a *API) haveWritten(
	ctx context.Context, in store.Inbox, testMode bool, answered *store.Message, list []mail.Address,
) (func(email string) bool, error) {
	var found, open []string
	if m := answered; m != nil && m.Direction == store.DirectionIn && (testMode || !m.TestMode) {
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

// followed returns the addresses of a Reply-To that a reply goes to: under
// reply_only those who never wrote are left out, whoever asks for it.
func (a *API) followed(ctx context.Context, in store.Inbox, m store.Message) ([]mail.Address, error) {
	replyTo := m.Addresses.V.ReplyTo
	if in.SendPolicy != store.PolicyReplyOnly || m.Direction != store.DirectionIn || len(replyTo) == 0 {
		return replyTo, nil
	}
	written, err := a.haveWritten(ctx, in, callerOf(ctx).Mode == store.KeyTest, &m, fromStore(replyTo))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(replyTo), func(r mail.Address) bool { return !written(r.Email) }), nil
}
