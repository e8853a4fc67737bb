package handlers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/store"
)

var errNoInbox = &httpapi.Error{Status: http.StatusNotFound, Code: gen.ErrorCodeNotFound, Param: "inbox_id", Message: "inbox_id: inbox not found, or this key has no access to it"}

const defaultRetentionDays, maxRetentionDays = 7, 30

// domainOwner is the owner of a domain's addresses for the store: the account of the
// key, or 0 for the domain that all accounts share.
func (a *API) domainOwner(k store.Key, domain string) int64 {
	if domain == a.cfg.MailDomain {
		return 0
	}
	return k.AccountID
}

// CreateInbox implements POST /v1/inboxes.
func (a *API) CreateInbox(ctx context.Context, body gen.OptInboxCreate, _ gen.CreateInboxParams) (*gen.Inbox, error) {
	req := body.Or(gen.InboxCreate{})
	in := store.Inbox{
		AccountID: httpapi.Caller(ctx).AccountID, Name: strings.ToLower(req.Name.Or("")), Domain: strings.ToLower(req.Domain.Or(a.cfg.MailDomain)),
		SendPolicy: a.cfg.SendPolicy, Metadata: store.JSON[store.Labels]{V: store.Labels{}}, Aliases: store.JSON[[]string]{V: []string{}},
	}
	if in.Name == "" {
		in.Name = randomName(a)
	}
	in.Address = in.Name + "@" + in.Domain
	if len(in.Address) > 254 {
		return nil, httpapi.Invalid("name", "results in an address of more than 254 characters")
	}
	if err := cmp.Or(a.checkReserved(ctx, "name", in.Name, in.Domain != a.cfg.MailDomain), a.editInbox(ctx, &in, &gen.InboxUpdate{
		DisplayName: req.DisplayName, SendPolicy: req.SendPolicy, RetentionDays: req.RetentionDays, Metadata: req.Metadata, ExpiresAt: req.ExpiresAt,
		Limits: req.Limits, Aliases: req.Aliases, CatchAll: req.CatchAll, Quarantine: req.Quarantine,
	})); err != nil {
		return nil, err
	}
	in.RetentionDays = cmp.Or(in.RetentionDays, defaultRetentionDays)
	made, err := a.store.CreateInbox(ctx, in, once(ctx, http.StatusCreated, "Inbox", a.inboxToAPI))
	if _, known := errors.AsType[*store.TakenError](err); errors.Is(err, store.ErrAddressTaken) && !known {
		err = &httpapi.Error{
			Status: http.StatusConflict, Code: gen.ErrorCodeAddressTaken, Param: "name",
			Message: in.Address + " is or was in use: choose another name",
		}
	}
	return result(made, err, a.inboxToAPI)
}

// editInbox applies the fields of a request to a new inbox or one to change.
func (a *API) editInbox(ctx context.Context, in *store.Inbox, req *gen.InboxUpdate) (err error) {
	before := *in
	in.OnOwnDomain = in.Domain != a.cfg.MailDomain
	if req.DisplayName.Set {
		in.DisplayName = nilOrText(req.DisplayName)
	}
	if req.ExpiresAt.Set {
		if in.ExpiresAt, err = a.optionalFuture(req.ExpiresAt); err != nil {
			return err
		}
	}
	if v, ok := req.SendPolicy.Get(); ok {
		in.SendPolicy = store.SendPolicy(v)
	}
	patch(&in.RetentionDays, req.RetentionDays)
	if req.Metadata.Set {
		if in.Metadata.V, err = inboxMetadata(req.Metadata.Value); err != nil {
			return err
		}
	}
	if req.Limits.Set {
		in.Limits = limitsFromAPI(req.Limits)
	}
	if req.Aliases != nil {
		in.Aliases.V = foldAliases(req.Aliases)
	}
	patch(&in.CatchAll, req.CatchAll)
	if req.Quarantine.Set {
		in.Quarantine = mail.SafetyLevel(req.Quarantine.Value.Level)
	}
	return cmp.Or(a.checkRetention(req.RetentionDays), a.checkAddresses(ctx, before, *in),
		checkPolicyChange(httpapi.Caller(ctx), before, *in), checkName("display_name", in.DisplayName))
}

// strictness orders the send policies from the most to the least permissive.
var strictness = map[store.SendPolicy]int{store.PolicyOpen: 0, store.PolicyReplyOnly: 1, store.PolicyApproval: 2}

// checkPolicyChange refuses to loosen the send policy of an inbox or its limits, or to
// shorten the retention of a restricted one, unless the key has the scope
// admin. Otherwise a restricted key could lift its own restriction and then
// remove what it sent.
func checkPolicyChange(k store.Key, before, after store.Inbox) error {
	if err := checkLimitsChange(k, before.Bounds(), after.Bounds()); err != nil || isAdmin(k) {
		return err
	}
	if strictness[after.SendPolicy] < strictness[before.SendPolicy] {
		return errNeedsAdmin("send_policy", "loosening send_policy from %s to %s needs the scope admin", before.SendPolicy, after.SendPolicy)
	}
	if before.Quarantine != "" && (after.Quarantine == "" || !before.Quarantine.AtLeast(after.Quarantine)) {
		return errNeedsAdmin("quarantine", "loosening quarantine needs the scope admin")
	}
	if before.SendPolicy != store.PolicyOpen && after.RetentionDays < before.RetentionDays {
		return errNeedsAdmin("retention_days", "lowering retention_days from %d to %d needs the scope admin while send_policy is %s",
			before.RetentionDays, after.RetentionDays, before.SendPolicy)
	}
	return nil
}

// errNeedsAdmin returns an error for a field value that requires the scope
// admin.
func errNeedsAdmin(param, format string, args ...any) error {
	return &httpapi.Error{
		Status: http.StatusForbidden, Code: gen.ErrorCodeInsufficientScope, Param: param, Message: fmt.Sprintf(format, args...),
	}
}

// checkReserved refuses a local part that the caller may not give to an inbox.
func (a *API) checkReserved(ctx context.Context, param, local string, onOwnDomain bool) error {
	switch mail.Reserved(local, !onOwnDomain) {
	case mail.ForOperator:
		return httpapi.Invalid(param, "%q is reserved for the operator: choose another name", local)
	case mail.ForFirstAccount:
		k := httpapi.Caller(ctx)
		first, err := a.isFirstAccount(ctx, k.AccountID)
		if err != nil || first && isAdmin(k) {
			return err
		}
		return httpapi.Invalid(param, "%q is reserved on %s: only a key of the first account with the scope admin can use it", local, a.cfg.MailDomain)
	}
	return nil
}

// foldAliases folds the case of local parts.
func foldAliases(aliases []gen.LocalPart) []string {
	return mapped(aliases, func(alias gen.LocalPart) string { return strings.ToLower(string(alias)) })
}

// checkAddresses refuses further addresses that the inbox may not have. A key with
// inbox_ids may not add any, as it may not create inboxes: it would read mail that is
// meant for others.
func (a *API) checkAddresses(ctx context.Context, before, after store.Inbox) error {
	k, seen := httpapi.Caller(ctx), map[string]bool{after.Name: true}
	for i, alias := range after.Aliases.V {
		param := fmt.Sprintf("aliases[%d]", i)
		switch added := !slices.Contains(before.Aliases.V, alias); {
		case len(alias)+1+len(after.Domain) > 254:
			return httpapi.Invalid(param, "results in an address of more than 254 characters")
		case seen[alias]:
			return httpapi.Invalid(param, "%s is already an address of this inbox", alias)
		case added && httpapi.Visible(k) != nil:
			return withParam(httpapi.Forbidden(gen.ErrorCodeInsufficientScope, "a key with inbox_ids cannot add aliases"), param)
		case added:
			if err := a.checkReserved(ctx, param, alias, after.OnOwnDomain); err != nil {
				return err
			}
		}
		seen[alias] = true
	}
	switch {
	case !after.CatchAll || before.CatchAll:
		return nil
	case !after.OnOwnDomain:
		return httpapi.Invalid("catch_all", "needs an inbox on a verified domain of this account, because all accounts share %s", after.Domain)
	case httpapi.Visible(k) != nil:
		return withParam(httpapi.Forbidden(gen.ErrorCodeInsufficientScope, "a key with inbox_ids cannot set catch_all"), "catch_all")
	}
	return nil
}

func withParam(e *httpapi.Error, param string) *httpapi.Error {
	e.Param = param
	return e
}

// breaksLine reports whether a character may end a line or control a terminal.
func breaksLine(r rune) bool {
	return r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029
}

// checkName refuses characters that could break out of a header field.
func checkName(field string, name *string) error {
	if name != nil && strings.ContainsFunc(*name, breaksLine) {
		return httpapi.Invalid(field, "must not contain control characters")
	}
	return nil
}

// randomName returns a local part of 13 characters that cannot be guessed.
func randomName(a *API) string { return store.NewLongID("", a.now())[13:] }

// GetInbox implements GET /v1/inboxes/{inbox_id}.
func (a *API) GetInbox(ctx context.Context, p gen.GetInboxParams) (*gen.Inbox, error) {
	in, err := a.inboxOf(ctx, p.InboxID)
	if err == nil {
		in, err = a.store.Inbox(ctx, in.AccountID, in.ID)
	}
	return result(in, err, a.inboxToAPI)
}

// ListInboxes implements GET /v1/inboxes.
func (a *API) ListInboxes(ctx context.Context, p gen.ListInboxesParams) (*gen.InboxList, error) {
	k := httpapi.Caller(ctx)
	if p.Address.Set && a.cfg.FindInbox != nil {
		id, err := a.cfg.FindInbox(ctx, p.Address.Value)
		if err != nil {
			return nil, err
		}
		if id != "" {
			p.Address.Reset()
			p.IDPrefix.SetTo(id)
		}
	}
	l, err := a.store.ListInboxes(ctx, k.AccountID, store.InboxFilter{
		IDs: httpapi.Visible(k), Address: p.Address.Or(""), IDPrefix: p.IDPrefix.Or(""),
	}, pageOf(p.Limit, p.Cursor))
	return listToAPI[gen.InboxList](l, err, a.inboxToAPI)
}

// UpdateInbox implements PATCH /v1/inboxes/{inbox_id}.
func (a *API) UpdateInbox(ctx context.Context, req *gen.InboxUpdate, p gen.UpdateInboxParams) (*gen.Inbox, error) {
	if _, err := a.inboxOf(ctx, p.InboxID); err != nil {
		return nil, err
	}
	in, err := a.store.UpdateInbox(ctx, httpapi.Caller(ctx).AccountID, p.InboxID, func(in *store.Inbox) error { return a.editInbox(ctx, in, req) })
	return result(in, err, a.inboxToAPI)
}

func (a *API) checkRetention(days gen.OptInt) error {
	if most := cmp.Or(a.cfg.MaxRetentionDays, maxRetentionDays); days.Value > most {
		return httpapi.Invalid("retention_days", "must be at most %d: POSTROOM_MAX_RETENTION_DAYS sets the longest retention of this installation", most)
	}
	return nil
}

// DeleteInbox implements DELETE /v1/inboxes/{inbox_id}.
func (a *API) DeleteInbox(ctx context.Context, p gen.DeleteInboxParams) (*gen.DeletedInbox, error) {
	if _, err := a.inboxOf(ctx, p.InboxID); err != nil {
		return nil, err
	}
	in, err := a.store.DeleteInbox(ctx, httpapi.Caller(ctx).AccountID, p.InboxID)
	if err != nil {
		return nil, err
	}
	v := a.inboxToAPI(in)
	return &gen.DeletedInbox{
		Object: v.Object, ID: v.ID, Address: v.Address, Name: v.Name, Domain: v.Domain, DisplayName: v.DisplayName,
		SendPolicy: v.SendPolicy, Status: v.Status, RetentionDays: v.RetentionDays, Metadata: v.Metadata, ExpiresAt: v.ExpiresAt,
		LastMessageAt: v.LastMessageAt, CreatedAt: v.CreatedAt, UpdatedAt: v.UpdatedAt, Limits: v.Limits, Aliases: v.Aliases, CatchAll: v.CatchAll, Quarantine: v.Quarantine, Deleted: true,
	}, nil
}

func (a *API) inboxToAPI(in store.Inbox) *gen.Inbox {
	status := string(in.Status)
	if in.Status == store.InboxActive && in.Expired(store.NewTime(a.now())) {
		status = gen.InboxStatusExpired
	}
	return &gen.Inbox{
		Object:        "inbox",
		ID:            in.ID,
		Address:       in.Address,
		Name:          in.Name,
		Domain:        in.Domain,
		DisplayName:   nilString(in.DisplayName),
		SendPolicy:    string(in.SendPolicy),
		Status:        status,
		RetentionDays: in.RetentionDays,
		Metadata:      labelsToAPI(in.Metadata.V),
		ExpiresAt:     nilTime(in.ExpiresAt),
		LastMessageAt: nilTime(in.LastMessageAt),
		CreatedAt:     in.CreatedAt.Time,
		UpdatedAt:     in.UpdatedAt.Time,
		Limits:        limitsToAPI(in.Bounds()),
		Aliases:       append([]string{}, in.Aliases.V...),
		CatchAll:      in.CatchAll,
		Quarantine:    gen.NilActiveQuarantine{Null: in.Quarantine == "", Value: gen.ActiveQuarantine{Level: string(in.Quarantine)}},
	}
}

// sees reports whether a key may see an inbox of its account.
func sees(k store.Key, inboxID string) bool {
	return k.InboxIDs == nil || slices.Contains(k.InboxIDs.V, inboxID)
}

// inboxOf returns the inbox if the caller can see it.
func (a *API) inboxOf(ctx context.Context, id string) (store.Inbox, error) {
	k := httpapi.Caller(ctx)
	if !sees(k, id) {
		return store.Inbox{}, fmt.Errorf("inbox: %w", store.ErrNotFound)
	}
	return a.store.InboxSettings(ctx, k.AccountID, id)
}

// filteredInbox is inboxOf for the list parameter inbox_id, with an error that
// names the parameter.
func (a *API) filteredInbox(ctx context.Context, id string) (store.Inbox, error) {
	in, err := a.inboxOf(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return in, errNoInbox
	}
	return in, err
}
