package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
)

// DeletedLife is how long the place of a deleted message is kept.
const DeletedLife = 30 * 24 * time.Hour

// Place returns where a message of the inbox stands, or stood before it was
// deleted. ErrNotFound for what is not, and was not, a message of this inbox.
func (s *Store) Place(ctx context.Context, inboxSeq int64, id string) (Place, error) {
	const q = `
		SELECT created_at, seq FROM messages WHERE inbox_seq = $1 AND id = $2
		UNION ALL
		SELECT created_at, seq FROM deleted_messages WHERE inbox_seq = $1 AND id = $2
		LIMIT 1`
	var p Place
	err := s.wrap(s.reads.One(ctx, &p, q, inboxSeq, id), "message "+id)
	if !errors.Is(err, ErrNotFound) {
		return p, err
	}
	return s.formerPlace(ctx, id, err)
}

// formerPlace returns the place of a message that has been gone for longer than
// DeletedLife, by the time in its id; unknown otherwise.
func (s *Store) formerPlace(ctx context.Context, id string, unknown error) (Place, error) {
	const elsewhere = `
		SELECT count(*) FROM (SELECT id FROM messages WHERE id = $1 UNION ALL SELECT id FROM deleted_messages WHERE id = $1) a`
	at, ok := timeOfID("msg_", id)
	if !ok || at.After(s.now().Add(-DeletedLife)) {
		return Place{}, unknown
	}
	var n int
	if err := s.reads.One(ctx, &n, elsewhere, id); err != nil || n > 0 {
		return Place{}, errors.Join(unknown, s.wrap(err, "message"))
	}
	return Place{NewTime(at), math.MaxInt64}, nil
}

// timeOfID returns the time at which an id with this prefix was made.
func timeOfID(prefix, id string) (time.Time, bool) {
	body, ok := strings.CutPrefix(id, prefix)
	b, err := crockford.DecodeString(body)
	if !ok || err != nil || len(b) != 16 {
		return time.Time{}, false
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(b) >> 16)), true //nolint:gosec // 48 bits
}

// keepPlace keeps where a message stands that the transaction deletes.
func (s *Store) keepPlace(ctx context.Context, tx *sqlx.Tx, messageSeq int64) error {
	const q = `
		INSERT INTO deleted_messages (id, inbox_seq, seq, created_at, deleted_at)
		SELECT id, inbox_seq, seq, created_at, $2 FROM messages WHERE seq = $1`
	_, err := tx.ExecContext(ctx, q, messageSeq, NewTime(s.now()))
	return errIn("keep the place of a message", err)
}

// SweepDeleted deletes some of the places that were kept for longer than
// DeletedLife, and returns how many; 0 means that there were none.
func (s *Store) SweepDeleted(ctx context.Context) (int, error) {
	const q = `DELETE FROM deleted_messages WHERE id IN (SELECT id FROM deleted_messages WHERE deleted_at <= $1 ORDER BY deleted_at LIMIT $2)`
	n, err := s.sweep(ctx, "sweep deleted messages", q, NewTime(s.now().Add(-DeletedLife)), sweepBatch)
	if err != nil {
		return n, fmt.Errorf("places of deleted messages: %w", err)
	}
	return n, nil
}
