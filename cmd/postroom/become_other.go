//go:build !unix

package main

import "errors"

// become replaces the process by a program.
func become(string, []string, []string) error { return errors.ErrUnsupported }
