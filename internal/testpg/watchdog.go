package testpg

import (
	"fmt"
	"os"
	"os/exec"
)

// watchScript waits on its input, whose other end only we hold. A line is our
// goodbye. The end of input without one means that we died, whatever killed
// us: then it stops the server and removes its folder. It tries again, for a
// server that was just starting.
const watchScript = `
trap '' HUP INT TERM
if read -r goodbye; then exit 0; fi
for try in 1 2 3 4 5; do
	"$1/pg_ctl" stop -s -m immediate -D "$2/data"
	rm -rf "$2" && exit 0
	sleep 1
done`

// watchdog is the small process that outlives us and cleans up when we could
// not. It knows the server by its folder, so it also covers a restarted one.
type watchdog struct {
	cmd  *exec.Cmd
	pipe *os.File // held open for as long as we live
}

// startWatchdog watches over the server that lives, or will live, in dir.
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

// release says goodbye and waits until the watchdog is gone.
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
