package handlers

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
	"sync"
	"time"

	"github.com/ogen-go/ogen/middleware"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/store"
)

const idempotencyHeader = "Idempotency-Key"

// cachedTypes are the answers that can be stored, by the name they are stored
// under. The names stand in databases: never change one.
var cachedTypes = map[string]func() any{
	"Contact":            func() any { return new(gen.Contact) },
	"ContactBatchResult": func() any { return new(gen.ContactBatchResult) },
	"Domain":             func() any { return new(gen.Domain) },
	"Draft":              func() any { return new(gen.Draft) },
	"EmailBatch":         func() any { return new(gen.EmailBatch) },
	"EmailCreated":       func() any { return new(gen.EmailCreated) },
	"Inbox":              func() any { return new(gen.Inbox) },
	"Message":            func() any { return new(gen.Message) },
	"Suppression":        func() any { return new(gen.Suppression) },
	"Template":           func() any { return new(gen.Template) },
}

// runningCalls are the calls with an idempotency key that this node is busy
// with.
type runningCalls struct {
	mu    sync.Mutex
	calls map[string]struct{}
}

// begin says whether no other call with that key runs, and if so notes this one
// until end is called.
func (r *runningCalls) begin(key string) (end func(), ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, busy := r.calls[key]; busy {
		return nil, false
	}
	if r.calls == nil {
		r.calls = map[string]struct{}{}
	}
	r.calls[key] = struct{}{}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.calls, key)
	}, true
}

type onceKey struct{}

// once returns what the handler hands to the store with its work, so that the
// answer is kept by the same transaction; nil when the call has no key. toAPI
// makes the answer out of the stored row.
func once[Row any](ctx context.Context, status int, kind string, toAPI func(Row) (any, error)) *store.Once {
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

// idempotencyKey is the key of a call, by the header Idempotency-Key or by the
// field that an email has for it.
func idempotencyKey(req middleware.Request) (key string, ok bool, err error) {
	v, _ := req.Params.Header(idempotencyHeader)
	header, _ := v.(gen.OptString)
	var field gen.OptString
	if e, isEmail := req.Body.(*gen.EmailSend); isEmail {
		field = e.IdempotencyKey
	}
	if header.Set && field.Set && header.Value != field.Value {
		return "", false, errInvalid("idempotencyKey", "is another than the header %s", idempotencyHeader)
	}
	if field.Set {
		header = field
	}
	return header.Value, header.Set, nil
}

// idempotent answers a repeated call under the same idempotency key with what the
// first one was answered.
func (a *API) idempotent(req middleware.Request, next middleware.Next) (middleware.Response, error) {
	key, ok, err := idempotencyKey(req)
	if err != nil {
		return middleware.Response{}, err
	}
	within := onceWithin(req.Context)
	if !ok && within == 0 {
		return next(req)
	}
	hash, err := bodyHash(req.RawBody, infoOf(req.Context).kept)
	if err != nil {
		return middleware.Response{}, err
	}
	o := store.Once{
		AccountID: callerOf(req.Context).AccountID, Operation: onceOperation(req), Key: key, BodyHash: hash,
	}
	if !ok {
		o.Key, o.TTL = impliedKey(callerOf(req.Context), hash), within
	}
	end, ok := a.running.begin(fmt.Sprintf("%d %s %s", o.AccountID, o.Operation, o.Key))
	if !ok {
		return middleware.Response{}, &apiError{
			status: http.StatusConflict, code: gen.ErrorCodeIdempotencyInProgress, param: idempotencyHeader, retryAfter: 1,
			message: "a request with this Idempotency-Key is still running",
		}
	}
	defer end()
	if res, err := a.replay(req.Context, o); !errors.Is(err, store.ErrNotFound) {
		return res, err
	}
	ctx := req.Context
	req.SetContext(context.WithValue(ctx, onceKey{}, o))
	res, err := next(req)
	switch {
	case err == nil:
		return res, nil
	case errors.Is(err, store.ErrIdempotencyRaced): // another node was faster
		return a.replay(ctx, o)
	}
	// What was refused may be what this very call has changed on another node:
	// the draft is sent, the last of the plan is taken.
	if first, replayErr := a.replay(ctx, o); replayErr == nil {
		return first, nil
	}
	return res, err
}

// onceOperation is what an idempotency key is for: the method and path. Test keys
// and live keys do different things there, so they have separate idempotency keys.
func onceOperation(req middleware.Request) string {
	operation := req.Raw.Method + " " + req.Raw.URL.Path
	if callerOf(req.Context).Mode == store.KeyTest {
		operation = "test " + operation
	}
	return operation
}

// replay returns the stored answer, or ErrNotFound when there is none that the
// caller may see: the call itself then says what is wrong.
func (a *API) replay(ctx context.Context, o store.Once) (middleware.Response, error) {
	ans, err := a.store.CachedResponseTo(ctx, o)
	if err != nil {
		return middleware.Response{}, err
	}
	newType := cachedTypes[ans.Kind]
	if newType == nil {
		return middleware.Response{}, fmt.Errorf("stored answer of unknown type %q", ans.Kind)
	}
	v := newType()
	if err := json.Unmarshal(ans.Body, v); err != nil {
		return middleware.Response{}, fmt.Errorf("read stored answer: %w", err)
	}
	if !a.seesCached(ctx, v) {
		return middleware.Response{}, fmt.Errorf("stored answer: %w", store.ErrNotFound)
	}
	if !bytes.Equal(ans.BodyHash, o.BodyHash) {
		return middleware.Response{}, &apiError{
			status: http.StatusUnprocessableEntity, code: gen.ErrorCodeIdempotencyKeyReused, param: idempotencyHeader,
			message: "this Idempotency-Key was used with another body",
		}
	}
	if w := infoOf(ctx).w; w != nil {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	return middleware.Response{Type: v}, nil
}

// seesCached says whether the caller may see what an answer tells of. Keys of one
// account share its idempotency keys, but need not see the same inboxes.
func (a *API) seesCached(ctx context.Context, answer any) bool {
	ids := visible(callerOf(ctx))
	if ids == nil {
		return true
	}
	switch v := answer.(type) {
	case *gen.Domain:
		return true // is of no inbox
	case *gen.Inbox:
		return slices.Contains(ids, v.ID)
	case *gen.Draft:
		return slices.Contains(ids, v.InboxID)
	case *gen.Message:
		return slices.Contains(ids, v.InboxID)
	case *gen.EmailCreated:
		return a.seesEmail(ctx, v.ID)
	case *gen.EmailBatch:
		return a.seesEmail(ctx, v.Emails[0].ID) // all are from one sender
	case *gen.Contact, *gen.ContactBatchResult, *gen.Suppression, *gen.Template: // are of no inbox
		return true
	}
	return false
}

func (a *API) seesEmail(ctx context.Context, id string) bool {
	_, err := a.emailOf(ctx, id)
	return err == nil
}

// bodyHash is equal for bodies with the same meaning, whatever the order of their
// fields and the space between them, and whether contents are kept out of them.
// The field idempotencyKey is not part of it: the same key may be in the header.
func bodyHash(body []byte, kept *keptContents) ([]byte, error) {
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
		}
		var same bytes.Buffer
		if err := json.NewEncoder(&same).Encode(v); err != nil {
			return nil, fmt.Errorf("hash the body: %w", err)
		}
		if err := kept.writeWhole(h, same.Bytes()); err != nil {
			return nil, fmt.Errorf("hash the body: %w", err)
		}
	}
	return h.Sum(nil), nil
}

type onceWithinKey struct{}

// OnceWithin makes a call within this process that has no idempotency key happen
// once in d, at most store.CachedResponseTTL, on all nodes together: the same call by the
// same caller is answered with what the first one was. It is for callers that do
// not know whether they have made a call already.
func OnceWithin(ctx context.Context, d time.Duration) context.Context {
	return context.WithValue(ctx, onceWithinKey{}, d)
}

// onceWithin returns 0 for a call that may be made several times.
func onceWithin(ctx context.Context) time.Duration {
	d, _ := ctx.Value(onceWithinKey{}).(time.Duration)
	return d
}

// impliedKey returns the idempotency key of a call without one. A header cannot
// contain it, so no client can choose it.
func impliedKey(k store.Key, bodyHash []byte) string {
	return "\x01" + k.ID + " " + hex.EncodeToString(bodyHash)
}
