package contract_test

import (
	"database/sql"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"
)

// logHeader is the length of the header of SQLite's write-ahead log
// (https://www.sqlite.org/fileformat2.html#walformat).
const logHeader = 32

// tearLog makes every read of the program's SQLite file a disk error until
// restore is called or the test ends. The program has the file open, so the test
// cannot remove it, and holding its locks would only delay each call by half a
// minute. Instead tearLog moves all pages into the write-ahead log and truncates
// the log after its header. Reads then end too early, and SQLite reports
// SQLITE_IOERR. Without reads there are no writes, so restore can put the log
// back unchanged.
//
// The program is stopped meanwhile. Otherwise it might cache a page.
func (in *install) tearLog(t *testing.T) (restore func()) {
	t.Helper()
	db := in.openDatabase(t)
	db.SetMaxOpenConns(1)
	// Keep the pages in the log, and do not wait long for the lock of a writer:
	// the program is stopped.
	if _, err := db.ExecContext(t.Context(), `PRAGMA wal_autocheckpoint = 0; PRAGMA busy_timeout = 100`); err != nil {
		t.Fatal(err)
	}
	path := in.database + "-wal"
	for until := time.Now().Add(patience); ; {
		log, err := in.moveAndCut(t, db, path)
		if err == nil {
			restore = sync.OnceFunc(func() { writeLog(t, path, log) })
			t.Cleanup(restore)
			return restore
		}
		if time.Now().After(until) {
			t.Fatalf("the pages could not be moved: %v", err)
		}
	}
}

// moveAndCut moves all pages into the log, truncates it and returns its former
// content.
func (in *install) moveAndCut(t *testing.T, db *sql.DB, path string) (log []byte, err error) {
	t.Helper()
	if err := in.process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := in.process.Signal(syscall.SIGCONT); err != nil {
			t.Error(err)
		}
	}()
	if _, err := db.ExecContext(t.Context(), `VACUUM`); err != nil { // rewrites each page
		return nil, err
	}
	if log, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, logHeader); err != nil {
		t.Fatal(err)
	}
	return log, nil
}

func writeLog(t *testing.T, path string, log []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = f.Close() }() // Write reports errors
	if _, err := f.WriteAt(log[logHeader:], logHeader); err != nil {
		t.Error(err)
	}
}
