package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/postroom/postroom/bench/place"
)

// startMailpit starts Mailpit with a database in dir. It does not sync its writes.
func startMailpit(ctx context.Context, dir string) (*peer, error) {
	program, err := exec.LookPath("mailpit")
	if err != nil {
		return nil, err
	}
	p := &peer{name: "mailpit", cmd: exec.CommandContext(ctx, program)}
	web, err := place.FreeAddress(ctx)
	if err != nil {
		return nil, err
	}
	if p.address, err = place.FreeAddress(ctx); err != nil {
		return nil, err
	}
	p.cmd.Env = append(os.Environ(), "MP_SMTP_BIND_ADDR="+p.address, "MP_UI_BIND_ADDR="+web, "MP_DATABASE="+filepath.Join(dir, "mailpit.db"),
		"MP_MAX_MESSAGES=0", "MP_QUIET=true", "MP_DISABLE_VERSION_CHECK=true")
	return p, p.start(ctx)
}

const mainCF = `compatibility_level = 3.6
queue_directory = %[1]s/spool
data_directory = %[1]s/data
command_directory = /usr/sbin
daemon_directory = /usr/lib/postfix/sbin
mail_owner = postfix
setgid_group = postdrop
myhostname = mail.postroom.localhost
mydestination = postroom.localhost
local_recipient_maps =
local_transport = discard:
alias_maps =
mynetworks = 127.0.0.0/8
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
smtpd_client_connection_count_limit = 0
in_flow_delay = 0
`

const masterCF = `%s inet n - n - 100 smtpd
pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
proxymap unix - - n - - proxymap
error unix - - n - - error
retry unix - - n - - error
discard unix - - n - - discard
anvil unix - - n - 1 anvil
`

// startPostfix starts Postfix, which only root can. It syncs each message into its queue
// before the 250, and then discards it.
func startPostfix(ctx context.Context, dir string) (*peer, error) {
	const program = "/usr/lib/postfix/sbin/master"
	if _, err := exec.LookPath(program); err != nil || os.Getuid() != 0 {
		return nil, errors.Join(exec.ErrNotFound, errors.New("Postfix needs root and its package"))
	}
	home := filepath.Join(dir, "postfix")
	p := &peer{name: "postfix"}
	var err error
	if p.address, err = place.FreeAddress(ctx); err != nil {
		return nil, err
	}
	err = errors.Join(os.Chmod(dir, 0o755), os.Mkdir(home, 0o755), os.Mkdir(filepath.Join(home, "spool"), 0o755), os.Mkdir(filepath.Join(home, "data"), 0o755),
		os.WriteFile(filepath.Join(home, "main.cf"), fmt.Appendf(nil, mainCF, home), 0o644),
		os.WriteFile(filepath.Join(home, "master.cf"), fmt.Appendf(nil, masterCF, p.address), 0o644),
		exec.CommandContext(ctx, "chown", "postfix", filepath.Join(home, "data")).Run())
	if err != nil {
		return nil, err
	}
	if out, err := exec.CommandContext(ctx, "postfix", "-c", home, "check").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("check Postfix: %w: %s", err, out)
	}
	p.cmd = exec.CommandContext(ctx, program, "-c", home, "-d")
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
