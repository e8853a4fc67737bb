package contract_test

import (
	"bytes"
	"net/http"
	"testing"

	"github.com/postroom/postroom/internal/contractcheck"
)

const idempotencyKey = "Idempotency-Key"

// eachRepeatable runs test for every operation that accepts an idempotency key.
func (w *world) eachRepeatable(t *testing.T, test func(t *testing.T, op *contractcheck.Operation)) {
	t.Helper()
	w.eachOperation(t, func(t *testing.T, op *contractcheck.Operation) {
		if op.Parameters.GetByInAndName("header", idempotencyKey) != nil {
			test(t, op)
		}
	})
}

func repeatsGetTheSameResponse(t *testing.T, w *world) {
	w.eachRepeatable(t, func(t *testing.T, op *contractcheck.Operation) {
		c := w.good(t, op).with(idempotencyKey, "once")
		first, again := w.send(t, c).wantDone(t), w.send(t, c).wantDone(t)
		if first.status != again.status || !bytes.Equal(first.body, again.body) {
			t.Errorf("first %d %s\nthen %d %s", first.status, first.body, again.status, again.body)
		}
		if f, a := first.header.Get("Idempotent-Replayed"), again.header.Get("Idempotent-Replayed"); f != "" || a != "true" {
			t.Errorf("Idempotent-Replayed: first %q, then %q", f, a)
		}
		names := examples(op)
		if len(names) < 2 {
			t.Fatal("this operation needs two examples: the second is another body under the same key")
		}
		c.body = w.example(t, op, names[1])
		w.send(t, c).wantCode(t, http.StatusUnprocessableEntity, "idempotency_key_reused")
	})
}

// aRepeatDuringACallIsRefused blocks the database, so that a call stays busy,
// and repeats it.
func aRepeatDuringACallIsRefused(t *testing.T, w *world) {
	w.eachRepeatable(t, func(t *testing.T, op *contractcheck.Operation) {
		c := w.good(t, op).with(idempotencyKey, "during")
		release := w.holdWrites(t.Context(), t)
		defer release()
		responses := make(chan response, 2)
		for range 2 {
			req := w.request(t.Context(), t, c)
			go func() {
				a, err := w.try(t, req)
				if err != nil {
					t.Error(err)
				}
				responses <- a
			}()
		}
		(<-responses).wantCode(t, http.StatusConflict, "idempotency_in_progress")
		release()
		(<-responses).wantDone(t)
	})
}
