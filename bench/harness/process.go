package harness

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Main parses the flags and runs a benchmark until it ends or is interrupted.
func Main(name string, run func(context.Context) error) {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// Process is a program that runs for a measurement.
type Process struct {
	cmd *exec.Cmd
	// Line is the first line that it has printed.
	Line string
}

// StartProcess starts a program and, if it says when it is ready, waits for its first line.
func StartProcess(cmd *exec.Cmd, says bool) (*Process, error) {
	p := &Process{cmd: cmd}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	r := bufio.NewReader(out)
	if says {
		if p.Line, err = r.ReadString('\n'); err != nil {
			p.Stop()
			return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
		}
		p.Line = strings.TrimSpace(p.Line)
	}
	go func() { _, _ = r.WriteTo(io.Discard) }()
	return p, nil
}

// Stop ends the process.
func (p *Process) Stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	_ = p.cmd.Wait() // its exit status does not matter
}

// PID returns the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// CPU returns the processor time that the process has used, or 0 if it is unknown.
func (p *Process) CPU() time.Duration { return CPU(p.PID()) }

// tick is the unit of /proc/<pid>/stat: USER_HZ, which is 100 on every Linux
// that Go runs on.
const tick = 10 * time.Millisecond

// CPU returns the processor time that a process has used, or 0 if it is unknown.
func CPU(pid int) time.Duration {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	// The name, in parentheses, may contain spaces. The times in the program and in the
	// kernel are the 12th and 13th field after it.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if err != nil || len(fields) < 13 {
		return 0
	}
	program, _ := strconv.Atoi(fields[11]) // the kernel writes numbers
	kernel, _ := strconv.Atoi(fields[12])
	return time.Duration(program+kernel) * tick
}
