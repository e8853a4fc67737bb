package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"

	"github.com/postroom/postroom/bench/harness"
)

// child is the baseline server. It is a separate process, like the service: in the
// process of the load it would share the scheduler and the garbage collector with it.
type child struct {
	cmd  *exec.Cmd
	addr string
}

// startBaseline starts this program again as the baseline server.
func startBaseline(ctx context.Context) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, "-serve-baseline")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the baseline server: %w", err)
	}
	c := &child{cmd: cmd}
	if c.addr, err = bufio.NewReader(out).ReadString('\n'); err != nil {
		c.stop()
		return nil, fmt.Errorf("start the baseline server: %w", err)
	}
	c.addr = strings.TrimSpace(c.addr)
	return c, nil
}

func (c *child) stop() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait() // it was killed
}

// serveBaseline runs in the child process: it prints its address and serves.
func serveBaseline(ctx context.Context, _ options) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = l.Close() })
	fmt.Println(l.Addr())
	if err := harness.ServeBaseline(l); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
