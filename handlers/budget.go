package handlers

import (
	"context"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/store"
)

// limitsFromAPI returns limits as stored; nil for none.
func limitsFromAPI(f gen.OptNilSendLimits) *store.JSON[store.Limits] {
	v, ok := f.Get()
	if !ok {
		return nil
	}
	l := store.Limits{OnLimit: store.OnLimit(v.OnLimit.Or(gen.SendLimitsOnLimitRefuse))}
	given := []gen.OptNilInt64{
		v.SendsPerMinute, v.SendsPerHour, v.SendsPerDay, v.RecipientsPerDay, v.NewRecipientsPerDay, v.PerRecipientPerDay, v.SimilarPerHour,
	}
	for i, field := range store.LimitFields() {
		if n, ok := given[i].Get(); ok {
			*field.Of(&l) = &n
		}
	}
	if l.None() {
		return nil
	}
	return &store.JSON[store.Limits]{V: l}
}

func limitsToAPI(l *store.Limits) gen.NilActiveLimits {
	if l == nil {
		return gen.NilActiveLimits{Null: true}
	}
	return gen.NewNilActiveLimits(gen.ActiveLimits{
		SendsPerMinute: nilInt(l.SendsPerMinute), SendsPerHour: nilInt(l.SendsPerHour), SendsPerDay: nilInt(l.SendsPerDay),
		RecipientsPerDay: nilInt(l.RecipientsPerDay), NewRecipientsPerDay: nilInt(l.NewRecipientsPerDay),
		PerRecipientPerDay: nilInt(l.PerRecipientPerDay), SimilarPerHour: nilInt(l.SimilarPerHour), OnLimit: string(l.OnLimit),
	})
}

func nilInt(n *int64) gen.NilInt64 {
	if n == nil {
		return gen.NilInt64{Null: true}
	}
	return gen.NewNilInt64(*n)
}

// checkLimitsChange refuses to raise or remove a limit to a key without the scope admin,
// and to a key with limits: it could lift its own.
func checkLimitsChange(by store.Key, before, after *store.Limits) error {
	limit := before.Looser(after)
	switch {
	case limit == "":
		return nil
	case !by.Bounds().None():
		return errNeedsAdmin("limits", "limits.%s is higher than before: use a key without limits", limit)
	case !isAdmin(by):
		return errNeedsAdmin("limits", "raising limits.%s needs the scope admin", limit)
	}
	return nil
}

// senderOf returns the caller as a sender.
func senderOf(ctx context.Context) store.Sender {
	k := httpapi.Caller(ctx)
	return store.Sender{ID: k.ID, Limits: k.Bounds()}
}
