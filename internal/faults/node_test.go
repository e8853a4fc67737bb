package faults_test

import (
	"bufio"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// node is one process of `postroom serve`.
type node struct {
	cmd    *exec.Cmd
	began  time.Time
	ready  chan struct{} // closed when the program has printed its addresses
	exited chan struct{} // closed when the process is gone; then err is set
	err    error

	api  string // http://host:port
	smtp string // host:port

	submission string // host:port, if it is on
}

// follow reads the output of the program until it ends.
func (n *node) follow(out io.Reader) {
	printed := false
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		switch name := strings.Join(fields[:max(0, len(fields)-1)], " "); {
		case printed:
		case name == "API":
			n.api = fields[1]
		case name == "SMTP":
			n.smtp = fields[1]
		case name == "Submission":
			n.submission = fields[1]
		case name == "Mail domain": // behind all addresses
			printed = true
			close(n.ready)
		}
	}
	n.err = n.cmd.Wait()
	close(n.exited)
}

// kill kills the process and returns when it is gone.
func (n *node) kill() {
	_ = n.cmd.Process.Kill() // the process may be gone already
	<-n.exited
}

// terminate sends SIGTERM to the process.
func (n *node) terminate(t *testing.T) {
	t.Helper()
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

// end waits until the process is gone and returns its exit error. It kills a process
// that does not end.
func (n *node) end() error {
	select {
	case <-n.exited:
	case <-time.After(testTimeout):
		n.kill()
	}
	return n.err
}

// stop terminates the serving node and requires that it exits cleanly.
func (in *installation) stop() {
	in.t.Helper()
	n := in.current()
	in.set(nil)
	n.terminate(in.t)
	if err := n.end(); err != nil {
		in.t.Fatalf("stop: %v\n%s", err, in.logTail())
	}
}
