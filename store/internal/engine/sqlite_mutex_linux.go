package engine

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// connectionMutexesOff makes SQLite open connections without a mutex ("multi-thread"
// in https://sqlite.org/threadsafe.html), because database/sql lets one goroutine at
// a time use a connection. The driver asks for the mutex always, and SQLite takes it
// for each value that is read or bound: a fifth of the time of a page of messages.
// It reports whether it did: SQLite allows the change only before its first use.
var connectionMutexesOff = sync.OnceValue(func() bool {
	tls := libc.NewTLS()
	defer tls.Close()
	// SQLite fills in its own methods when it starts, and shows them when it has ended.
	if sqlite3.Xsqlite3_initialize(tls) != sqlite3.SQLITE_OK || sqlite3.Xsqlite3_shutdown(tls) != sqlite3.SQLITE_OK ||
		!mutexConfig(tls, sqlite3.SQLITE_CONFIG_GETMUTEX, &ownMutexes) {
		return false
	}
	methods := ownMutexes
	methods.FxMutexAlloc = *(*uintptr)(unsafe.Pointer(&struct {
		f func(*libc.TLS, int32) uintptr
	}{allocMutex}))
	methods.FxMutexFree = *(*uintptr)(unsafe.Pointer(&struct{ f func(*libc.TLS, uintptr) }{freeMutex}))
	methods.FxMutexEnter = *(*uintptr)(unsafe.Pointer(&struct{ f func(*libc.TLS, uintptr) }{enterMutex}))
	methods.FxMutexTry = *(*uintptr)(unsafe.Pointer(&struct {
		f func(*libc.TLS, uintptr) int32
	}{tryMutex}))
	methods.FxMutexLeave = *(*uintptr)(unsafe.Pointer(&struct{ f func(*libc.TLS, uintptr) }{leaveMutex}))
	ok := mutexConfig(tls, sqlite3.SQLITE_CONFIG_MUTEX, &methods) && sqlite3.Xsqlite3_initialize(tls) == sqlite3.SQLITE_OK
	// From here on, all recursive mutexes are those of connections.
	started.Store(ok)
	return ok
})

// mutexConfig calls sqlite3_config with methods. SQLite copies them.
func mutexConfig(tls *libc.TLS, option int32, methods *sqlite3.Tsqlite3_mutex_methods) bool {
	size := int(unsafe.Sizeof(*methods))
	p := tls.Alloc(size + int(unsafe.Sizeof(uintptr(0))))
	defer tls.Free(size + int(unsafe.Sizeof(uintptr(0))))
	in := *(**sqlite3.Tsqlite3_mutex_methods)(unsafe.Pointer(&p))
	*in = *methods
	ok := sqlite3.Xsqlite3_config(tls, option, libc.VaList(p+uintptr(size), p)) == sqlite3.SQLITE_OK
	*methods = *in
	return ok
}

var (
	ownMutexes sqlite3.Tsqlite3_mutex_methods // of SQLite
	started    atomic.Bool

	theByte byte
	noMutex = uintptr(unsafe.Pointer(&theByte)) // stands for the mutex of each connection
)

func allocMutex(tls *libc.TLS, kind int32) uintptr {
	if kind == sqlite3.SQLITE_MUTEX_RECURSIVE && started.Load() {
		return noMutex
	}
	return (*(*func(*libc.TLS, int32) uintptr)(unsafe.Pointer(&struct{ uintptr }{ownMutexes.FxMutexAlloc})))(tls, kind)
}

func freeMutex(tls *libc.TLS, m uintptr) {
	if m != noMutex {
		(*(*func(*libc.TLS, uintptr))(unsafe.Pointer(&struct{ uintptr }{ownMutexes.FxMutexFree})))(tls, m)
	}
}

func enterMutex(tls *libc.TLS, m uintptr) {
	if m != noMutex {
		(*(*func(*libc.TLS, uintptr))(unsafe.Pointer(&struct{ uintptr }{ownMutexes.FxMutexEnter})))(tls, m)
	}
}

func tryMutex(tls *libc.TLS, m uintptr) int32 {
	if m == noMutex {
		return sqlite3.SQLITE_OK
	}
	return (*(*func(*libc.TLS, uintptr) int32)(unsafe.Pointer(&struct{ uintptr }{ownMutexes.FxMutexTry})))(tls, m)
}

func leaveMutex(tls *libc.TLS, m uintptr) {
	if m != noMutex {
		(*(*func(*libc.TLS, uintptr))(unsafe.Pointer(&struct{ uintptr }{ownMutexes.FxMutexLeave})))(tls, m)
	}
}
