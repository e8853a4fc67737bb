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
	"github.com/postroom/postroom/store"
)

// checkSendingDomain refuses a domain, in lower case, that the caller's account
// may not send from.
func (a *API) checkSendingDomain(ctx context.Context, domain string) error {
	ours, err := a.mayUse(ctx, httpapi.Caller(ctx).AccountID, domain)
	if err == nil && !ours {
		return errSender("must be on the mail domain of the installation or on a verified domain of this account")
	}
	return err
}

// sender checks that the caller may send an email from an address and returns
// the inbox with that address, if any. The restrictions of the inbox also apply
// to emails from its address: its policy holds, and a key with inbox_ids sends
// from those inboxes only.
func (a *API) sender(ctx context.Context, from mail.Address) (store.Inbox, error) {
	k := httpapi.Caller(ctx)
	local, domain := cutAddress(from.Email)
	none := store.Inbox{}
	if err := a.checkSendingDomain(ctx, domain); err != nil {
		return none, err
	}
	if strings.HasPrefix(local, `"`) { // quoting could disguise the address of an inbox
		return none, httpapi.Invalid("from", "must not have a quoted local part")
	}
	name, _, _ := strings.Cut(mail.FoldAddress(local), "+")
	wholeDomain, err := a.hasWholeDomain(ctx, k.AccountID, domain)
	if err != nil {
		return none, err
	}
	if !wholeDomain && slices.Contains(reservedNames, name) {
		return none, errSender("uses a name that is reserved for the operator of the shared mail domain")
	}
	in, err := a.store.InboxAt(ctx, name+"@"+domain)
	switch {
	case errors.Is(err, store.ErrNotFound):
		if httpapi.Visible(k) != nil {
			return none, httpapi.Forbidden(gen.ErrorCodeInsufficientScope, "this key sends from its inboxes only")
		}
		if !wholeDomain {
			return none, errSender("must be the address of an inbox of this account, because it is on the shared mail domain")
		}
		return none, nil
	case err != nil:
		return none, err
	case in.AccountID != k.AccountID || in.Status == store.InboxDeleted:
		return none, errSender("belongs or belonged to an inbox, so this account cannot send from it")
	case httpapi.Visible(k) != nil && !slices.Contains(httpapi.Visible(k), in.ID):
		return none, httpapi.Forbidden(gen.ErrorCodeInsufficientScope, "this key sends from its inboxes only")
	case in.SendPolicy == store.PolicyApproval:
		return none, &httpapi.Error{
			Status: http.StatusForbidden, Code: gen.ErrorCodeRecipientNotAllowed, Param: "from",
			Message: "this inbox sends only what was approved, so not by this way",
		}
	}
	return in, nil
}

// hasWholeDomain reports whether an account may send from addresses on a domain
// that are not its inboxes. On the shared mail domain of the installation only
// the first account may.
func (a *API) hasWholeDomain(ctx context.Context, accountID int64, domain string) (bool, error) {
	if domain != a.cfg.MailDomain {
		return true, nil
	}
	first := a.firstAccount.Load()
	if first == 0 { // read once: accounts are never deleted
		account, err := a.store.FirstAccount(ctx)
		if err != nil {
			return false, err
		}
		first = account.Seq
		a.firstAccount.Store(first)
	}
	return accountID == first, nil
}

// cutAddress splits a valid address. The domain is in lower case.
func cutAddress(email string) (local, domain string) {
	at := strings.LastIndexByte(email, '@')
	return email[:at], strings.ToLower(email[at+1:])
}

func errSender(reason string) error {
	return &httpapi.Error{Status: http.StatusForbidden, Code: gen.ErrorCodeDomainNotVerified, Param: "from", Message: "from " + reason}
}
