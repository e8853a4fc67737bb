package store

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"strconv"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations/postgres/*.sql
var postgresMigrations embed.FS

const (
	postgresChannel = "postroom"
	notifyEvery     = 50 * time.Millisecond
	postgresConns   = 16
)

// postgresDialect is one PostgreSQL database, shared by any number of nodes.
type postgresDialect struct {
	url  string
	db   *sqlx.DB
	kick chan struct{} // asks the notifier for one NOTIFY; holds one
	done chan struct{}
}

func newPostgres(url string) *postgresDialect {
	return &postgresDialect{url: url, kick: make(chan struct{}, 1), done: make(chan struct{})}
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
	db, err := sqlx.Open("postgres", d.url)
	if err != nil {
		return nil, nil, fmt.Errorf("open PostgreSQL: %w", err)
	}
	if err := db.PingContext(ctx); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("reach PostgreSQL: %w", err), db.Close())
	}
	db.SetMaxOpenConns(postgresConns)
	db.SetMaxIdleConns(postgresConns)
	d.db = db
	go d.notifier()
	return db, db, nil
}

func (*postgresDialect) migrations() (goose.Dialect, fs.FS, []goose.ProviderOption, error) {
	sub, err := fs.Sub(postgresMigrations, "migrations/postgres")
	if err != nil {
		return "", nil, nil, err
	}
	locker, err := lock.NewPostgresSessionLocker()
	return goose.DialectPostgres, sub, []goose.ProviderOption{goose.WithSessionLocker(locker)}, err
}

func (*postgresDialect) committers() int { return 2 }

func (*postgresDialect) nextSeqs(ctx context.Context, tx *sqlx.Tx, table string, n int) ([]int64, error) {
	const q = `SELECT nextval(pg_get_serial_sequence($1, 'seq')) FROM generate_series(1, cast($2 AS bigint))`
	seqs := make([]int64, 0, n)
	if err := tx.SelectContext(ctx, &seqs, q, table, n); err != nil {
		return nil, fmt.Errorf("sequence numbers of %s: %w", table, err)
	}
	return seqs, nil
}

func (*postgresDialect) placeholder(n int) string { return "$" + strconv.Itoa(n) }

func (*postgresDialect) bulkSizes() []int { return []int{64, 16, 4, 1} }

func (*postgresDialect) lockRow() string    { return " FOR NO KEY UPDATE" }
func (*postgresDialect) skipLocked() string { return " FOR UPDATE SKIP LOCKED" }

// again: 40001 is a serialization failure, 40P01 a deadlock.
func (*postgresDialect) again(err error) bool {
	var e *pq.Error
	return errors.As(err, &e) && (e.Code == "40001" || e.Code == "40P01")
}

// unavailable reads the classes 08 (connection), 53 (resources, but not the
// disk), 57 (operator intervention) of the SQLSTATE codes.
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
	return e.Code == "25006" // read-only: a standby that was not yet promoted
}

func (*postgresDialect) full(err error) bool {
	var e *pq.Error
	return errors.As(err, &e) && e.Code == "53100"
}

func (d *postgresDialect) notify() {
	select {
	case d.kick <- struct{}{}:
	default: // one is waiting already
	}
}

// notifier sends at most one NOTIFY each notifyEvery, outside of any
// transaction: inside, it would make all commits wait for each other. A lost
// one is no harm, since listeners poll too.
func (d *postgresDialect) notifier() {
	for {
		select {
		case <-d.done:
			return
		case <-d.kick:
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		_, _ = d.db.ExecContext(ctx, "NOTIFY "+postgresChannel)
		cancel()
		select {
		case <-d.done:
			return
		case <-time.After(notifyEvery):
		}
	}
}

func (d *postgresDialect) listen(ctx context.Context, changed func()) error {
	l := pq.NewListener(d.url, 100*time.Millisecond, 5*time.Second, nil)
	defer func() { _ = l.Close() }()
	if err := l.Listen(postgresChannel); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.NotificationChannel(): // also after a reconnect
			changed()
		}
	}
}

func (d *postgresDialect) close() error {
	close(d.done)
	return nil
}
