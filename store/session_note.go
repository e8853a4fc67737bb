package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
)

// SessionNoteTTL is how long a note of a session can be taken.
const SessionNoteTTL = 10 * time.Minute

// LeaveNote keeps a secret for a session until TakeNote returns it, but no longer
// than SessionNoteTTL or the session. The secret is encrypted at rest. A later note
// with the same subject replaces an earlier one. ErrNotFound if the session has
// ended.
func (s *Store) LeaveNote(ctx context.Context, session []byte, subject, secret string) error {
	const q = `
		INSERT INTO session_notes (session_hash, subject, sealed, expires_at)
		SELECT hash, $2, $3, $4 FROM user_sessions WHERE hash = $1
		ON CONFLICT (session_hash, subject) DO UPDATE SET sealed = excluded.sealed, expires_at = excluded.expires_at`
	sealed := s.seal.seal(noteLabel(session, subject), []byte(secret))
	return s.inTx(ctx, "leave note", func(tx *sqlx.Tx) error {
		res, err := tx.ExecContext(ctx, q, session, subject, sealed, NewTime(s.now().Add(SessionNoteTTL)))
		if err != nil {
			return err
		}
		return one(res, "session", ErrNotFound)
	})
}

// TakeNote returns the secret that LeaveNote kept, and deletes it. ErrNotFound if
// there is none, it was taken before, or it has expired.
func (s *Store) TakeNote(ctx context.Context, session []byte, subject string) (string, error) {
	const q = `DELETE FROM session_notes WHERE session_hash = $1 AND subject = $2 AND expires_at > $3 RETURNING sealed`
	var sealed []byte
	err := s.inTx(ctx, "take note", func(tx *sqlx.Tx) error {
		return tx.GetContext(ctx, &sealed, q, session, subject, NewTime(s.now()))
	})
	if err != nil {
		return "", err
	}
	secret, err := s.seal.open(noteLabel(session, subject), sealed)
	if err != nil {
		return "", fmt.Errorf("note %s: %w", subject, err)
	}
	return string(secret), nil
}

// SweepNotes deletes some of the notes that have expired, and returns how many; 0
// means that there were none.
func (s *Store) SweepNotes(ctx context.Context) (int, error) {
	const q = `DELETE FROM session_notes WHERE (session_hash, subject) IN
		(SELECT session_hash, subject FROM session_notes WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)`
	return s.sweep(ctx, "sweep notes", q, NewTime(s.now()), sweepBatch)
}

func noteLabel(session []byte, subject string) string {
	return fmt.Sprintf("note %x %s", session, subject)
}
