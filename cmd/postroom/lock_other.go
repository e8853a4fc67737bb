//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package main

import "os"

// flock does nothing on systems without these locks. There the operator must make
// sure that only one process serves a data folder.
func flock(*os.File, bool) error { return nil }
