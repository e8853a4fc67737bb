package client_test

import (
	"os/exec"
	"syscall"
)

// dieWithUs ends the process with the test binary, should that end without
// cleaning up.
func dieWithUs(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
