package engine

import (
	"sync"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// logVFS registers the layer between SQLite and its files (https://sqlite.org/vfs.html)
// that writes a transaction to the log (WAL) at once, and returns its name, or "" if
// SQLite refuses it. SQLite writes the log in two calls for each page, which were a
// quarter of the system calls of receiving.
//
// The layer is for a connection with synchronous=FULL, and for no other: SQLite syncs
// the log before other connections may read what it wrote, and the sync writes what is
// still in memory. Until then no other connection can read these pages, and a crash
// loses only transactions that were not reported as committed. All other calls on the
// log write first, too.
var logVFS = sync.OnceValue(func() string {
	connectionMutexesOff() // must be the first use of SQLite
	tls := libc.NewTLS()
	defer tls.Close()
	own := sqlite3.Xsqlite3_vfs_find(tls, 0)
	vfs := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(sqlite3.Tsqlite3_vfs{})))
	name, err := libc.CString(logVFSName)
	if own == 0 || vfs == 0 || err != nil {
		return ""
	}
	ownVFS = own
	v := at[sqlite3.Tsqlite3_vfs](vfs)
	*v = *at[sqlite3.Tsqlite3_vfs](own)
	v.FpNext, v.FzName = 0, name
	v.FxOpen = *(*uintptr)(unsafe.Pointer(&struct {
		f func(_ *libc.TLS, vfs, path, file uintptr, flags int32, outFlags uintptr) int32
	}{openFile}))
	if sqlite3.Xsqlite3_vfs_register(tls, vfs, 0) != sqlite3.SQLITE_OK {
		return ""
	}
	return logVFSName
})

const (
	logVFSName = "postroom-log"
	// logBuffer is how many bytes of a transaction are written at once. SQLite's own
	// layer takes less than 128 KiB in a call.
	logBuffer = 124 << 10
)

var (
	ownVFS uintptr // of SQLite

	// logs are the open logs, by the address of SQLite's file. They share one set of methods:
	// that of SQLite, except those below.
	logs struct {
		sync.RWMutex
		open    map[uintptr]*logFile
		methods uintptr
		own     sqlite3.Tsqlite3_io_methods
	}
)

// logFile is an open log. One connection uses it.
type logFile struct {
	file  uintptr
	buf   uintptr // logBuffer bytes that SQLite's memory holds
	start int64   // where in the file the bytes belong
	n     int64   // bytes that are not written yet
}

// at returns what is at an address in SQLite's memory.
func at[T any](p uintptr) *T { return *(**T)(unsafe.Pointer(&p)) }

func bytesAt(p uintptr, n int64) []byte { return unsafe.Slice(at[byte](p), n) }

// openFile opens a file as SQLite does. A log gets our methods.
func openFile(tls *libc.TLS, _, path, file uintptr, flags int32, outFlags uintptr) int32 {
	open := at[sqlite3.Tsqlite3_vfs](ownVFS).FxOpen
	rc := (*(*func(_ *libc.TLS, vfs, path, file uintptr, flags int32, outFlags uintptr) int32)(unsafe.Pointer(&struct{ uintptr }{open})))(
		tls, ownVFS, path, file, flags, outFlags)
	if rc != sqlite3.SQLITE_OK || flags&sqlite3.SQLITE_OPEN_WAL == 0 {
		return rc
	}
	buf := libc.Xmalloc(tls, logBuffer)
	if buf == 0 {
		return rc // without a buffer, the file is SQLite's alone
	}
	logs.Lock()
	defer logs.Unlock()
	methods := at[uintptr](file)
	if logs.methods == 0 && !makeMethods(tls, *methods) {
		libc.Xfree(tls, buf)
		return rc
	}
	logs.open[file] = &logFile{file: file, buf: buf}
	*methods = logs.methods
	return rc
}

// makeMethods makes logs.methods of SQLite's.
func makeMethods(tls *libc.TLS, own uintptr) bool {
	p := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(logs.own)))
	if p == 0 {
		return false
	}
	logs.own = *at[sqlite3.Tsqlite3_io_methods](own)
	logs.methods, logs.open = p, map[uintptr]*logFile{}
	m := at[sqlite3.Tsqlite3_io_methods](p)
	*m = logs.own
	type (
		plain func(_ *libc.TLS, file uintptr) int32
		bytes func(_ *libc.TLS, file, buf uintptr, n int32, at int64) int32
		size  func(_ *libc.TLS, file uintptr, size int64) int32
		flags func(_ *libc.TLS, file uintptr, flags int32) int32
		out   func(_ *libc.TLS, file, out uintptr) int32
	)
	m.FxClose = *(*uintptr)(unsafe.Pointer(&struct{ plain }{closeLog}))
	m.FxRead = *(*uintptr)(unsafe.Pointer(&struct{ bytes }{readLog}))
	m.FxWrite = *(*uintptr)(unsafe.Pointer(&struct{ bytes }{writeLog}))
	m.FxTruncate = *(*uintptr)(unsafe.Pointer(&struct{ size }{truncateLog}))
	m.FxSync = *(*uintptr)(unsafe.Pointer(&struct{ flags }{syncLog}))
	m.FxFileSize = *(*uintptr)(unsafe.Pointer(&struct{ out }{sizeOfLog}))
	return true
}

func logOf(file uintptr) *logFile {
	logs.RLock()
	defer logs.RUnlock()
	return logs.open[file]
}

// write writes what is in memory. What cannot be written is lost, and SQLite, which
// gets the error, rolls the transaction back.
func (l *logFile) write(tls *libc.TLS) int32 {
	if l.n == 0 {
		return sqlite3.SQLITE_OK
	}
	n := l.n
	l.n = 0
	return l.writeAt(tls, l.buf, n, l.start)
}

func (l *logFile) writeAt(tls *libc.TLS, buf uintptr, n, offset int64) int32 {
	return (*(*func(_ *libc.TLS, file, buf uintptr, n int32, at int64) int32)(unsafe.Pointer(&struct{ uintptr }{logs.own.FxWrite})))(
		tls, l.file, buf, int32(n), offset) //nolint:gosec // at most logBuffer, or what SQLite passed
}

func writeLog(tls *libc.TLS, file, buf uintptr, n int32, offset int64) int32 {
	l, size := logOf(file), int64(n)
	follows := offset == l.start+l.n && l.n > 0
	if within := offset >= l.start && offset+size <= l.start+l.n; within { // a page was written again
		copy(bytesAt(l.buf, l.n)[offset-l.start:], bytesAt(buf, size))
		return sqlite3.SQLITE_OK
	}
	if !follows || l.n+size > logBuffer {
		if rc := l.write(tls); rc != sqlite3.SQLITE_OK {
			return rc
		}
		if size > logBuffer {
			return l.writeAt(tls, buf, size, offset)
		}
		l.start = offset
	}
	copy(bytesAt(l.buf, logBuffer)[l.n:], bytesAt(buf, size))
	l.n += size
	return sqlite3.SQLITE_OK
}

func syncLog(tls *libc.TLS, file uintptr, flags int32) int32 {
	if rc := logOf(file).write(tls); rc != sqlite3.SQLITE_OK {
		return rc
	}
	return (*(*func(_ *libc.TLS, file uintptr, flags int32) int32)(unsafe.Pointer(&struct{ uintptr }{logs.own.FxSync})))(tls, file, flags)
}

func readLog(tls *libc.TLS, file, buf uintptr, n int32, offset int64) int32 {
	if rc := logOf(file).write(tls); rc != sqlite3.SQLITE_OK {
		return rc
	}
	return (*(*func(_ *libc.TLS, file, buf uintptr, n int32, at int64) int32)(unsafe.Pointer(&struct{ uintptr }{logs.own.FxRead})))(
		tls, file, buf, n, offset)
}

func truncateLog(tls *libc.TLS, file uintptr, size int64) int32 {
	if rc := logOf(file).write(tls); rc != sqlite3.SQLITE_OK {
		return rc
	}
	return (*(*func(_ *libc.TLS, file uintptr, size int64) int32)(unsafe.Pointer(&struct{ uintptr }{logs.own.FxTruncate})))(tls, file, size)
}

func sizeOfLog(tls *libc.TLS, file, out uintptr) int32 {
	if rc := logOf(file).write(tls); rc != sqlite3.SQLITE_OK {
		return rc
	}
	return (*(*func(_ *libc.TLS, file, out uintptr) int32)(unsafe.Pointer(&struct{ uintptr }{logs.own.FxFileSize})))(tls, file, out)
}

func closeLog(tls *libc.TLS, file uintptr) int32 {
	l := logOf(file)
	written := l.write(tls)
	logs.Lock()
	delete(logs.open, file)
	logs.Unlock()
	libc.Xfree(tls, l.buf)
	rc := (*(*func(_ *libc.TLS, file uintptr) int32)(unsafe.Pointer(&struct{ uintptr }{logs.own.FxClose})))(tls, file)
	if written != sqlite3.SQLITE_OK {
		return written
	}
	return rc
}
