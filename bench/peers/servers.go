package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/postroom/postroom/bench/harness"
)

// startMailpit starts Mailpit with a database in dir. It does not sync its writes.
func startMailpit(ctx context.Context, dir string) (*peer, error) {
	program, err := exec.LookPath("mailpit")
	if err != nil {
		return nil, err
	}
	p := &peer{name: "mailpit", cmd: exec.CommandContext(ctx, program)}
	web, err := harness.FreeAddress(ctx)
	if err != nil {
		return nil, err
	}
	if p.address, err = harness.FreeAddress(ctx); err != nil {
		return nil, err
	}
	p.cmd.Env = append(os.Environ(), "MP_SMTP_BIND_ADDR="+p.address, "MP_UI_BIND_ADDR="+web, "MP_DATABASE="+filepath.Join(dir, "mailpit.db"),
		"MP_MAX_MESSAGES=0", "MP_QUIET=true", "MP_DISABLE_VERSION_CHECK=true")
	return p, p.start(ctx)
}

// start starts the program and waits until it accepts connections.
func (p *peer) start(ctx context.Context) error {
	p.cmd.Stderr = os.Stderr
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		var d net.Dialer
		if conn, err := d.DialContext(ctx, "tcp", p.address); err == nil {
			return conn.Close()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			p.stop()
			return fmt.Errorf("%s does not listen at %s", p.name, p.address)
		}
	}
}
