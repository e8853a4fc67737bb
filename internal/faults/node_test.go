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
	ready  chan struct{} // closed when the program has said where it can be reached
	exited chan struct{} // closed when it is gone; then err is set
	err    error

	api  string // http://host:port
	smtp string // host:port
}

// follow reads what the program says until it is gone.
func (n *node) follow(out io.Reader) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) != 2 || n.smtp != "" {
			continue
		}
		switch fields[0] {
		case "API":
			n.api = fields[1]
		case "SMTP":
			n.smtp = fields[1]
			close(n.ready)
		}
	}
	n.err = n.cmd.Wait()
	close(n.exited)
}

// kill ends the process at once and returns when it is gone.
func (n *node) kill() {
	_ = n.cmd.Process.Kill() // it may be gone already
	<-n.exited
}

// tell asks the process to stop.
func (n *node) tell(t *testing.T) {
	t.Helper()
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

// end waits until the process is gone and returns what became of it. One that
// does not end is killed.
func (n *node) end() error {
	select {
	case <-n.exited:
	case <-time.After(patience):
		n.kill()
	}
	return n.err
}

// stop ends the node that serves in order; that it does so is not what the test
// is about.
func (in *install) stop() {
	in.t.Helper()
	n := in.current()
	in.set(nil)
	n.tell(in.t)
	if err := n.end(); err != nil {
		in.t.Fatalf("stop: %v\n%s", err, in.logTail())
	}
}
