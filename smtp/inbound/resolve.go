package inbound

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/smtp"
	"github.com/postroom/postroom/store"
)

// target is an inbox that a mail is for.
type target struct {
	rcpt  string
	inbox store.Mailbox
	tag   *string
	// sent is the recipient whose return path the mail came to. inbox is then where
	// the mail that it is about was sent from, once it has been read.
	sent *store.SentTo
}

// Resolve returns the inbox that receives mail for rcpt, and the tag in it, nil
// without one. Its error is an *Reply (550 5.1.1 for an unknown or deleted inbox,
// and for one of an account that the domain is no longer verified for, 5.2.1 for
// one that is suspended or expired, 5.7.1 for a foreign domain, 501 5.1.3 for what
// is no address), or the store's.
func (r *Receiver) Resolve(ctx context.Context, rcpt string) (store.Mailbox, *string, error) {
	local, tag, domain := smtp.SplitAddress(rcpt)
	if strings.ContainsAny(local, routing) {
		return store.Mailbox{}, nil, replyRelayDenied
	}
	owner, err := r.ownerOf(ctx, domain)
	if err != nil {
		return store.Mailbox{}, nil, err
	}
	if mail.ValidAddress(rcpt) != nil {
		return store.Mailbox{}, nil, replyBadRecipient
	}
	in, err := r.store.MailboxByAddress(ctx, local+"@"+domain)
	switch {
	case errors.Is(err, store.ErrNotFound), err == nil && owner != anyAccount && in.AccountID != owner:
		return store.Mailbox{}, nil, replyNoInbox
	case err != nil:
		return store.Mailbox{}, nil, fmt.Errorf("resolve recipient: %w", err)
	case !in.Takes(store.NewTime(r.now())):
		return store.Mailbox{}, nil, replyInboxClosed
	}
	return in, tag, nil
}

// anyAccount is the owner of the install's own domain, on which all accounts have
// inboxes.
const anyAccount = 0

// ownerOf returns the account that a domain is verified for. A domain that nobody
// has verified here is foreign, though there may be inboxes on it of a time when
// somebody had.
func (r *Receiver) ownerOf(ctx context.Context, domain string) (int64, error) {
	switch {
	case domain == r.domain:
		return anyAccount, nil
	case !smtp.IsDomain(domain): // what is no name cannot be asked for
		return 0, replyRelayDenied
	}
	owner, err := r.store.DomainOwner(ctx, domain)
	if errors.Is(err, store.ErrNotFound) {
		return 0, replyRelayDenied
	}
	if err != nil {
		return 0, fmt.Errorf("resolve recipient: %w", err)
	}
	return owner, nil
}

// routing are the characters by which a local part asked older servers to send
// the mail on: user%elsewhere, elsewhere!user.
const routing = "%!@"

// target is whom mail for rcpt is for: an inbox, or a return path. Errors are
// those of Resolve.
func (r *Receiver) target(ctx context.Context, rcpt string) (target, error) {
	if t, ok, err := r.returnTarget(ctx, rcpt); ok || err != nil {
		return t, err
	}
	return r.inboxTarget(ctx, rcpt)
}

func (r *Receiver) inboxTarget(ctx context.Context, rcpt string) (target, error) {
	in, tag, err := r.Resolve(ctx, rcpt)
	return target{rcpt: rcpt, inbox: in, tag: tag}, err
}

func resolveAll(ctx context.Context, rcpts []string, resolve func(context.Context, string) (target, error)) ([]target, error) {
	var to []target
	for _, rcpt := range rcpts {
		t, err := resolve(ctx, rcpt)
		if err != nil {
			return nil, err
		}
		to = addTarget(to, t)
	}
	if len(to) == 0 {
		return nil, replyNoRecipients
	}
	return to, nil
}

// addTarget adds t, unless its inbox is there already: an inbox gets one copy
// of a mail, whatever tags it was addressed with. A return path counts once too.
func addTarget(to []target, t target) []target {
	same := func(o target) bool {
		if t.inbox.Seq == 0 {
			return o.inbox.Seq == 0 && o.sent.RecipientSeq == t.sent.RecipientSeq
		}
		return o.inbox.Seq == t.inbox.Seq
	}
	if slices.ContainsFunc(to, same) {
		return to
	}
	return append(to, t)
}

// stillOpen returns those of the targets that take mail.
func (r *Receiver) stillOpen(ctx context.Context, to []target) ([]target, error) {
	var open []target
	for _, t := range to {
		again, err := r.target(ctx, t.rcpt)
		if err == nil {
			if in := again.sent; in == nil || in.Inbox != nil && in.Inbox.Takes(store.NewTime(r.now())) {
				open = append(open, t)
			}
			continue
		}
		if _, ours := replyTo(err); ours {
			return nil, err
		}
	}
	return open, nil
}
