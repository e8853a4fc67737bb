//go:build unix

package smtptest

import (
	"os/exec"
	"syscall"
)

// ownGroup starts the process in its own process group.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
