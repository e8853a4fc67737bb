package testpg

import (
	"fmt"
	"os"
	"os/exec"
)

// watchScript waits on its input, whose other end only this process has. A line means that
// the watchdog is no longer needed. The end of input without a line means that this
// process has ended for any reason: then the script stops the server and removes its
// folder. It repeats that, because the server may just be starting.
const watchScript = `
trap '' HUP INT TERM
if read -r goodbye; then exit 0; fi
for try in 1 2 3 4 5; do
	"$1/pg_ctl" stop -s -m immediate -D "$2/data"
	rm -rf "$2" && exit 0
	sleep 1
done`

// watchdog is a small process that survives this one and cleans up after it. It knows the
// server by its folder, so it also covers a restarted server.
type watchdog struct {
	cmd  *exec.Cmd
	pipe *os.File // open until this process ends
}

// startWatchdog starts a watchdog for the server in dir, which need not run yet.
func startWatchdog(o owner, bin, dir string) (*watchdog, error) {
	in, pipe, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }()

	cmd := exec.Command("/bin/sh", "-c", watchScript, "sh", bin, dir) //nolint:noctx // it must outlive every context
	cmd.Dir = "/"
	cmd.Stdin = in // no output: an inherited one would keep `go test` waiting
	o.apply(cmd)
	if err := cmd.Start(); err != nil {
		_ = pipe.Close()
		return nil, fmt.Errorf("start the watchdog: %w", err)
	}
	return &watchdog{cmd: cmd, pipe: pipe}, nil
}

// release ends the watchdog and waits for it.
func (w *watchdog) release() error {
	_, errWrite := w.pipe.WriteString("goodbye\n")
	errClose := w.pipe.Close()
	if err := w.cmd.Wait(); err != nil {
		return fmt.Errorf("watchdog: %w", err)
	}
	if errWrite != nil {
		return errWrite
	}
	return errClose
}
