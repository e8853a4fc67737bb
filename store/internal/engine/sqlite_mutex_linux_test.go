package engine

import (
	"sync"
	"sync/atomic"
	"testing"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// Connections have no mutex; the mutexes of what connections share work as before.
func TestOnlyConnectionsLoseTheirMutex(t *testing.T) {
	t.Parallel()
	if !connectionMutexesOff() {
		t.Fatal("SQLite did not accept the methods")
	}
	tls := libc.NewTLS()
	defer tls.Close()
	if m := allocMutex(tls, sqlite3.SQLITE_MUTEX_RECURSIVE); m != noMutex {
		t.Error("a connection gets a mutex")
	}
	m := allocMutex(tls, sqlite3.SQLITE_MUTEX_FAST)
	if m == 0 || m == noMutex {
		t.Fatal("what connections share gets no mutex")
	}
	defer freeMutex(tls, m)
	var inside atomic.Int32
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			tls := libc.NewTLS()
			defer tls.Close()
			for range 10_000 {
				enterMutex(tls, m)
				if inside.Add(1) != 1 {
					t.Error("two threads hold the mutex")
				}
				inside.Add(-1)
				leaveMutex(tls, m)
			}
		})
	}
	group.Wait()
}
