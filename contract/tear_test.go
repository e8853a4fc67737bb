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

// tearLog makes every read of the program's SQLite file a fault of the disk,
// until restore is called or the test ends. The file cannot be taken away from a
// program that has it open, and to hold its locks would only make each call wait
// out its half minute; so all pages are moved into the write-ahead log, and the
// log is cut off behind its header, as by a disk that lost it. What a program reads
// of it then ends too early, which SQLite reports as SQLITE_IOERR. As nobody can
// read, nobody can write either: the log can be put back as it was.
//
// The program stands still meanwhile, or it might remember a page from between.
func (in *install) tearLog(t *testing.T) (restore func()) {
	t.Helper()
	db := in.openDatabase(t)
	db.SetMaxOpenConns(1)
	// Nothing may bring the pages back into the file, and who is in the midst of a
	// write is not waited for: it stands still.
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

// moveAndCut moves all pages into the log, cuts it off and returns what it was.
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
	if _, err := db.ExecContext(t.Context(), `VACUUM`); err != nil { // writes each page anew
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
	defer func() { _ = f.Close() }() // the write tells
	if _, err := f.WriteAt(log[logHeader:], logHeader); err != nil {
		t.Error(err)
	}
}
