package httpapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/ogen-go/ogen/middleware"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/store"
)

const idempotencyHeader = "Idempotency-Key"

// cachedTypes maps names to the response types that can be cached. The names
// are stored in databases: never change one.
var cachedTypes = map[string]func() any{
	"Contact":            func() any { return new(gen.Contact) },
	"ContactBatchResult": func() any { return new(gen.ContactBatchResult) },
	"Domain":             func() any { return new(gen.Domain) },
	"Draft":              func() any { return new(gen.Draft) },
	"EmailBatch":         func() any { return new(gen.EmailBatch) },
	"EmailCreated":       func() any { return new(gen.EmailCreated) },
	"ListEntry":          func() any { return new(gen.ListEntry) },
	"Inbox":              func() any { return new(gen.Inbox) },
	"Message":            func() any { return new(gen.Message) },
	"Suppression":        func() any { return new(gen.Suppression) },
	"Template":           func() any { return new(gen.Template) },
}

type onceKey struct{}

// Once returns the value that makes the store cache the response in the same
// transaction, or nil without an idempotency key. toAPI converts the stored row
// to the response.
func Once[Row any](ctx context.Context, status int, kind string, toAPI func(Row) (any, error)) *store.Once {
	o, ok := ctx.Value(onceKey{}).(store.Once)
	if !ok {
		return nil
	}
	o.Render = func(row any) (store.CachedResponse, error) {
		v, err := toAPI(row.(Row)) //nolint:forcetypeassert // the handler knows what its store call stores
		if err != nil {
			return store.CachedResponse{}, err
		}
		body, err := json.Marshal(v)
		return store.CachedResponse{BodyHash: o.BodyHash, Status: status, Kind: kind, Body: body}, err
	}
	return &o
}

// idempotencyKey returns the key of a call, from the header Idempotency-Key or
// the field of an email.
func idempotencyKey(req middleware.Request) (key string, ok bool, err error) {
	v, _ := req.Params.Header(idempotencyHeader)
	header, _ := v.(gen.OptString)
	var field gen.OptString
	if e, isEmail := req.Body.(*gen.EmailSend); isEmail {
		field = e.IdempotencyKey
	}
	if header.Set && field.Set && header.Value != field.Value {
		return "", false, Invalid("idempotencyKey", "differs from the header %s", idempotencyHeader)
	}
	if field.Set {
		header = field
	}
	return header.Value, header.Set, nil
}

// idempotent returns the cached response to a repeated call with the same
// idempotency key.
func (c *Chain) idempotent(req middleware.Request, next middleware.Next) (middleware.Response, error) {
	key, ok, err := idempotencyKey(req)
	if err != nil {
		return middleware.Response{}, err
	}
	within := SpecialOf(req.Context).OnceWithin
	if !ok && within == 0 {
		return next(req)
	}
	hash, err := bodyHash(req.RawBody)
	if err != nil {
		return middleware.Response{}, err
	}
	k := Caller(req.Context)
	o := store.Once{AccountID: k.AccountID, Operation: req.Raw.Method + " " + req.Raw.URL.Path, Key: key, BodyHash: hash}
	if k.Mode == store.KeyTest { // what the calls of test keys and live keys do differs
		o.Operation = "test " + o.Operation
	}
	if !ok { // a header cannot contain this key, so no client can choose it
		o.Key, o.TTL = "\x01"+k.ID+" "+hex.EncodeToString(hash), within
	}
	v, replayed, err := c.RunOnce(req.Context, o, false, func(ctx context.Context) (any, error) {
		req.SetContext(ctx)
		res, err := next(req)
		return res.Type, err
	})
	if w := infoOf(req.Context).w; w != nil && replayed {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	return middleware.Response{Type: v}, err
}

// RunOnce runs a call, or returns its cached response. The call runs with a
// context for Once. When repeats are rare, the cached response is looked up only
// if the transaction of the call finds that it is there, or the call fails.
func (c *Chain) RunOnce(ctx context.Context, o store.Once, rare bool, call func(context.Context) (any, error)) (v any, replayed bool, err error) {
	name := fmt.Sprintf("%d %s %s", o.AccountID, o.Operation, o.Key)
	if _, busy := c.running.LoadOrStore(name, nil); busy {
		return nil, false, &Error{
			Status: http.StatusConflict, Code: gen.ErrorCodeIdempotencyInProgress, Param: idempotencyHeader, RetryAfter: 1,
			Message: "a request with this Idempotency-Key is still running",
		}
	}
	defer c.running.Delete(name)
	if !rare {
		if v, err := c.replay(ctx, o); !errors.Is(err, store.ErrNotFound) {
			return v, err == nil, err
		}
	}
	v, err = call(context.WithValue(ctx, onceKey{}, o))
	switch {
	case err == nil:
		return v, false, nil
	case errors.Is(err, store.ErrIdempotencyRaced): // a repeat, or another node was faster
		v, err = c.replay(ctx, o)
		return v, err == nil, err
	}
	// On another node the same call may have succeeded and caused this error:
	// it sent the draft or used up the plan.
	if first, replayErr := c.replay(ctx, o); replayErr == nil {
		return first, true, nil
	}
	return v, false, err
}

// replay returns the cached response, or ErrNotFound if there is none that the
// caller may see. The caller then runs the call, which reports its own error.
func (c *Chain) replay(ctx context.Context, o store.Once) (any, error) {
	ans, err := c.store.CachedResponseTo(ctx, o)
	if err != nil {
		return nil, err
	}
	if ans.Emptied() {
		if !bytes.Equal(ans.BodyHash, o.BodyHash) {
			return nil, errKeyReused
		}
		return nil, errEmptied
	}
	newType := cachedTypes[ans.Kind]
	if newType == nil {
		return nil, fmt.Errorf("cached response of unknown type %q", ans.Kind)
	}
	v := newType()
	if err := json.Unmarshal(ans.Body, v); err != nil {
		return nil, fmt.Errorf("read cached response: %w", err)
	}
	if !c.seesCached(ctx, v) {
		return nil, fmt.Errorf("cached response: %w", store.ErrNotFound)
	}
	if !bytes.Equal(ans.BodyHash, o.BodyHash) {
		return nil, errKeyReused
	}
	return v, nil
}

var (
	errKeyReused = &Error{
		Status: http.StatusUnprocessableEntity, Code: gen.ErrorCodeIdempotencyKeyReused, Param: idempotencyHeader,
		Message: "this Idempotency-Key was used with another body",
	}
	errEmptied = &Error{
		Status: http.StatusGone, Code: gen.ErrorCodeMessageExpired, Param: idempotencyHeader,
		Message: "this request is a repeat, and the message or draft that the first one created was deleted since, so nothing was sent again: " +
			"use another Idempotency-Key for a new request",
	}
)

// seesCached reports whether the caller may see a cached response. The keys of
// an account share idempotency keys, but not always inboxes.
func (c *Chain) seesCached(ctx context.Context, answer any) bool {
	k := Caller(ctx)
	ids := Visible(k)
	if ids == nil {
		return true
	}
	email := ""
	switch v := answer.(type) {
	case *gen.Inbox:
		return slices.Contains(ids, v.ID)
	case *gen.Draft:
		return slices.Contains(ids, v.InboxID)
	case *gen.Message:
		return slices.Contains(ids, v.InboxID)
	case *gen.EmailCreated:
		email = v.ID
	case *gen.EmailBatch: // all have the same sender
		if len(v.Emails) == 0 {
			d, err := c.store.Draft(ctx, k.AccountID, v.Drafts[0].DraftID)
			return err == nil && slices.Contains(ids, d.InboxID)
		}
		email = v.Emails[0].ID
	case *gen.Contact, *gen.ContactBatchResult, *gen.Domain, *gen.Suppression, *gen.Template:
		return true // belongs to no inbox
	default:
		return false
	}
	_, err := c.store.Email(ctx, k.AccountID, ids, email)
	return err == nil
}

// bodyHash is equal for bodies with the same meaning, regardless of field
// order and white space. It ignores the field idempotencyKey or idempotency_key, because the key
// may be in the header instead.
func bodyHash(body []byte) ([]byte, error) {
	h := sha256.New()
	if len(body) > 0 {
		var v any
		d := json.NewDecoder(bytes.NewReader(body))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			return nil, fmt.Errorf("hash the body: %w", err)
		}
		if fields, ok := v.(map[string]any); ok {
			delete(fields, "idempotencyKey")
			delete(fields, "idempotency_key")
		}
		if err := json.NewEncoder(h).Encode(v); err != nil {
			return nil, fmt.Errorf("hash the body: %w", err)
		}
	}
	return h.Sum(nil), nil
}
