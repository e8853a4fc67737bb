package store

import (
	"context"
	"encoding/json"
	"fmt"
)

// Approval is the decision to send a draft.
type Approval struct {
	// DraftSeq and DraftID are the draft's.
	DraftSeq int64
	DraftID  string
	// Version is the one that was approved.
	Version int
	// By is the id of the key or user who decided.
	By string
}

const approveDraft = `
	UPDATE drafts
	   SET status = 'sent', message_id = $3, thread_seq = $4, thread_id = $5, decided_by = $6, decided_at = $7, updated_at = $7
	 WHERE seq = $1 AND version = $2 AND status = 'pending' AND expired_at IS NULL`

// SendDraft is Enqueue for the mail that an approved draft makes: the draft is
// sent by the same transaction. ErrState when it has been decided, edited or
// deleted since it was read; then nothing is sent.
func (s *Store) SendDraft(ctx context.Context, m *NewMessage, a Approval, once *Once) (Message, error) {
	return s.addOne(ctx, "send draft", m, hotWrite{approval: &a, once: once})
}

// approve notes that a draft has become the message m. It comes after the
// answers, so that of two equal calls at a time the second is told that it is
// one.
func (b *hotBatch) approve(ctx context.Context, a *Approval, m *Message) error {
	res, err := b.tx.StmtContext(ctx, b.store.hot.approveDraft).
		ExecContext(ctx, a.DraftSeq, int64(a.Version), m.ID, m.ThreadSeq, m.ThreadID, a.By, b.now.UnixMicro())
	if err != nil {
		return errIn("send draft", err)
	}
	if err := one(res, "draft "+a.DraftID, ErrState); err != nil {
		return err
	}
	data, err := json.Marshal(DraftEventData{DraftID: a.DraftID, Status: DraftSent})
	if err != nil {
		return fmt.Errorf("write event: %w", err)
	}
	b.event(NewID("evt_", b.now.Time), EventDraftSent, m, string(data))
	return nil
}
