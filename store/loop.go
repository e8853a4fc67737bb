package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/postroom/postroom/store/internal/batch"
)

const (
	// MaxThreadSends is how many messages a thread takes from us within
	// ThreadSendsWindow.
	MaxThreadSends = 20
	// ThreadSendsWindow is how long a message counts.
	ThreadSendsWindow = time.Hour
)

const recentSends = `SELECT thread_seq, count(*) FROM messages
	WHERE thread_seq IN ({rows}) AND direction = 'out' AND created_at > {n} GROUP BY thread_seq`

// guardThreads refuses a message that would be one too many of ours in its
// thread: two programs that answer each other would go on for ever. The inboxes
// are held, so nobody else adds to their threads meanwhile.
func (b *hotBatch) guardThreads(ctx context.Context) error {
	var known [][2]int64
	for _, h := range b.messages {
		if h.msg.Direction == DirectionOut && !h.thread.isNew {
			known = append(known, [2]int64{h.thread.seq})
		}
	}
	if len(known) == 0 {
		return nil
	}
	sends := map[int64]int{}
	err := b.store.hot.recentSends.Find(ctx, b.tx, batch.Sorted(known), func(rows *sql.Rows) error {
		var thread int64
		var n int
		err := rows.Scan(&thread, &n)
		sends[thread] = n
		return err
	}, b.now.Add(-ThreadSendsWindow).UnixMicro())
	if err != nil {
		return errIn("count the sends of threads", err)
	}
	for _, h := range b.messages {
		if h.msg.Direction != DirectionOut || h.thread.isNew {
			continue
		}
		if sends[h.thread.seq]++; sends[h.thread.seq] > MaxThreadSends {
			return b.ofMessage(h, fmt.Errorf("thread %s: %w", h.thread.id, ErrLoop))
		}
	}
	return nil
}
