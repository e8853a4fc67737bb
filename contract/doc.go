// Package contract tests the running program against openapi.yaml from the
// outside: over HTTP and SMTP, on both databases.
//
// It replays every example of every operation, with valid and invalid keys and
// bodies. Scripted steps cover the rest: conflicts, expired links, limits, an
// unreachable database. The rules are:
//
//   - Every exchange matches the contract in both directions. An undocumented
//     status is a failure.
//   - Every documented status of every operation occurs on both databases.
//   - A request that violates the contract gets 400, never 500. A valid one gets
//     400 only by a rule in paramRules or bodyRules.
//
// The package contains only tests. Run them with `go test ./contract`; -v prints
// a coverage table.
package contract
