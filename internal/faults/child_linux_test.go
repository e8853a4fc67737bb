package faults_test

import (
	"os/exec"
	"syscall"
)

// dieWithUs kills the process when the test binary ends without cleaning up.
func dieWithUs(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
