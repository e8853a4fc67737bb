package contract_test

import (
	"os/exec"
	"syscall"
)

// dieWithUs ends the process with the test binary, even if that ends without
// cleanup.
func dieWithUs(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
