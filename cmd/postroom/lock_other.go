//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package main

import "os"

// flock does nothing where the system has no such lock: there the operator has
// to take care that one data folder is served once.
func flock(*os.File, bool) error { return nil }
