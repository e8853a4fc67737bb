package store

import (
	"context"
	"strings"
)

// eventLog reads the lock that every INSERT holds on its table, from before it
// takes a number until its transaction has ended: its holder may bring an event
// with a number lower than the newest, and no other transaction can. Unlike the
// oldest transaction of the server this says nothing of other work on it, which
// may take long. A transaction is visible to others before it gives its locks
// back, so a reader that reads events after this sees those of the transactions
// that are not named.
func (d *postgresDialect) eventLog(ctx context.Context) (logState, error) {
	const q = `SELECT coalesce((SELECT max(seq) FROM events), 0) AS newest,
		coalesce(pg_sequence_last_value(cast(pg_get_serial_sequence('events', 'seq') AS regclass)), 0) AS last_number,
		coalesce((SELECT string_agg(DISTINCT virtualtransaction, ' ') FROM pg_locks
			WHERE locktype = 'relation' AND relation = cast('events' AS regclass) AND mode = 'RowExclusiveLock' AND granted
			  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())), '') AS writers`
	var row struct {
		Newest  int64  `db:"newest"`
		Last    int64  `db:"last_number"`
		Writers string `db:"writers"`
	}
	err := d.read.GetContext(ctx, &row, q)
	return logState{newest: row.Newest, last: row.Last, writers: strings.Fields(row.Writers)}, err
}
