package testpg

import (
	"context"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"
)

const claimTimeout = time.Minute

// Schema returns the URL of an empty database for t. When the test and its clean-ups are
// done, the database is emptied and its open connections are closed. Databases are kept
// and reused, because creating one takes some 70 ms and emptying one a few.
//
// It is a whole database, and not a schema in a shared one, because NOTIFY channels and
// advisory locks belong to a database: tests would notify each other and wait for each
// other's migrations.
//
// The server is the one in POSTROOM_TEST_POSTGRES, or else one started for this test
// binary. Without either, the test is skipped; if CI or POSTROOM_TEST_POSTGRES_REQUIRED
// is set, it fails.
func Schema(t testing.TB) string {
	t.Helper()
	get := func(ctx context.Context, server string) (*claim, error) {
		return claimDatabase(ctx, server, emptyDatabases)
	}
	return claimed(t, get, func(context.Context, *claim) error { return nil }, func(ctx context.Context, c *claim) error { return c.release(ctx) })
}

// claimed returns the URL of a database for t that ready has prepared. release is called
// when the test and its clean-ups are done.
func claimed(
	t testing.TB, get func(ctx context.Context, server string) (*claim, error), ready, release func(context.Context, *claim) error,
) string {
	t.Helper()
	server, err := serverURL()
	if err != nil {
		if required(os.Getenv) {
			t.Fatalf("this test needs PostgreSQL: %v", err)
		}
		t.Skipf("no PostgreSQL for this test (`make test` installs one): %v", err)
	}

	ctx, cancel := context.WithTimeout(context.Background(), claimTimeout)
	defer cancel()
	c, err := get(ctx, server)
	if err != nil {
		t.Fatalf("get a test database from PostgreSQL: %v", err)
	}
	err = ready(ctx, c)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), claimTimeout)
		defer cancel()
		if err := release(ctx, c); err != nil {
			t.Errorf("release the test database %s: %v", c.name, err)
		}
	})
	if err != nil {
		t.Fatalf("prepare the test database %s: %v", c.name, err)
	}
	return c.url
}

// required reports whether a missing PostgreSQL is a failure.
func required(getenv func(string) string) bool {
	for _, name := range []string{"CI", "POSTROOM_TEST_POSTGRES_REQUIRED"} {
		value := getenv(name)
		yes, err := strconv.ParseBool(value)
		if yes || (err != nil && value != "") { // some CI systems set it to their name
			return true
		}
	}
	return false
}

// ownServer is started by the first test that needs it, once for the test binary. A test
// binary has no hook at its end; the server stops because its watchdog notices the end of
// the process.
var ownServer = sync.OnceValues(func() (*Server, error) {
	return Start(context.Background(), Options{})
})

func serverURL() (string, error) {
	if named := os.Getenv("POSTROOM_TEST_POSTGRES"); named != "" {
		return named, nil
	}
	s, err := ownServer()
	if err != nil {
		return "", err
	}
	return s.URL(DefaultDatabase), nil
}
