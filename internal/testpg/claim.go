package testpg

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
)

const (
	// maxDatabases bounds the tests that use a database at the same time.
	maxDatabases = 64
	// maxTestConns bounds the connections that one test may open.
	maxTestConns = 60
	// applicationName is that of the session that empties a database, beside those of tests.
	applicationName = "testpg"
)

// kind is one set of numbered test databases.
type kind struct {
	prefix string
	lock   int // the first half of the advisory locks that claim its databases
}

var (
	emptyDatabases    = kind{"postroom_test_", 0x706f7374}
	preparedDatabases = kind{"postroom_ready_", 0x706f7375}
)

// claim is one numbered test database. It belongs to the session that has its advisory
// lock, so a killed test binary releases its databases too, and the next owner empties
// them first.
type claim struct {
	kind      kind
	name, url string
	pool      *sql.DB
	session   *sql.Conn // the pool's only connection, which has the lock
	db        *sql.DB   // the database, with one connection
}

// claimDatabase claims the first free test database of this kind, and creates it if it
// does not exist. It empties a database that must be empty.
func claimDatabase(ctx context.Context, server string, k kind) (_ *claim, err error) {
	pool, err := sql.Open("postgres", server)
	if err != nil {
		return nil, err
	}
	c := &claim{kind: k, pool: pool}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	if c.session, err = pool.Conn(ctx); err != nil {
		return nil, err
	}
	if err := c.lock(ctx); err != nil {
		return nil, err
	}
	if c.url, err = withDatabase(server, c.name); err != nil {
		return nil, err
	}
	created, err := c.create(ctx)
	if err != nil {
		return nil, err
	}
	own, err := withParameter(c.url, "application_name", applicationName)
	if err != nil {
		return nil, err
	}
	if c.db, err = sql.Open("postgres", own); err != nil {
		return nil, err
	}
	c.db.SetMaxOpenConns(1)
	if created || k == preparedDatabases {
		return c, nil
	}
	return c, c.empty(ctx)
}

// lock finds an unused database.
func (c *claim) lock(ctx context.Context) error {
	const q = `SELECT pg_try_advisory_lock($1, $2)`
	for n := 1; n <= maxDatabases; n++ {
		var ok bool
		if err := c.session.QueryRowContext(ctx, q, c.kind.lock, n).Scan(&ok); err != nil {
			return err
		}
		if ok {
			c.name = fmt.Sprintf("%s%d", c.kind.prefix, n)
			return nil
		}
	}
	return fmt.Errorf("all %d test databases are in use", maxDatabases)
}

// create creates the database unless it exists from an earlier test.
func (c *claim) create(ctx context.Context) (created bool, err error) {
	const q = `SELECT EXISTS (SELECT 1 FROM pg_database WHERE datname = $1)`
	var there bool
	if err := c.session.QueryRowContext(ctx, q, c.name).Scan(&there); err != nil || there {
		return false, err
	}
	_, err = c.session.ExecContext(ctx,
		fmt.Sprintf(`CREATE DATABASE %s CONNECTION LIMIT %d`, c.name, maxTestConns))
	return true, err
}

// empty closes every connection to the database and drops everything in it.
func (c *claim) empty(ctx context.Context) error {
	const drop = `DO $$
			DECLARE s name;
			BEGIN
				FOR s IN SELECT nspname FROM pg_namespace
					WHERE nspname <> 'information_schema' AND nspname NOT LIKE 'pg\_%' LOOP
					EXECUTE format('DROP SCHEMA %I CASCADE', s);
				END LOOP;
				CREATE SCHEMA public;
			END $$`
	if err := c.cut(ctx); err != nil {
		return err
	}
	_, err := c.db.ExecContext(ctx, drop)
	return err
}

// cut closes every other connection to the database.
func (c *claim) cut(ctx context.Context) error {
	const q = `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
		WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()`
	_, err := c.db.ExecContext(ctx, q)
	if err != nil { // a test may have closed this connection as well
		_, err = c.db.ExecContext(ctx, q)
	}
	if err != nil {
		return fmt.Errorf("close connections: %w", err)
	}
	return nil
}

// release empties the database, so that the server's disk does not fill up, and makes it
// available to the next test.
func (c *claim) release(ctx context.Context) error {
	return errors.Join(c.empty(ctx), c.close())
}

func (c *claim) close() error {
	var err error
	if c.db != nil {
		err = c.db.Close()
	}
	if c.session != nil {
		err = errors.Join(err, c.session.Close())
	}
	return errors.Join(err, c.pool.Close())
}

// withDatabase returns the server's URL with another database name.
func withDatabase(server, name string) (string, error) {
	u, err := url.Parse(server)
	if err != nil {
		return "", fmt.Errorf("POSTROOM_TEST_POSTGRES: %w", err)
	}
	u.Path = "/" + name
	return u.String(), nil
}

func withParameter(server, name, value string) (string, error) {
	u, err := url.Parse(server)
	if err != nil {
		return "", err
	}
	q := u.Query()
	q.Set(name, value)
	u.RawQuery = q.Encode()
	return u.String(), nil
}
