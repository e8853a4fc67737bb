// Package store keeps accounts, keys, inboxes, mail and the delivery queue in
// SQLite or PostgreSQL, and large raw mail in a folder or in S3-compatible
// storage.
//
// A method that changes something is one transaction: when it returns nil the
// change is on the disk (SQLite synchronous=FULL, PostgreSQL
// synchronous_commit=on), and when it returns an error nothing has changed.
// There is one exception: a connection to PostgreSQL may break in the middle of
// a commit. Of received mail and accepted sends the store then asks the server
// what became of them; of anything else ErrUnavailable leaves it open.
// On SQLite changes that wait at the same time share a transaction and its sync (see
// committer). An event is written by the transaction of the change that it reports. The
// methods are safe for use by many goroutines.
package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/pressly/goose/v3"
	"golang.org/x/sync/singleflight"

	"github.com/postroom/postroom/internal/work"
	"github.com/postroom/postroom/store/internal/engine"
	"github.com/postroom/postroom/store/internal/index"
	"github.com/postroom/postroom/store/internal/quota"
	"github.com/postroom/postroom/store/internal/seal"
)

// Config configures a store. All fields but Now and Log are required.
type Config struct {
	// Database is a postgres:// address, or the path of an SQLite file.
	Database string
	// Blobs keeps raw mail that is too large for a row.
	Blobs Blobs
	// CursorKey signs list cursors.
	CursorKey []byte
	// SealKey (32 bytes) encrypts private keys at rest.
	SealKey []byte
	// Plans are the plans that there are beside the built-in ones.
	Plans []Plan
	// DefaultPlan names the plan of accounts that were given none; empty means
	// PlanSelfHosted.
	DefaultPlan string
	// AutoPause reports whether an account that sends too much that bounces or is
	// reported as spam stops sending.
	AutoPause bool
	// AgentLimits are limits of each account; nil means none.
	AgentLimits *Limits
	// InboxQuota bounds the received mail of each inbox, and AccountQuota times as
	// much each account; zero means no bound. See Store.Full.
	InboxQuota Quota
	// EmailRetention is how long the content of emails is kept after they were sent
	// or failed; 0 means DefaultEmailRetention.
	EmailRetention time.Duration
	// Now is the clock of this machine; nil means time.Now. On PostgreSQL leases,
	// retention and the times of messages go by the server's clock instead, unless
	// TrustNow is set.
	Now func() time.Time
	// TrustNow takes Now for the right time, wherever it jumps to. Tests set it to
	// move the time.
	TrustNow bool
	// StatementTimeout is how long a PostgreSQL server may take to respond to a statement
	// before its connection counts as lost; 0 means StatementTimeout.
	StatementTimeout time.Duration
	// Log takes what an operator may act on; nil means slog.Default().
	Log *slog.Logger
}

// Store is the database and the blobs behind it. What has state of its own is a type of
// its own; the embedded ones are used by all resources.
type Store struct {
	database
	settings
	clockState
	lifetime

	blobs  Blobs
	log    *slog.Logger
	wake   *hub
	rates  rateCounter
	used   usedKeys
	held   *quota.Counter
	totals totals
	queue  queueState
	index  searchIndex
	// unscrubbed says that content was deleted that may be left in a log.
	unscrubbed atomic.Bool
	pings      singleflight.Group // of Healthy
}

// database is what runs SQL.
type database struct {
	engine    engine.Engine
	write     *sqlx.DB
	read      *engine.Reads
	prepared  *engine.Prepared // the statements of transactions
	committer *committer
}

// settings are what does not change while the store is open.
type settings struct {
	cursors        cursorSigner
	seal           seal.Sealer
	plans          plans
	watch          bool    // Config.AutoPause
	agentLimits    *Limits // nil: none
	emailRetention time.Duration
	limits         pageLimits
}

// lifetime ends what runs in the background.
type lifetime struct {
	once    sync.Once
	err     error
	stop    context.CancelFunc
	running sync.WaitGroup
}

// Open connects and checks that the schema is there (see Migrate). The store
// must be closed after use.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	cfg.StatementTimeout = cmp.Or(cfg.StatementTimeout, engine.StatementTimeout)
	s, err := connect(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := s.checkSchema(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if err := s.openRates(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	for range 3 { // the first one waits for a connection, and the best one counts
		if _, err := s.serverClock(ctx, s.read); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	s.index.unmerged.Store(true) // the last run may have left some
	s.unscrubbed.Store(true)     // by the process before
	s.index.rewriteFrom.Store(s.now().Add(rewriteWait).UnixMicro())
	background, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.running.Go(func() { s.engine.Follow(background, s.log, newFollower(s).look) })
	s.running.Go(func() { s.watchServer(background) })
	s.running.Go(func() { s.sweepRates(background) })
	s.running.Go(func() { s.noteUsedKeys(background) })
	s.running.Go(func() { s.held.Run(background) })
	return s, nil
}

// connect opens the pools without reading the schema.
func connect(ctx context.Context, cfg Config) (*Store, error) {
	s := &Store{blobs: cfg.Blobs, log: cmp.Or(cfg.Log, slog.Default()), wake: newHub()}
	s.stop = func() {}
	s.settings = settings{
		watch: cfg.AutoPause, agentLimits: cfg.AgentLimits, emailRetention: cmp.Or(cfg.EmailRetention, DefaultEmailRetention), limits: defaultLimits,
	}
	s.queue.due = map[Work]*dueFrom{WorkRecipients: {}, WorkDeliveries: {}}
	if s.clock.Node = cfg.Now; cfg.Now == nil {
		s.clock.Node = time.Now
	}
	s.guard.off, s.guard.mono = cfg.TrustNow, newMono()
	var err error
	if s.plans, err = newPlans(cfg.Plans, cfg.DefaultPlan); err != nil {
		return nil, err
	}
	if s.cursors, err = newCursorSigner(cfg.CursorKey); err != nil {
		return nil, err
	}
	if s.seal, err = seal.New(cfg.SealKey); err != nil {
		return nil, err
	}
	s.engine = engine.New(cfg.Database, cfg.StatementTimeout)
	s.clock.Alone = cfg.TrustNow || s.engine.Alone()
	s.held = quota.New(quota.Config{Inbox: cfg.InboxQuota, Alone: s.engine.Alone(), Count: s.countHeld, Now: s.now, Log: s.log})
	var reads *sqlx.DB
	if s.write, reads, err = s.engine.Open(ctx); err != nil {
		if s.unavailable(err) {
			err = fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		return nil, err
	}
	s.read = engine.NewReads(reads, s.engine.Text)
	s.prepared = engine.NewPrepared(s.write, s.engine.Text)
	s.committer = newCommitter(s.write, s.prepared, s.engine)
	s.index.Index = index.New(s.engine, s.read)
	return s, nil
}

// Close lets running writes finish and closes the database. Connections
// that the server has abandoned make no error. It may be called twice.
func (s *Store) Close() error {
	s.once.Do(func() {
		s.stop()
		s.running.Wait()
		s.committer.close()
		s.wake.close()
		var errs []error
		if s.rates != nil {
			errs = append(errs, s.rates.close())
		}
		errs = append(errs, s.prepared.Close())
		errs = append(errs, s.engine.Close(), s.write.Close())
		errs = append(errs, s.read.Close()...)
		s.err = errors.Join(slices.DeleteFunc(errs, s.lost)...)
	})
	return s.err
}

// lost reports whether err is that of a broken connection, which cannot be closed
// cleanly: Close ignores it.
func (s *Store) lost(err error) bool { return !s.engine.Alone() && s.unavailable(err) }

// Engine is the name of the database: "sqlite" or "postgresql".
func (s *Store) Engine() string { return s.engine.Name() }

// Stored returns how many messages this process has stored since it opened the
// store.
func (s *Store) Stored() int64 { return s.totals.stored.Load() }

// Ping checks that the database responds. It reads a row: without one, SQLite
// does not read its file.
func (s *Store) Ping(ctx context.Context) error {
	var some bool
	return s.wrap(s.read.GetContext(ctx, &some, `SELECT EXISTS (SELECT 1 FROM accounts)`), "ping")
}

const (
	// stuckAfter is how long a batch may be written before the node counts as
	// unhealthy.
	stuckAfter = 10 * time.Second
	// healthPingTimeout bounds one ping; the next one waits for
	// its end.
	healthPingTimeout = time.Minute
)

// Healthy returns nil when the store can work: the database responds before ctx
// ends, and no write has been under way for more than 10 seconds.
func (s *Store) Healthy(ctx context.Context) error {
	if since, busy := s.committer.busySince(); busy && time.Since(since) > stuckAfter {
		return fmt.Errorf("%w: a write has been under way for %v", ErrUnavailable, time.Since(since).Round(time.Second))
	}
	// All callers share one ping: a database that hangs holds one connection and not one
	// for each of them.
	ping := s.pings.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), healthPingTimeout)
		defer cancel()
		return nil, s.Ping(ctx)
	})
	select {
	case done := <-ping:
		return done.Err
	case <-ctx.Done():
		return fmt.Errorf("%w: the database does not respond: %w", ErrUnavailable, ctx.Err())
	}
}

// Inspection is the state of the database.
type Inspection struct {
	Engine  string // "sqlite" or "postgresql"
	Version string // of the engine
	// Latency is the median response time of some queries.
	Latency time.Duration
	// Ahead is by how much the clock of the server is ahead of ours, nil when it is
	// ours.
	Ahead *time.Duration
	// LogSize is the size of the write-ahead log in bytes, 0 when it is a server's
	// own matter.
	LogSize int64
	// Size is the size of the database in bytes, without that log.
	Size int64
}

// inspectPings is how often Inspect asks.
const inspectPings = 5

// Inspect reads the database.
func (s *Store) Inspect(ctx context.Context) (Inspection, error) {
	took := make([]time.Duration, inspectPings)
	for i := range took {
		start := time.Now()
		if err := s.Ping(ctx); err != nil {
			return Inspection{}, err
		}
		took[i] = time.Since(start)
	}
	before := s.clock.Node()
	state, err := s.engine.Inspect(ctx)
	if err != nil {
		return Inspection{}, s.wrap(err, "inspect")
	}
	after := s.clock.Node()
	slices.Sort(took)
	out := Inspection{Engine: s.Engine(), Version: state.Version, Latency: took[len(took)/2], LogSize: state.LogSize, Size: state.Size}
	if state.Clock != nil {
		ahead := state.Clock.Sub(before.Round(0).Add(after.Sub(before) / 2))
		out.Ahead = &ahead
	}
	return out, nil
}

// FindDomains returns up to n domains of all accounts, newest first: those of a
// name, or all that are verified when it is empty.
func (s *Store) FindDomains(ctx context.Context, name string, n int) ([]Domain, error) {
	const q = `SELECT ` + domainColumns + ` FROM domains
		WHERE ($1 = '' AND status = 'verified') OR domain = $1 ORDER BY seq DESC LIMIT $2`
	rows, err := readAll[Domain](ctx, s, "find domains", q, name, n)
	if err == nil {
		err = s.wrap(readDomainKeys(ctx, s.read, rows), "find domains")
	}
	return rows, err
}

// What is wrong with the schema of a database that cannot be opened.
var (
	ErrSchemaOld = errors.New("the database schema is older than this program: run `postroom migrate`")
	ErrSchemaNew = errors.New("newer than the program's: use the newer program")
)

// Migrate brings the schema to this version, under a lock, and returns how many
// steps it took. A schema newer than this program is refused.
func Migrate(ctx context.Context, cfg Config) (steps int, err error) {
	s, err := connect(ctx, cfg)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return s.migrate(ctx)
}

// migrate runs the steps of this version, and then those in later.
func (s *Store) migrate(ctx context.Context, later ...*goose.Migration) (steps int, err error) {
	p, err := s.migrator(later...)
	if err != nil {
		return 0, err
	}
	if _, err := refuseNewer(ctx, p); err != nil {
		return 0, err
	}
	for began := time.Now(); ; {
		done, err := p.Up(ctx)
		steps += len(done)
		if err == nil {
			return steps, nil
		}
		if partial, ok := errors.AsType[*goose.PartialError](err); ok {
			steps += len(partial.Applied)
		}
		fault := s.engine.Fault(err)
		waits := fault == engine.Conflict || fault == engine.Locked
		if !waits || time.Since(began) > migrateTimeout || !work.Pause(ctx, migratePause, nil) {
			return steps, fmt.Errorf("migrate: %w", err)
		}
	}
}

func (s *Store) migrator(later ...*goose.Migration) (*goose.Provider, error) {
	name, files, opts, err := s.engine.Migrations()
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	p, err := goose.NewProvider(name, s.write.DB, files, append(opts, goose.WithDisableGlobalRegistry(true), goose.WithGoMigrations(later...))...)
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	return p, nil
}

// checkSchema refuses a database whose schema is older or newer than this
// program's.
func (s *Store) checkSchema(ctx context.Context) error {
	p, err := s.migrator()
	if err != nil {
		return err
	}
	if s.schema, err = refuseNewer(ctx, p); err != nil {
		return err
	}
	pending, err := p.HasPending(ctx)
	if err != nil {
		return s.wrap(err, "read the schema version")
	}
	if pending {
		return ErrSchemaOld
	}
	return nil
}

// refuseNewer refuses a schema that is newer than this program's, and returns the version
// of that.
func refuseNewer(ctx context.Context, p *goose.Provider) (want int64, err error) {
	have, want, err := p.GetVersions(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the schema version: %w", err)
	}
	if have > want {
		return 0, fmt.Errorf("the database schema is at version %d and this program's at %d: %w", have, want, ErrSchemaNew)
	}
	return want, nil
}

// ErrSecret means that the installation secret is not the one that the database was
// made with: what is sealed in it cannot be opened.
var ErrSecret = errors.New("not the installation secret that the database was made with")

const (
	proofLabel = "install"
	proofText  = "sealed with the install secret"
)

// ProveSecret shows that the seal key is the one that the database was made with.
// The first to ask leaves the proof. ErrSecret otherwise: whoever went on would
// seal some secrets with one key and some with another.
func (s *Store) ProveSecret(ctx context.Context) error {
	const (
		leave = `INSERT INTO install_secret (id, proof) VALUES (1, $1) ON CONFLICT (id) DO NOTHING`
		read  = `SELECT proof FROM install_secret WHERE id = 1`
	)
	var proof []byte
	err := s.inTx(ctx, "check the installation secret", func(tx *sqlx.Tx) error {
		if _, err := tx.ExecContext(ctx, leave, s.seal.Seal(proofLabel, []byte(proofText))); err != nil {
			return err
		}
		return tx.GetContext(ctx, &proof, read)
	})
	if err != nil {
		return err
	}
	if _, err := s.seal.Open(proofLabel, proof); err != nil {
		return ErrSecret
	}
	return nil
}

// Errors that callers can distinguish. Each is wrapped with one fact, for example
// "inbox ibx_1: not found".
var (
	// ErrNotFound is the error for what does not exist, is deleted, or belongs
	// to another account, and for names that the database cannot hold.
	ErrNotFound = errors.New("not found")
	// ErrAddressTaken means that the address is or was an inbox.
	ErrAddressTaken = errors.New("address is or was in use")
	// ErrContactExists means that another contact has the address.
	ErrContactExists = errors.New("address is a contact's")
	// ErrDomainTaken means that the account has the domain already.
	ErrDomainTaken = errors.New("domain is in the account already")
	// ErrDomainNotVerified means that the account has no verified domain with
	// that name.
	ErrDomainNotVerified = errors.New("domain is not verified for the account")
	// ErrState means that a row is not in the state that the change needs.
	ErrState = errors.New("not in the right state")
	// ErrCursor means that a cursor is not ours, or of another list, filter or
	// account.
	ErrCursor = errors.New("not a cursor of this list")
	// ErrIdempotencyRaced means that another call with the same idempotency
	// key committed first: its response can be read now.
	ErrIdempotencyRaced = errors.New("idempotency key used by a call that committed first")
	// ErrUnavailable means that the database or the blob storage does not respond,
	// or that the store is closed. Trying again later may help.
	ErrUnavailable = engine.ErrUnavailable
	// ErrDamaged means that stored content is not what was written.
	ErrDamaged = errors.New("the stored content is damaged")
	// ErrFull means that the disk has no room.
	ErrFull = errors.New("no space left")
)

// wrap adds what to err and marks faults of the connection as ErrUnavailable.
func (s *Store) wrap(err error, what string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("%s: %w", what, ErrNotFound)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: %w", what, err)
	}
	switch s.engine.Fault(err) {
	case engine.Cancelled:
		return fmt.Errorf("%s: %w: %w", what, context.Canceled, err)
	case engine.BadText:
		return fmt.Errorf("%s: %w: %w", what, ErrNotFound, err)
	case engine.Locked:
		return fmt.Errorf("%s: %w: %w: %w", what, ErrUnavailable, errLocked, err)
	case engine.Conflict:
		return fmt.Errorf("%s: %w: %w: %w", what, ErrUnavailable, errConflict, err)
	case engine.Unavailable:
		return fmt.Errorf("%s: %w: %w", what, ErrUnavailable, err)
	case engine.Full:
		return fmt.Errorf("%s: %w: %w", what, ErrFull, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

func (s *Store) unavailable(err error) bool {
	f := s.engine.Fault(err)
	return f == engine.Unavailable || f == engine.Locked
}

// readOne returns the row that a query finds. The error is ErrNotFound if it finds none.
func readOne[T any](ctx context.Context, s *Store, what, q string, args ...any) (T, error) {
	var found, none T
	if err := s.read.GetContext(ctx, &found, q, args...); err != nil {
		return none, s.wrap(err, what) // sqlx fills in pointers before it reads a row
	}
	return found, nil
}

// readAll returns the rows that a query finds.
func readAll[T any](ctx context.Context, s *Store, what, q string, args ...any) ([]T, error) {
	var found []T
	if err := s.read.SelectContext(ctx, &found, q, args...); err != nil {
		return nil, s.wrap(err, what)
	}
	return found, nil
}

// getter reads rows: a transaction, or the pool for reading.
type getter interface {
	GetContext(ctx context.Context, dest any, query string, args ...any) error
	SelectContext(ctx context.Context, dest any, query string, args ...any) error
}

// getOne returns the row that a query finds. The error is sql.ErrNoRows if it finds none.
func getOne[T any](ctx context.Context, from getter, q string, args ...any) (row T, err error) {
	err = from.GetContext(ctx, &row, q, args...)
	return row, err
}

// getAll returns the rows that a query finds.
func getAll[T any](ctx context.Context, from getter, q string, args ...any) (rows []T, err error) {
	err = from.SelectContext(ctx, &rows, q, args...)
	return rows, err
}

// transact is inTx for a function with a result.
func transact[T any](ctx context.Context, s *Store, what string, do func(*sqlx.Tx) (T, error)) (T, error) {
	var out, none T
	err := s.inTx(ctx, what, func(tx *sqlx.Tx) (err error) {
		out, err = do(tx)
		return err
	})
	if err != nil {
		return none, err
	}
	return out, nil
}

// insertRow inserts a row, whose fields have the names of the columns, and returns its number.
func insertRow(ctx context.Context, tx *sqlx.Tx, table, columns string, row any) (seq int64, err error) {
	q, args, err := tx.BindNamed(insertNamed(table, columns)+" RETURNING seq", row)
	if err != nil {
		return 0, err
	}
	return getOne[int64](ctx, tx, q, args...)
}

// insertNamed is a statement that inserts rows whose fields have the names of the columns.
func insertNamed(table, columns string) string {
	return "INSERT INTO " + table + " (" + columns + ") VALUES (:" + strings.ReplaceAll(columns, ", ", ", :") + ")"
}

// editRow locks the row that a query finds, lets edit change it, and saves it by a statement
// with the names of its fields. An error of edit changes nothing.
func editRow[T any](
	ctx context.Context, s *Store, tx *sqlx.Tx, find string, args []any, edit func(*T) error, save string,
) (T, error) {
	row, err := getOne[T](ctx, tx, find+s.engine.LockRow(), args...)
	if err == nil {
		err = edit(&row)
	}
	if err == nil {
		_, err = tx.NamedExecContext(ctx, save, row)
	}
	return row, err
}

// deleteRow deletes a row of the account, and the cached responses that show it. It returns
// ErrNotFound if there is none.
func (s *Store) deleteRow(ctx context.Context, what, table string, accountID int64, id string) error {
	return s.inTx(ctx, "delete "+what, func(tx *sqlx.Tx) error {
		q := `DELETE FROM ` + table + ` WHERE account_id = $1 AND id = $2`
		if err := oneRow(what+" "+id, ErrNotFound)(tx.ExecContext(ctx, q, accountID, id)); err != nil {
			return err
		}
		return s.dropCachedResponses(ctx, tx, id)
	})
}

// exec runs a statement in a transaction of its own and returns how many rows it changed.
func (s *Store) exec(ctx context.Context, what, q string, args ...any) (n int, err error) {
	err = s.inTx(ctx, what, func(tx *sqlx.Tx) error {
		n, err = affected(tx.ExecContext(ctx, q, args...))
		return err
	})
	return n, err
}

// execOne is exec for a statement that changes exactly one row. It returns ErrNotFound
// if it changes none; row names it.
func (s *Store) execOne(ctx context.Context, what, row, q string, args ...any) error {
	return s.inTx(ctx, what, func(tx *sqlx.Tx) error {
		return oneRow(row, ErrNotFound)(tx.ExecContext(ctx, q, args...))
	})
}

// statement is a statement with its arguments.
type statement struct {
	q    string
	args []any
}

// execAll runs statements one after the other.
func execAll(ctx context.Context, tx *sqlx.Tx, all []statement) error {
	for _, st := range all {
		if _, err := tx.ExecContext(ctx, st.q, st.args...); err != nil {
			return err
		}
	}
	return nil
}

// affected returns how many rows a statement has changed.
func affected(res sql.Result, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	n, err := res.RowsAffected()
	return int(n), err
}

// oneRow returns a function that turns the result of a statement that should have
// changed exactly one row into an error when it did not.
func oneRow(what string, missing error) func(sql.Result, error) error {
	return func(res sql.Result, err error) error {
		if err != nil {
			return err
		}
		return one(res, what, missing)
	}
}

// one turns an UPDATE that should have touched exactly one row into an error
// when it did not.
func one(res sql.Result, what string, missing error) error {
	n, err := res.RowsAffected()
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if n != 1 {
		return fmt.Errorf("%s: %w", what, missing)
	}
	return nil
}

// TakenError is an ErrAddressTaken for a field of an inbox other than its name.
type TakenError struct {
	Param string // the field
	Text  string // what has the address
}

func (e *TakenError) Error() string { return e.Param + ": " + e.Text }

// Is reports whether target is ErrAddressTaken.
func (e *TakenError) Is(target error) bool { return target == ErrAddressTaken }
