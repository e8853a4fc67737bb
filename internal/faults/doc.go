// Package faults holds tests that do to the service what life does: kill it in
// the middle of mail, take its database or its disk away, tell it to stop under
// load, and let fifty writers at one file. They run the real program as a
// process of its own and talk to it over SMTP and HTTP alone; what counts is
// what a client was told, written into a ledger, against what is there
// afterwards.
//
// The rules that they hold the service to:
//
//   - mail that was answered with 250, and a call that was answered with 201, is
//     there once, whatever happens next;
//   - mail that was refused is not there;
//   - mail whose answer never came is there once or not at all, and for all of
//     its recipients or none.
//
// `go test` runs short forms on both databases, `make faults` (build tag faults)
// the long ones, alone on the machine. Tests carry the row of the fault
// catalogue that they are about: C for crashes, H for the API, S for SMTP.
package faults
