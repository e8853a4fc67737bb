package store

import (
	"context"
	"strings"
)

// newestEvent reads the lock that every INSERT holds on its table, from before
// it takes a number until its transaction has ended: who holds it may bring an
// event with a number lower than the newest, and nobody else. Unlike the oldest
// transaction of the server this says nothing of other work on it, which may
// take long. A transaction is visible to others before it gives its locks back,
// so whoever reads events after this sees those of the ones that are not named.
func (d *postgresDialect) newestEvent(ctx context.Context) (int64, []string, error) {
	const q = `SELECT coalesce((SELECT max(seq) FROM events), 0) AS newest,
		coalesce((SELECT string_agg(DISTINCT virtualtransaction, ' ') FROM pg_locks
			WHERE locktype = 'relation' AND relation = cast('events' AS regclass) AND mode = 'RowExclusiveLock' AND granted
			  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())), '') AS writers`
	var row struct {
		Newest  int64  `db:"newest"`
		Writers string `db:"writers"`
	}
	err := d.read.GetContext(ctx, &row, q)
	return row.Newest, strings.Fields(row.Writers), err
}
