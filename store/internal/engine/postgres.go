package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/postroom/postroom/store/migrations"
)

// Writers have connections of their own, so that a thousand woken readers do
// not keep a commit waiting.
const (
	postgresWriters = 6
	postgresReaders = 10
)

// postgresEngine is one PostgreSQL database, shared by any number of nodes.
type postgresEngine struct {
	url string
	// within is how long the server may take to respond to a statement; 0: it has all
	// the time that it needs, and sessions have no settings of ours.
	within  time.Duration
	dialer  *postgresDialer
	read    *sqlx.DB
	kick    chan struct{} // asks the notifier for one NOTIFY; holds one
	stop    context.CancelFunc
	running sync.WaitGroup // the notifier
}

func newPostgres(url string, within time.Duration) *postgresEngine {
	return &postgresEngine{url: url, within: within, dialer: newPostgresDialer(within), kick: make(chan struct{}, 1)}
}

func (*postgresEngine) Name() string { return PostgreSQL }

func (d *postgresEngine) Open(ctx context.Context) (write, read *sqlx.DB, err error) {
	u, err := url.Parse(d.url)
	if err != nil {
		return nil, nil, errors.New("the database address is not a URL") // err would show the password
	}
	q := u.Query()
	// Parameters travel as bytes, in one round trip, and raw mail unescaped.
	q.Set("binary_parameters", "yes")
	if !q.Has("connect_timeout") {
		q.Set("connect_timeout", "5")
	}
	u.RawQuery = q.Encode()
	d.url = u.String()
	if write, err = d.pool(ctx, postgresWriters); err != nil {
		return nil, nil, err
	}
	if read, err = d.pool(ctx, postgresReaders); err != nil {
		return nil, nil, errors.Join(err, write.Close())
	}
	d.read = read
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	d.stop = stop
	d.running.Go(func() { d.notify(background) })
	return write, read, nil
}

func (d *postgresEngine) pool(ctx context.Context, conns int) (*sqlx.DB, error) {
	db, err := openPostgres(ctx, d.url, d.dialer, d.within > 0)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db, nil
}

func (*postgresEngine) Migrations() (goose.Dialect, fs.FS, []goose.ProviderOption, error) {
	files, err := migrations.PostgreSQL()
	if err != nil {
		return "", nil, nil, err
	}
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300)) // look every second, for 5 minutes
	return goose.DialectPostgres, files, []goose.ProviderOption{goose.WithSessionLocker(impatient{locker})}, err
}

// impatient limits how long a migration waits for the lock of a table. All statements that
// come later wait behind it. The limit is below PostgreSQL's deadlock_timeout (1 s by
// default), so that the migration, which is repeated, gives way in a deadlock and not the
// transaction of another node.
type impatient struct{ lock.SessionLocker }

// SessionLock implements lock.SessionLocker on the connection that runs the migrations.
func (l impatient) SessionLock(ctx context.Context, conn *sql.Conn) error {
	if err := l.SessionLocker.SessionLock(ctx, conn); err != nil {
		return err
	}
	_, err := conn.ExecContext(ctx, "SET lock_timeout = '500ms'")
	return err
}

func (*postgresEngine) SnapshotLevel() sql.IsolationLevel { return sql.LevelRepeatableRead }

func (*postgresEngine) Alone() bool { return false }

func (d *postgresEngine) Inspect(ctx context.Context) (State, error) {
	const q = `SELECT current_setting('server_version') AS version, cast(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint) AS clock,
		pg_database_size(current_database()) AS size`
	var row struct {
		Version string `db:"version"`
		Clock   int64  `db:"clock"`
		Size    int64  `db:"size"`
	}
	err := d.read.GetContext(ctx, &row, q)
	clock := time.UnixMicro(row.Clock)
	return State{Version: row.Version, Clock: &clock, Size: row.Size}, err
}

// Check says whether the server would notice damage: it verifies pages as they are read,
// if the cluster has checksums.
func (d *postgresEngine) Check(ctx context.Context) ([]string, error) {
	var broken int64
	if err := d.read.GetContext(ctx, &broken, `SELECT coalesce(checksum_failures, 0) FROM pg_stat_database WHERE datname = current_database()`); err != nil {
		return nil, err
	}
	if broken > 0 {
		return []string{fmt.Sprintf("PostgreSQL has found %d damaged pages: see its log", broken)}, nil
	}
	return nil, nil
}

// Clock does not change within a statement, so that it can be looked up by index.
func (*postgresEngine) Clock() string {
	return `cast(extract(epoch FROM statement_timestamp()) * 1000000 AS bigint)`
}

func (*postgresEngine) TxName() string { return "cast(pg_current_xact_id() AS text)" }

func (*postgresEngine) NextNumber(table string) string {
	return `nextval('` + table + `_seq_seq')` // as PostgreSQL names the sequence of the identity column
}

// Committed asks the server for the state of a transaction: one that a crash
// cut off counts as aborted.
func (d *postgresEngine) Committed(ctx context.Context, tx string) (known, committed bool, err error) {
	const q = `SELECT coalesce(pg_xact_status(cast(cast($1 AS text) AS xid8)), '')`
	var status string
	if err := d.read.GetContext(ctx, &status, q, tx); err != nil {
		return false, false, err
	}
	return status == "committed" || status == "aborted", status == "committed", nil
}

func (*postgresEngine) Placeholder(n int) string { return "$" + strconv.Itoa(n) }

func (*postgresEngine) Lateral(table, alias, match string) string {
	return fmt.Sprintf(`CROSS JOIN LATERAL (SELECT * FROM %s WHERE %s) %s`, table, match, alias)
}

func (*postgresEngine) Reusable() string { return "" }

func (*postgresEngine) OneOf(column, param string) string {
	return column + ` = ANY (cast(cast(` + param + ` AS text) AS bigint[]))`
}

func (*postgresEngine) Each(param string) string {
	return `SELECT unnest(cast(cast(` + param + ` AS text) AS bigint[]))`
}

func (*postgresEngine) List(seqs []int64) string { return "{" + Numbers(seqs) + "}" }

func (*postgresEngine) LockRow() string    { return " FOR NO KEY UPDATE" }
func (*postgresEngine) KeepRow() string    { return " FOR KEY SHARE" }
func (*postgresEngine) SkipLocked() string { return " FOR UPDATE SKIP LOCKED" }

func (*postgresEngine) Text(query string) string { return query }

func (d *postgresEngine) Close() error {
	d.stop()
	d.running.Wait()
	return nil
}
