package store

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// heldFor is for how long writes to an inbox that another transaction holds
	// are refused before one of them tries again.
	heldFor = 5 * time.Second
	// maxHeld bounds how many such inboxes are remembered.
	maxHeld = 10_000
)

// errLocked means that another transaction holds a row for longer than
// lock_timeout. It comes with ErrUnavailable.
var errLocked = errors.New("another transaction holds the row")

// heldInboxes are the inboxes that another transaction holds, such as that of a
// node that stopped in the middle of it. Their mail is refused at once, so that
// it does not keep the mail for other inboxes waiting.
type heldInboxes struct {
	mu    sync.Mutex
	until map[int64]time.Time
}

// check returns an error when one of the inboxes is held. After heldFor it lets
// one write pass: probe says that it may fail.
func (h *heldInboxes) check(inboxes []int64, now time.Time) (probe bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.until) == 0 {
		return false, nil
	}
	for _, seq := range inboxes {
		until, held := h.until[seq]
		if held && now.Before(until) {
			return false, fmt.Errorf("%w: inbox %d: %w", ErrUnavailable, seq, errLocked)
		}
		probe = probe || held
	}
	for _, seq := range inboxes {
		if probe {
			h.until[seq] = now.Add(heldFor)
		}
	}
	return probe, nil
}

// note notes that a write to the inboxes failed on a lock.
func (h *heldInboxes) note(inboxes []int64, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.until == nil || len(h.until) >= maxHeld {
		h.until = map[int64]time.Time{}
	}
	for _, seq := range inboxes {
		h.until[seq] = now.Add(heldFor)
	}
}

// free notes that a write to the inboxes passed.
func (h *heldInboxes) free(inboxes []int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, seq := range inboxes {
		delete(h.until, seq)
	}
}

// inboxes are the sequence numbers of the inboxes that w locks.
func (w *hotWrite) inboxes() []int64 {
	var seqs []int64
	for _, m := range w.messages {
		seqs = append(seqs, m.msg.InboxSeq)
	}
	for _, e := range w.emails {
		if e.policy != "" {
			seqs = append(seqs, *e.email.FromInbox)
		}
	}
	return seqs
}
