package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/jmoiron/sqlx"
)

// mendMost is up to how many messages of a thread are read to find who is in
// none of them, while other mail waits. A larger thread keeps the names of those
// whose mail is deleted until it is smaller.
const mendMost = 200

// shrinkThreads takes deleted messages out of their threads, and deletes the
// threads that have no others.
func shrinkThreads(ctx context.Context, tx *sqlx.Tx, gone []oldMessage) error {
	const (
		count = `UPDATE threads SET message_count = message_count - $2 WHERE seq = $1 RETURNING message_count`
		empty = `DELETE FROM threads WHERE seq IN (?) AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.thread_seq = threads.seq)`
	)
	lost := map[int64]int{}
	for _, m := range gone {
		lost[m.ThreadSeq]++
	}
	threads := rising(gone, func(m oldMessage) int64 { return m.ThreadSeq })
	for _, seq := range threads {
		var left int
		if err := tx.GetContext(ctx, &left, count, seq, lost[seq]); err != nil {
			return errIn("count a thread", err)
		}
		if left == 0 {
			continue
		}
		if err := mendThread(ctx, tx, seq, left <= mendMost); err != nil {
			return errIn("mend a thread", err)
		}
	}
	return errIn("delete empty threads", execIn(ctx, tx, empty, threads))
}

// mendThread makes a thread tell of the messages that it has left alone, after
// others were deleted from it; of their people only if asked to.
func mendThread(ctx context.Context, tx *sqlx.Tx, threadSeq int64, people bool) error {
	const update = `
		UPDATE threads
		   SET last_message_at = (SELECT max(m.created_at) FROM messages m WHERE m.thread_seq = $1),
		       subject = (SELECT m.subject FROM messages m WHERE m.thread_seq = $1 ORDER BY m.created_at, m.seq LIMIT 1)
		 WHERE seq = $1`
	if _, err := tx.ExecContext(ctx, update, threadSeq); err != nil || !people {
		return err
	}
	var all JSON[[]string]
	if err := tx.GetContext(ctx, &all, `SELECT participants FROM threads WHERE seq = $1`, threadSeq); err != nil {
		return err
	}
	gone, err := nowhereIn(ctx, tx, threadSeq, slices.Clone(all.V))
	if err != nil || len(gone) == 0 {
		return err
	}
	all.V = slices.DeleteFunc(all.V, func(p string) bool { return slices.Contains(gone, p) })
	_, err = tx.ExecContext(ctx, `UPDATE threads SET participants = $2 WHERE seq = $1`, threadSeq, all)
	return err
}

// nowhereIn returns those of the people who stand in no message of the thread.
// It looks at the newest messages first, and stops when all are found.
func nowhereIn(ctx context.Context, tx *sqlx.Tx, threadSeq int64, people []string) ([]string, error) {
	const q = `SELECT addresses FROM messages WHERE thread_seq = $1 ORDER BY created_at DESC`
	rows, err := tx.QueryContext(ctx, q, threadSeq)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // its error is that of rows.Err
	for len(people) > 0 && rows.Next() {
		var raw sql.RawBytes
		if err := rows.Scan(&raw); err != nil {
			return nil, err
		}
		var a Addresses
		if err := json.Unmarshal(raw, &a); err != nil {
			return nil, fmt.Errorf("addresses of a message: %w", err)
		}
		there := participants(a)
		people = slices.DeleteFunc(people, func(p string) bool { return slices.Contains(there, p) })
	}
	return people, errors.Join(rows.Err(), rows.Close())
}
