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

// target is an inbox that receives the message.
type target struct {
	rcpt  string
	inbox store.Mailbox
	tag   *string
	// sent is set for a message to a reverse-path: the recipient that it
	// identifies. inbox is then the sending inbox of the reported message, once
	// the report has been read.
	sent *store.SentTo
}

// Resolve returns the inbox for rcpt, and the tag in it, or nil. Its error is a
// *smtp.Reply or the store's. The replies are 550 5.1.1 for an unknown or deleted
// inbox, also if its account no longer has the domain verified; 5.2.1 for a
// suspended or expired inbox; 5.7.1 for a foreign domain; 501 5.1.3 for an
// invalid address.
func (r *Receiver) Resolve(ctx context.Context, rcpt string) (store.Mailbox, *string, error) {
	local, tag, domain := smtp.SplitAddress(rcpt)
	if strings.ContainsAny(local, routing) {
		return store.Mailbox{}, nil, replyRelayDenied
	}
	owner, catchAll, none := int64(anyAccount), "", replyNoInbox
	if r.cfg.NewInbox == nil {
		var err error
		if owner, catchAll, err = r.ownerOf(ctx, domain); err != nil {
			return store.Mailbox{}, nil, err
		}
		if owner != anyAccount && catchAll != store.CatchAllOf(domain) {
			none = replyRelayDenied // a domain that is ours only for its catch-all inbox
		}
		if mail.IsRole(local) {
			catchAll = ""
		}
	}
	if mail.ValidAddress(rcpt) != nil {
		return store.Mailbox{}, nil, replyBadRecipient
	}
	in, err := r.cfg.Store.MailboxByAddress(ctx, owner, local+"@"+domain, catchAll)
	if errors.Is(err, store.ErrNotFound) && r.cfg.NewInbox != nil {
		if err := r.cfg.NewInbox(ctx, local, domain); err != nil {
			return store.Mailbox{}, nil, fmt.Errorf("create an inbox: %w", err)
		}
		in, err = r.cfg.Store.MailboxByAddress(ctx, owner, local+"@"+domain, catchAll)
	}
	switch {
	case errors.Is(err, store.ErrNotFound), err == nil && owner != anyAccount && in.AccountID != owner:
		return store.Mailbox{}, nil, none
	case err != nil:
		return store.Mailbox{}, nil, fmt.Errorf("resolve recipient: %w", err)
	case !in.Takes(store.NewTime(r.cfg.Now())):
		return store.Mailbox{}, nil, replyInboxClosed
	}
	return in, tag, nil
}

// Reaches reports whether mail to rcpt is delivered to the inbox.
func (r *Receiver) Reaches(ctx context.Context, in store.Inbox, rcpt string) (bool, error) {
	to, _, err := r.Resolve(ctx, rcpt)
	if _, refused := errors.AsType[*smtp.Reply](err); refused {
		return false, nil
	}
	return err == nil && to.Seq == in.Seq, err
}

// anyAccount is the owner of the installation's own domain, on which all accounts
// have inboxes.
const anyAccount = 0

// ownerOf returns the account that has verified a domain, and the name of its
// catch-all inbox. A domain without verification is foreign, even if it still has
// inboxes from an earlier verification, unless it is below one that is verified.
func (r *Receiver) ownerOf(ctx context.Context, domain string) (owner int64, catchAll string, err error) {
	switch {
	case domain == r.cfg.Domain:
		return anyAccount, "", nil
	case !smtp.IsDomain(domain): // an invalid name cannot be looked up
		return 0, "", replyRelayDenied
	}
	owner, err = r.cfg.Store.DomainOwner(ctx, domain)
	if above := r.above(domain); errors.Is(err, store.ErrNotFound) && len(above) > 0 {
		owner, domain, err = r.cfg.Store.WildcardOwner(ctx, above)
	}
	if errors.Is(err, store.ErrNotFound) {
		return 0, "", replyRelayDenied
	}
	if err != nil {
		return 0, "", fmt.Errorf("resolve recipient: %w", err)
	}
	return owner, store.CatchAllOf(domain), nil
}

// maxAbove is how many domains above a recipient's are looked up.
const maxAbove = 8

// above returns the domains above a domain, the nearest first, without top-level
// domains. Below the installation's own domain there are none.
func (r *Receiver) above(domain string) []string {
	if strings.HasSuffix(domain, "."+r.cfg.Domain) {
		return nil
	}
	var names []string
	for len(names) < maxAbove {
		_, rest, ok := strings.Cut(domain, ".")
		if !ok || !strings.Contains(rest, ".") {
			break
		}
		names, domain = append(names, rest), rest
	}
	return names
}

// routing holds the characters of historic source routing in local parts:
// user%elsewhere, elsewhere!user.
const routing = "%!@"

// target returns the target for rcpt: an inbox or a reverse-path. Errors are
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

// addTarget adds t, unless its inbox is already a target: an inbox gets one copy
// of a message, whatever tags are used. A reverse-path counts once too.
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
