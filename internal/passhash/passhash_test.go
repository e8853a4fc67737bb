package passhash

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestPasswordHash(t *testing.T) {
	t.Parallel()
	h := New()
	hash, err := h.Hash(t.Context(), "four words of mine")
	if err != nil {
		t.Fatal(err)
	}
	for password, want := range map[string]bool{"four words of mine": true, "four words of min": false, "": false} {
		if ok, err := h.Matches(t.Context(), &hash, password); ok != want || err != nil {
			t.Errorf("%q: %v, %v, want %v", password, ok, err, want)
		}
	}
	if ok, err := h.Matches(t.Context(), nil, ""); ok || err != nil {
		t.Errorf("a user without a password: %v, %v", ok, err)
	}
	for _, broken := range []string{"", "$argon2id$v=19$m=65536,t=2,p=1$c2FsdA", "$argon2id$v=19$m=4194304,t=2,p=1$c2FsdA$c3Vt", "$2a$10$abc"} {
		if ok, err := h.Matches(t.Context(), &broken, "x"); ok || err == nil {
			t.Errorf("%q: %v, %v, want an error", broken, ok, err)
		}
	}
}

// X3: guessing fills no memory: who comes when others are being served waits.
func TestPasswordsWaitForMemory(t *testing.T) {
	t.Parallel()
	h := New()
	if !h.memory.TryAcquire(maxHashing - hashMemory + 1) {
		t.Fatal("no memory at first")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := h.Hash(ctx, "x"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without memory: %v, want to wait", err)
	}
	h.memory.Release(maxHashing - hashMemory + 1)
	if _, err := h.Hash(t.Context(), "x"); err != nil {
		t.Error(err)
	}
}
