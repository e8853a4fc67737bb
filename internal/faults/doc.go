// Package faults tests the service under faults: it kills the process in the middle
// of a message, stops its database, fills its disk, terminates it under load, and runs
// fifty writers on one SQLite file. The tests run the real program as a separate
// process and use it over SMTP and HTTP only. They record every response that a client
// got in a ledger, and compare the ledger with what is stored afterwards.
//
// The rules that they check:
//
//   - a message that got 250, and a call that got 201, is stored once, whatever
//     happens next;
//   - a message that was refused is not stored;
//   - a message without a response is stored once or not at all, and for all of its
//     recipients or none.
//
// `go test` runs short forms on both databases, and `make faults` (build tag faults)
// the long ones, alone on the machine. A test's comment names its rows of the fault
// catalogue in docs/testing.md.
package faults
