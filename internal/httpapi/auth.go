package httpapi

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/store"
)

type callerKey struct{}

// Caller returns the API key of the request.
func Caller(ctx context.Context) store.Key {
	k, _ := ctx.Value(callerKey{}).(store.Key)
	return k
}

// WithCaller returns the context of work that is done in the name of a key or person,
// who is checked already.
func WithCaller(ctx context.Context, k store.Key) context.Context {
	return context.WithValue(ctx, callerKey{}, k)
}

// Visible returns the ids of the inboxes that the key is limited to, or nil for
// no limit.
func Visible(k store.Key) []string {
	if k.InboxIDs == nil {
		return nil
	}
	return append([]string{}, k.InboxIDs.V...) // never nil: an empty list is a limit too
}

// HandleBearerAuth implements gen.SecurityHandler. It finds the key and refuses
// a client address that the key does not allow, a missing scope, and too many
// requests. Only openapi.yaml defines the scopes of an operation.
func (c *Chain) HandleBearerAuth(ctx context.Context, op gen.OperationName, t gen.BearerAuth) (context.Context, error) {
	if caller, ok := localOf(ctx); ok {
		if slices.Contains(caller.granted, op) {
			t.Roles = nil
		}
		counted := caller.counted || caller.page != nil && caller.page.Swap(true)
		return c.authorize(ctx, caller.key, counted, op, t.Roles)
	}
	token := strings.TrimLeft(t.Token, " ") // the generated server skips only one space (RFC 9110 section 11.4)
	k, err := c.keyOf(ctx, token, op)
	if err != nil {
		return ctx, err
	}
	return c.authorize(ctx, k, false, op, t.Roles)
}

// keyOf returns the key with a secret, if the client may use it. For the MCP endpoint
// the secret may be an access token of a key.
func (c *Chain) keyOf(ctx context.Context, secret string, op gen.OperationName) (store.Key, error) {
	k, err := c.store.KeyByHash(ctx, store.HashKey(secret))
	if errors.Is(err, store.ErrNotFound) && op == gen.CallMcpOperation && c.cfg.OAuth != nil {
		k, err = c.store.KeyByAccessToken(ctx, store.HashKey(secret), c.cfg.OAuth.Resource)
	}
	if err != nil {
		return k, c.keyEnded(ctx, store.HashKey(secret), err)
	}
	if !addressAllowed(k.AllowedIPs.V, infoOf(ctx).IP) {
		return k, Forbidden(gen.ErrorCodeIPNotAllowed, "this key may not be used from this address")
	}
	c.store.KeyUsed(k)
	return k, nil
}

// WithKey returns the context of a call with a key that does not come over HTTP,
// and the key. A wrong key counts against the client address, as over HTTP.
func (c *Chain) WithKey(ctx context.Context, secret string, ip netip.Addr) (context.Context, store.Key, error) {
	ctx = context.WithValue(ctx, infoKey{}, &requestInfo{Response: Response{RequestID: store.NewID("req_", c.now()), IP: ip}})
	k, err := c.keyOf(ctx, secret, "")
	if err != nil {
		return ctx, k, c.refuse(ctx, err)
	}
	return ctx, k, nil
}

// Permit returns the context of a call of op with k, which WithKey has returned. It
// counts the call and checks the scopes, as over HTTP.
func (c *Chain) Permit(ctx context.Context, k store.Key, op gen.OperationName) (context.Context, error) {
	return c.authorize(ctx, k, false, op, gen.GetRolesForBearerAuth(op))
}

// authorize counts the call, unless it is counted already, and checks the
// scopes and the inbox limit of the key.
func (c *Chain) authorize(ctx context.Context, k store.Key, counted bool, op gen.OperationName, scopes []string) (context.Context, error) {
	info := infoOf(ctx)
	info.AccountID, info.Caller = k.AccountID, k.ID
	if err := c.limitKey(ctx, k, counted, op); err != nil {
		return ctx, err
	}
	if !hasAnyScope(k.Scopes.V, scopes) {
		return ctx, Forbidden(gen.ErrorCodeInsufficientScope, "this key lacks the scope "+strings.Join(scopes, " or "))
	}
	if !reaches(k, op) {
		return ctx, Forbidden(gen.ErrorCodeInsufficientScope, "a key with inbox_ids cannot call this operation")
	}
	return WithCaller(ctx, k), nil
}

// reaches reports whether the inbox limit of a key permits the operation. Only
// openapi.yaml defines the rules. A key with inbox_ids may not call an
// operation without a rule.
func reaches(k store.Key, op gen.OperationName) bool {
	if k.InboxIDs == nil {
		return true
	}
	rule := gen.InboxIDsRules[op]
	return rule != "" && rule != gen.InboxIDsRefused
}

// KeyStillGood checks the key again at the end of a long call: meanwhile it may
// have been revoked or have expired, or the person may have signed out.
func (c *Chain) KeyStillGood(ctx context.Context) error {
	if caller, ok := localOf(ctx); ok && caller.stillGood != nil {
		return caller.stillGood(ctx)
	}
	if _, err := c.store.KeyByHash(ctx, Caller(ctx).Hash); err != nil {
		return c.keyEnded(ctx, Caller(ctx).Hash, err)
	}
	return nil
}

// keyEnded converts an error of KeyByHash. Whoever has the secret of a key may know that
// it is revoked or expired.
func (c *Chain) keyEnded(ctx context.Context, hash []byte, err error) error {
	if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	e := *ErrUnauthorized
	switch k, err := c.store.EndedKey(ctx, hash); {
	case errors.Is(err, store.ErrNotFound):
	case err != nil:
		return err
	case k.RevokedAt != nil:
		e.Message = "this API key was revoked at " + k.RevokedAt.Format(time.RFC3339) + ": use another"
	default:
		e.Message = "this API key expired at " + k.ExpiresAt.Format(time.RFC3339) + ": use another"
	}
	return &e
}

func addressAllowed(cidrs []string, ip netip.Addr) bool {
	if len(cidrs) == 0 {
		return true
	}
	return slices.ContainsFunc(cidrs, func(cidr string) bool {
		p, err := netip.ParsePrefix(cidr)
		return err == nil && p.Contains(ip)
	})
}

// hasAnyScope reports whether the scopes in have grant at least one of want. An
// empty want permits every key.
func hasAnyScope(have, want []string) bool {
	return len(want) == 0 || slices.ContainsFunc(want, func(w string) bool { return HasScope(have, w) })
}

// CodesRead is the scope that permits only the view of codes. The operations with
// that view list it among their scopes and check it.
const CodesRead = "codes:read"

// implied lists the scopes that include another scope; "*" and "admin" include
// all.
var implied = map[string][]string{
	CodesRead:        {"read"},
	"emails:read":    {"read"},
	"contacts:read":  {"read", "contacts:write"},
	"templates:read": {"read", "templates:write"},
	"domains:read":   {"read", "domains:write"},
	"emails:send":    {"send"},
}

// HasScope reports whether the scopes in have grant want.
func HasScope(have []string, want string) bool {
	return slices.ContainsFunc(have, func(h string) bool {
		return h == want || h == "*" || h == "admin" || slices.Contains(implied[want], h)
	})
}

// refuse converts an error, and counts it against the client address if the caller has no
// key that may be used.
func (c *Chain) refuse(ctx context.Context, err error) *Error {
	e := c.Classify(ctx, err)
	if e.Status == http.StatusUnauthorized || e.Code == gen.ErrorCodeIPNotAllowed {
		return c.countByAddress(ctx, e)
	}
	return e
}

// countByAddress counts a request refused with e against the client address. Past the
// limit it returns a 429 error instead of e.
func (c *Chain) countByAddress(ctx context.Context, e *Error) *Error {
	if err := c.LimitAddress(ctx); err != nil {
		return c.Classify(ctx, err)
	}
	return e
}
