// Package migrations holds the steps from each version of the database schema to
// the next, for each engine, as goose reads them.
package migrations

import "embed"

// Files holds the folders sqlite and postgres.
//
//go:embed postgres/*.sql sqlite/*.sql
var Files embed.FS
