package handlers

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strconv"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/apikey"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/store"
)

// CreateApiKey implements POST /v1/api-keys.
func (a *API) CreateApiKey(ctx context.Context, req *gen.ApiKeyCreate) (*gen.ApiKeyCreated, error) {
	k, err := a.keyFromAPI(ctx, req)
	if err != nil {
		return nil, err
	}
	by := httpapi.Caller(ctx)
	if err := checkReach(by, k, "create"); err != nil {
		return nil, err
	}
	if !isAdmin(by) {
		k.CreatedBy = ownerOf(by)
	}
	secret := apikey.New(string(k.Mode), a.cfg.KeyPrefix)
	k.Hash, k.Prefix, k.Hint = store.HashKey(secret), apikey.Prefix(secret), apikey.Hint(secret)
	k, err = a.store.CreateKey(ctx, k)
	if err != nil {
		return nil, revokedMeanwhile(err)
	}
	v := keyToAPI(k)
	return &gen.ApiKeyCreated{
		Object: v.Object, ID: v.ID, Name: v.Name, Mode: v.Mode, Scopes: v.Scopes, AllowedIps: v.AllowedIps, InboxIds: v.InboxIds,
		Prefix: v.Prefix, KeyHint: v.KeyHint, ExpiresAt: v.ExpiresAt, CreatedAt: v.CreatedAt, LastUsedAt: v.LastUsedAt, Limits: v.Limits,
		Key: secret,
	}, nil
}

// revokedMeanwhile returns the error of a change by a key. store.ErrState means that the
// key was revoked after the request began.
func revokedMeanwhile(err error) error {
	if errors.Is(err, store.ErrState) {
		return httpapi.ErrUnauthorized
	}
	return err
}

// CreateKey implements POST /v1/keys.
func (a *API) CreateKey(ctx context.Context, req *gen.ApiKeyCreate) (*gen.ApiKeyCreated, error) {
	return a.CreateApiKey(ctx, req)
}

// ListApiKeys implements GET /v1/api-keys.
func (a *API) ListApiKeys(ctx context.Context, p gen.ListApiKeysParams) (*gen.ApiKeyList, error) {
	k := httpapi.Caller(ctx)
	l, err := a.store.ListKeys(ctx, k.AccountID, httpapi.Visible(k), pageOf(p.Limit, p.Cursor))
	return listToAPI[gen.ApiKeyList](l, err, keyToAPI)
}

// ListKeys implements GET /v1/keys.
func (a *API) ListKeys(ctx context.Context, p gen.ListKeysParams) (*gen.ApiKeyList, error) {
	return a.ListApiKeys(ctx, gen.ListApiKeysParams(p))
}

// UpdateApiKey implements PATCH /v1/api-keys/{api_key_id}.
func (a *API) UpdateApiKey(ctx context.Context, req *gen.ApiKeyUpdate, p gen.UpdateApiKeyParams) (*gen.ApiKey, error) {
	by := httpapi.Caller(ctx)
	k, err := a.store.UpdateKey(ctx, by.AccountID, p.APIKeyID, func(k *store.Key) error {
		if err := checkBound(by, *k); err != nil {
			return err
		}
		patch(&k.Name, req.Name)
		if req.Limits.Set {
			if err := checkKeyLimits(by, *k, limitsFromAPI(req.Limits)); err != nil {
				return err
			}
			k.Limits = limitsFromAPI(req.Limits)
		}
		return checkName("name", &k.Name)
	})
	return result(k, err, keyToAPI)
}

// checkKeyLimits refuses limits that by may not give to k. A limit of 0 ends the sending of
// a key, so that it takes as much as revoking the key.
func checkKeyLimits(by, k store.Key, limits *store.JSON[store.Limits]) error {
	after := k
	after.Limits = limits
	if err := checkLimitsChange(by, k.Bounds(), after.Bounds()); err != nil {
		return err
	}
	if httpapi.Visible(by) != nil && k.Bounds().Looser(after.Bounds()) != "" {
		return errNeedsAdmin("limits", "a key with inbox_ids cannot raise limits of keys")
	}
	return checkAuthority(by, k, "limit")
}

// checkAuthority refuses what ends the use of k, unless by could have created k or is k
// itself. An admin key does so from its addresses and until it expires.
func checkAuthority(by, k store.Key, verb string) error {
	if by.ID == k.ID {
		return nil
	}
	if isAdmin(by) {
		by.AllowedIPs.V, by.ExpiresAt = nil, nil
	}
	return checkReach(by, k, verb)
}

// checkBound refuses a change of k by a key with inbox_ids that reaches less.
func checkBound(by, k store.Key) error {
	if k.BoundBy(httpapi.Visible(by)) {
		return nil
	}
	return httpapi.Forbidden(gen.ErrorCodeInsufficientScope, "this key has inbox_ids, and key "+k.ID+" is not bound to these inboxes alone")
}

// UpdateKey implements PATCH /v1/keys/{id}.
func (a *API) UpdateKey(ctx context.Context, req *gen.ApiKeyUpdate, p gen.UpdateKeyParams) (*gen.ApiKey, error) {
	return a.UpdateApiKey(ctx, req, gen.UpdateApiKeyParams{APIKeyID: p.ID})
}

// RevokeApiKey implements DELETE /v1/api-keys/{api_key_id}.
func (a *API) RevokeApiKey(ctx context.Context, p gen.RevokeApiKeyParams) (*gen.DeletedApiKey, error) {
	by := httpapi.Caller(ctx)
	k, err := a.store.Key(ctx, by.AccountID, p.APIKeyID)
	if err != nil {
		return nil, err
	}
	if err := checkBound(by, k); err != nil {
		return nil, err
	}
	if err := checkAuthority(by, k, "revoke"); err != nil {
		return nil, err
	}
	err = a.store.RevokeKey(ctx, by.AccountID, p.APIKeyID)
	return &gen.DeletedApiKey{Object: "api_key", ID: p.APIKeyID, Deleted: true, Revoked: true}, err
}

// DeleteKey implements DELETE /v1/keys/{id}.
func (a *API) DeleteKey(ctx context.Context, p gen.DeleteKeyParams) (*gen.DeletedApiKey, error) {
	return a.RevokeApiKey(ctx, gen.RevokeApiKeyParams{APIKeyID: p.ID})
}

func (a *API) keyFromAPI(ctx context.Context, req *gen.ApiKeyCreate) (store.Key, error) {
	k := store.Key{
		AccountID: httpapi.Caller(ctx).AccountID, Name: req.Name,
		Mode: store.KeyMode(req.Mode.Or(gen.ApiKeyCreateModeLive)), AllowedIPs: store.JSON[[]string]{V: []string{}},
		Limits: limitsFromAPI(req.Limits),
	}
	if err := checkName("name", &k.Name); err != nil {
		return k, err
	}
	for _, s := range req.Scopes {
		k.Scopes.V = append(k.Scopes.V, string(s))
	}
	if len(k.Scopes.V) == 0 {
		if k.Mode == store.KeyRestricted {
			return k, httpapi.Invalid("scopes", "is required for a restricted key")
		}
		k.Scopes.V = []string{"*"}
	}
	for i, c := range req.AllowedIps {
		block, ok := apikey.ParseBlock(c)
		if !ok {
			return k, httpapi.Invalid("allowed_ips["+strconv.Itoa(i)+"]", "must be a CIDR block such as 192.0.2.0/24")
		}
		k.AllowedIPs.V = append(k.AllowedIPs.V, block.String())
	}
	var err error
	if k.ExpiresAt, err = a.optionalFuture(req.ExpiresAt); err != nil {
		return k, err
	}
	if ids, ok := req.InboxIds.Get(); ok {
		for i, id := range ids {
			if _, err := a.inboxOf(ctx, id); err != nil {
				return k, httpapi.Invalid("inbox_ids["+strconv.Itoa(i)+"]", "is not an inbox of this account")
			}
		}
		k.InboxIDs = &store.JSON[[]string]{V: ids}
	}
	return k, nil
}

// checkReach refuses what the verb says to a key that has less access than k. A key with
// limits creates no keys, because each key has a budget of its own.
func checkReach(by, k store.Key, verb string) error {
	wider := func(what string) error {
		return httpapi.Forbidden(gen.ErrorCodeInsufficientScope, "this key cannot "+verb+" a key that has more access than itself: "+what)
	}
	if !by.Bounds().None() {
		return httpapi.Forbidden(gen.ErrorCodeInsufficientScope,
			"this key has limits, and a key with limits cannot "+verb+" keys: use a key without limits")
	}
	for _, s := range k.Scopes.V {
		if !mayGrant(by.Scopes.V, s) {
			return wider("scopes " + s)
		}
	}
	switch {
	case by.Mode == store.KeyTest && k.Mode != store.KeyTest:
		return wider("mode " + string(k.Mode))
	case by.InboxIDs != nil && k.InboxIDs == nil:
		return wider("inbox_ids")
	case len(by.AllowedIPs.V) > 0 && !within(k.AllowedIPs.V, by.AllowedIPs.V):
		return wider("allowed_ips")
	case by.ExpiresAt != nil && (k.ExpiresAt == nil || k.ExpiresAt.After(by.ExpiresAt.Time)):
		return wider("expires_at")
	}
	return nil
}

// within reports whether inner is not empty and each of its blocks lies in a
// block of outer.
func within(inner, outer []string) bool {
	return len(inner) > 0 && !slices.ContainsFunc(inner, func(s string) bool {
		in, err := netip.ParsePrefix(s)
		return err != nil || !slices.ContainsFunc(outer, func(o string) bool {
			out, err := netip.ParsePrefix(o)
			return err == nil && out.Bits() <= in.Bits() && out.Contains(in.Addr())
		})
	})
}

// mayGrant reports whether a key with the scopes have may grant scope.
func mayGrant(have []string, scope string) bool {
	if scope == "*" || scope == "admin" {
		return slices.Contains(have, "*") || slices.Contains(have, "admin")
	}
	return httpapi.HasScope(have, scope)
}

func keyToAPI(k store.Key) *gen.ApiKey {
	out := &gen.ApiKey{
		Object: "api_key", ID: k.ID, Name: k.Name, Mode: string(k.Mode), Scopes: k.Scopes.V, AllowedIps: k.AllowedIPs.V,
		Prefix: k.Prefix, KeyHint: k.Hint, ExpiresAt: nilTime(k.ExpiresAt), CreatedAt: k.CreatedAt.Time, LastUsedAt: nilTime(k.LastUsedAt),
		Limits: limitsToAPI(k.Bounds()),
	}
	if k.InboxIDs != nil {
		out.InboxIds = k.InboxIDs.V
	}
	return out
}
