// Package contract holds the running program against openapi.yaml, as its users
// see it: over HTTP and SMTP alone, on both databases.
//
// It replays every example of every operation, with and without a good key,
// whole and broken, and plays by hand what examples do not reach: conflicts,
// links that have expired, limits, a database that is gone. The rules are:
//
//   - every exchange is as the contract documents it, in both directions; a
//     status that an operation does not document is a failure;
//   - every documented status of every operation was seen at the end, on both
//     databases;
//   - a request that the contract refuses is 400, never 500, and one that it
//     allows is 400 only by a rule listed in paramRules or bodyRules.
//
// There are only tests here: `go test ./contract`, with -v for the table of
// what was seen.
package contract
