package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"
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

// postgresDialect is one PostgreSQL database, shared by any number of nodes.
type postgresDialect struct {
	url string
	// within is how long the server may take to answer a statement; 0: it has all
	// the time that it needs, and sessions have no settings of ours.
	within       time.Duration
	dialer       *postgresDialer
	read         *sqlx.DB
	kick         chan struct{} // asks the notifier for one NOTIFY; holds one
	done         chan struct{} // ends the notifier
	notifierDone chan struct{}
}

func newPostgres(url string, within time.Duration) *postgresDialect {
	return &postgresDialect{
		url: url, within: within, dialer: newPostgresDialer(within), kick: make(chan struct{}, 1), done: make(chan struct{}), notifierDone: make(chan struct{}),
	}
}

func (*postgresDialect) name() string { return "postgresql" }

func (d *postgresDialect) open(ctx context.Context) (write, read *sqlx.DB, err error) {
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
	go d.notifier() //nolint:gosec // it lives until close, longer than ctx
	return write, read, nil
}

func (d *postgresDialect) pool(ctx context.Context, conns int) (*sqlx.DB, error) {
	db, err := openPostgres(ctx, d.url, d.dialer, d.within > 0)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db, nil
}

func (*postgresDialect) migrations() (goose.Dialect, fs.FS, []goose.ProviderOption, error) {
	sub, err := fs.Sub(migrations.Files, "postgres")
	if err != nil {
		return "", nil, nil, err
	}
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300)) // look every second, for 5 minutes
	return goose.DialectPostgres, sub, []goose.ProviderOption{goose.WithSessionLocker(locker)}, err
}

func (*postgresDialect) alone() bool { return false }

func (d *postgresDialect) inspect(ctx context.Context) (engineState, error) {
	const q = `SELECT current_setting('server_version') AS version, cast(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint) AS clock`
	var row struct {
		Version string `db:"version"`
		Clock   int64  `db:"clock"`
	}
	err := d.read.GetContext(ctx, &row, q)
	clock := time.UnixMicro(row.Clock)
	return engineState{version: row.Version, clock: &clock}, err
}

// clock does not change within a statement, so that it can be looked up by index.
func (*postgresDialect) clock(param string) string {
	return `coalesce(cast(` + param + ` AS bigint), cast(floor(extract(epoch FROM statement_timestamp()) * 1000) AS bigint) * 1000)`
}

func (*postgresDialect) committers() int { return 2 }

func (*postgresDialect) txName() string { return "cast(pg_current_xact_id() AS text)" }

func (d *postgresDialect) reserve() string {
	return `SELECT nextval(pg_get_serial_sequence('messages', 'seq')), nextval(pg_get_serial_sequence('threads', 'seq')),
			` + d.txName() + `
		FROM generate_series(1, cast($1 AS bigint))`
}

// committed asks the server for the state of a transaction: one that a crash
// cut off counts as aborted.
func (d *postgresDialect) committed(ctx context.Context, tx string) (known, committed bool, err error) {
	const q = `SELECT coalesce(pg_xact_status(cast(cast($1 AS text) AS xid8)), '')`
	var status string
	if err := d.read.GetContext(ctx, &status, q, tx); err != nil {
		return false, false, err
	}
	return status == "committed" || status == "aborted", status == "committed", nil
}

func (*postgresDialect) placeholder(n int) string { return "$" + strconv.Itoa(n) }

func (*postgresDialect) bulkSizes() []int { return []int{64, 16, 4, 1} }

func (*postgresDialect) lateral(table, alias, match string) string {
	return fmt.Sprintf(`CROSS JOIN LATERAL (SELECT * FROM %s WHERE %s) %s`, table, match, alias)
}

func (*postgresDialect) oneOf(column, param string) string {
	return column + ` = ANY (cast(cast(` + param + ` AS text) AS bigint[]))`
}

func (*postgresDialect) list(seqs []int64) string { return "{" + numbers(seqs) + "}" }

func (*postgresDialect) lockRow() string    { return " FOR NO KEY UPDATE" }
func (*postgresDialect) skipLocked() string { return " FOR UPDATE SKIP LOCKED" }

// again: 40001 is a serialization failure, 40P01 a deadlock.
func (*postgresDialect) again(err error) bool { return hasCode(err, "40001", "40P01") }

// duplicate: 23505 is a violation of a unique index.
func (*postgresDialect) duplicate(err error) bool { return hasCode(err, "23505") }

// unavailable reads the classes 08 (connection), 53 (resources, but not the
// disk), 57 (operator intervention) of the SQLSTATE codes, and 25006: a standby
// that was not yet promoted; 25P03: this process stood still in the middle of a
// transaction; 55P03: another transaction holds a row.
func (*postgresDialect) unavailable(err error) bool {
	var e *pq.Error
	if !errors.As(err, &e) {
		return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) // of a server that went away
	}
	switch e.Code.Class() {
	case "08", "57":
		return true
	case "53":
		return e.Code != "53100"
	}
	return e.Code == "25006" || e.Code == "25P03" || e.Code == "55P03"
}

// locked: 55P03 is the end of lock_timeout.
func (*postgresDialect) locked(err error) bool { return hasCode(err, "55P03") }

func (*postgresDialect) shortLocks() string { return "SET LOCAL lock_timeout = '500ms'" }

// cancelled: 57014 is the end of a statement that was asked to end.
func (*postgresDialect) cancelled(err error) bool { return hasCode(err, "57014") }

// badText: 22021 is a NUL, or a byte sequence that is not UTF-8.
func (*postgresDialect) badText(err error) bool { return hasCode(err, "22021") }

func (*postgresDialect) full(err error) bool { return hasCode(err, "53100") }

func hasCode(err error, codes ...pqerror.Code) bool {
	var e *pq.Error
	return errors.As(err, &e) && slices.Contains(codes, e.Code)
}

func (d *postgresDialect) close() error {
	close(d.done)
	<-d.notifierDone
	return nil
}
