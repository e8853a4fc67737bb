//go:build unix

package main

import "syscall"

// become replaces the process by a program.
func become(path string, args, environ []string) error { return syscall.Exec(path, args, environ) }
