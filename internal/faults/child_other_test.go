//go:build !linux

package faults_test

import "os/exec"

// dieWithUs does nothing on systems without a parent-death signal.
func dieWithUs(*exec.Cmd) {}
