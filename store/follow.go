package store

import "context"

// followMost is for how many new events inboxes are woken one by one; for more,
// all are.
const followMost = 2000

// follower wakes the sleepers of this node for the events of other nodes. An event
// gets its number before its transaction commits, so that one with a lower number
// may appear later than one with a higher. The follower goes by an EventTail: it
// looks again at what is not settled, and wakes for each event once.
type follower struct {
	store *Store
	tail  *EventTail
	from  int64              // no event up to here can appear any more
	woken map[int64]struct{} // events above from that were woken for
	known bool               // from is
	epoch int                // of the tail
}

func newFollower(s *Store) *follower {
	return &follower{store: s, tail: s.TailEvents(), woken: map[int64]struct{}{}}
}

func (f *follower) look(ctx context.Context) error {
	settled, known, pending, err := f.tail.Settle(ctx)
	if err != nil {
		return err
	}
	if f.epoch != f.tail.Epoch() { // the numbers have gone back
		f.known, f.epoch = false, f.tail.Epoch()
	}
	if !f.known {
		// What was under way when the store opened has numbers that are not known.
		f.store.wake.wakeAll()
		f.from, f.known = settled, known
		clear(f.woken)
		return nil
	}
	if settled > f.from || pending {
		if err := f.wake(ctx); err != nil {
			return err
		}
	}
	f.from = max(f.from, settled)
	for seq := range f.woken {
		if seq <= f.from {
			delete(f.woken, seq)
		}
	}
	return nil
}

// wake wakes the inboxes of the events that are new.
func (f *follower) wake(ctx context.Context) error {
	const since = `SELECT seq, coalesce(inbox_seq, 0) AS inbox_seq FROM events WHERE seq > $1 ORDER BY seq LIMIT $2`
	var rows []struct {
		Seq      int64 `db:"seq"`
		InboxSeq int64 `db:"inbox_seq"`
	}
	if err := f.store.reads.All(ctx, &rows, since, f.from, followMost+1); err != nil {
		return f.store.wrap(err, "new events")
	}
	if len(rows) > followMost {
		f.store.wake.wakeAll()
		return nil
	}
	var inboxes []int64
	for _, r := range rows {
		if _, was := f.woken[r.Seq]; !was {
			f.woken[r.Seq] = struct{}{}
			inboxes = append(inboxes, r.InboxSeq)
		}
	}
	if len(inboxes) > 0 {
		f.store.wakeFollowed(inboxes)
	}
	return nil
}
