package engine

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"

	"github.com/lib/pq"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// ErrUnavailable means that the database or the blob storage does not respond, or
// that the store is closed. A later attempt may pass.
var ErrUnavailable = errors.New("storage unavailable")

// Fault is the kind of an error.
type Fault int

// The kinds of errors.
const (
	Other       Fault = iota
	Conflict          // two transactions were in each other's way: a new attempt may pass
	Duplicate         // a unique index has the value already
	Unavailable       // the database is away, stopping or starting, or closed
	Locked            // another transaction holds a row for longer than this one may wait
	Cancelled         // the caller's context ended
	BadText           // a text has bytes that the database does not accept
	Full              // the disk is full
)

// Fault implements Engine. SQLite has one writer, which waits in our own queue:
// its transactions never conflict, and the driver returns the error of the context.
func (*sqliteEngine) Fault(err error) Fault {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return connectionFault(err)
	}
	if e.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE {
		return Duplicate
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_FULL:
		return Full
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY:
		return Unavailable
	}
	return Other
}

// Fault implements Engine by the SQLSTATE code.
func (*postgresEngine) Fault(err error) Fault {
	var e *pq.Error
	if !errors.As(err, &e) {
		return connectionFault(err)
	}
	switch e.Code {
	case "40001", "40P01": // serialization failure, deadlock
		return Conflict
	case "23505":
		return Duplicate
	case "55P03": // lock_timeout
		return Locked
	case "57014": // the statement was cancelled
		return Cancelled
	case "22021": // a NUL, or bytes that are not UTF-8
		return BadText
	case "53100":
		return Full
	case "25006", "25P03": // a standby that is not promoted yet; this process stood still in a transaction
		return Unavailable
	}
	switch e.Code.Class() {
	case "08", "53", "57": // connection, resources, operator intervention
		return Unavailable
	}
	return Other
}

// connectionFault classifies errors that the database did not return itself.
func connectionFault(err error) Fault {
	var netErr net.Error
	switch {
	case errors.Is(err, driver.ErrBadConn), errors.Is(err, sql.ErrConnDone), errors.Is(err, net.ErrClosed), errors.As(err, &netErr),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), isClosed(err):
		return Unavailable
	}
	return Other
}

// isClosed reports whether database/sql, which has no named error for it, says
// that the pool or the statement is closed.
func isClosed(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if text := err.Error(); text == "sql: database is closed" || text == "sql: statement is closed" {
			return true
		}
	}
	return false
}
