//go:build crashpoints

package crashpoint

import (
	"os"
	"syscall"
)

// Variable is the environment variable that names the step to die at.
const Variable = "POSTROOM_TEST_CRASH_AT"

// Reach ends the process if this is the step to die at.
func Reach(s Step) {
	if os.Getenv(Variable) != string(s) {
		return
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // this cannot fail for the own process
	select {}                                      // wait for the signal
}
