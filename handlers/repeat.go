package handlers

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/postroom/postroom/store"
)

type onceWithinKey struct{}

// OnceWithin makes a call within this process that has no idempotency key happen
// once in d, at most store.CachedResponseTTL, on all nodes together: the same call by the
// same caller is answered with what the first one was. It is for callers that do
// not know whether they have made a call already.
func OnceWithin(ctx context.Context, d time.Duration) context.Context {
	return context.WithValue(ctx, onceWithinKey{}, d)
}

// onceWithin is 0 for calls that may be repeated.
func onceWithin(ctx context.Context) time.Duration {
	d, _ := ctx.Value(onceWithinKey{}).(time.Duration)
	return d
}

// repeatKey stands for the idempotency key of a call that has none. It cannot be
// written in a header, so nobody can choose it.
func repeatKey(k store.Key, bodyHash []byte) string {
	return "\x01" + k.ID + " " + hex.EncodeToString(bodyHash)
}
