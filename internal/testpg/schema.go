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

// Schema gives t an empty database of its own and returns its address. It is
// emptied again when the test and its clean-ups are done; connections that are
// open by then are cut. Databases are kept and handed on, because creating
// one costs some 70 ms and emptying one a few.
//
// A whole database, and not a schema in a shared one, because NOTIFY channels
// and advisory locks belong to a database: tests would wake each other up and
// wait for each other's migrations.
//
// The server is the one that POSTROOM_TEST_POSTGRES names, and otherwise one
// started for this test binary. When there is neither, the test is skipped,
// but fails if CI or POSTROOM_TEST_POSTGRES_REQUIRED is set.
func Schema(t testing.TB) string {
	t.Helper()
	return claimed(t, emptyDatabases, func(context.Context, *claim) error { return nil }, func(ctx context.Context, c *claim) error { return c.release(ctx) })
}

// claimed gives t a database of its own that ready has made ready. It is released
// by release when the test and its clean-ups are done.
func claimed(t testing.TB, k kind, ready, release func(context.Context, *claim) error) string {
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
	c, err := claimDatabase(ctx, server, k)
	if err != nil {
		t.Fatalf("get a test database from PostgreSQL: %v", err)
	}
	err = ready(ctx, c)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), claimTimeout)
		defer cancel()
		if err := release(ctx, c); err != nil {
			t.Errorf("give the test database %s back: %v", c.name, err)
		}
	})
	if err != nil {
		t.Fatalf("prepare the test database %s: %v", c.name, err)
	}
	return c.url
}

// required tells whether a missing PostgreSQL is a failure.
func required(getenv func(string) string) bool {
	for _, name := range []string{"CI", "POSTROOM_TEST_POSTGRES_REQUIRED"} {
		value := getenv(name)
		yes, err := strconv.ParseBool(value)
		if yes || (err != nil && value != "") { // some CI systems put their name there
			return true
		}
	}
	return false
}

// ownServer is started by the first test that needs it, once for the test
// binary. There is no hook at the end of a test binary; the server ends
// because its watchdog sees the process go.
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
