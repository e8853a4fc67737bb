package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/postroom/postroom/bench/place"
	"github.com/postroom/postroom/bench/process"
)

// postfix is Postfix with OpenDKIM, as their packages configure them. The settings
// below change the paths and ports, allow this rate, and enable signing.
type postfix struct {
	dir     string
	milter  *exec.Cmd
	master  *exec.Cmd
	address string
	size    int
}

const mainCF = `compatibility_level = 3.6
queue_directory = %[1]s/spool
data_directory = %[1]s/data
command_directory = /usr/sbin
daemon_directory = /usr/lib/postfix/sbin
mail_owner = postfix
setgid_group = postdrop
myhostname = postroom.localhost
mydestination =
alias_maps =
mynetworks = 127.0.0.0/8
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
relayhost = [127.0.0.1]:%[2]s
smtpd_milters = inet:%[3]s
milter_default_action = tempfail
in_flow_delay = 0
`

const masterCF = `%s inet n - n - - smtpd
pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
tlsmgr unix - - n 1000? 1 tlsmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
verify unix - - n - 1 verify
flush unix n - n 1000? 0 flush
proxymap unix - - n - - proxymap
proxywrite unix - - n - 1 proxymap
smtp unix - - n - - smtp
relay unix - - n - - smtp
error unix - - n - - error
retry unix - - n - - error
discard unix - - n - - discard
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
`

const opendkimConf = `Mode s
Domain postroom.localhost
Selector bench
KeyFile %s/key.pem
RequireSafeKeys no
Socket inet:%s@127.0.0.1
Canonicalization relaxed/relaxed
SignatureAlgorithm rsa-sha256
OversignHeaders From,Subject
InternalHosts 127.0.0.0/8
Background no
Syslog no
`

// startPostfix starts both, with sink as the relay.
func startPostfix(ctx context.Context, sink string, size int) (p *postfix, err error) {
	dir, err := os.MkdirTemp("", "postroom-postfix-")
	if err != nil {
		return nil, err
	}
	started := &postfix{dir: dir, size: size}
	defer func() {
		if err != nil { // p is nil then
			started.stop()
		}
	}()
	p = started
	milter, err := place.FreeAddress(ctx)
	if err != nil {
		return nil, err
	}
	if p.address, err = place.FreeAddress(ctx); err != nil {
		return nil, err
	}
	if err := p.write(ctx, sink, milter); err != nil {
		return nil, err
	}
	p.milter = exec.CommandContext(ctx, "opendkim", "-f", "-x", filepath.Join(dir, "opendkim.conf"))
	p.milter.Stderr = os.Stderr
	if err := p.milter.Start(); err != nil {
		return nil, fmt.Errorf("start OpenDKIM: %w", err)
	}
	if err := listens(ctx, milter); err != nil {
		return nil, fmt.Errorf("start OpenDKIM: %w", err)
	}
	if out, err := exec.CommandContext(ctx, "postfix", "-c", dir, "check").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("check Postfix: %w: %s", err, out)
	}
	p.master = exec.CommandContext(ctx, "/usr/lib/postfix/sbin/master", "-c", dir, "-d")
	p.master.Cancel = func() error { return p.master.Process.Signal(syscall.SIGTERM) }
	if err := p.master.Start(); err != nil {
		return nil, fmt.Errorf("start Postfix: %w", err)
	}
	if err := listens(ctx, p.address); err != nil {
		return nil, fmt.Errorf("start Postfix: %w", err)
	}
	return p, nil
}

// write writes the settings of both, and the signing key.
func (p *postfix) write(ctx context.Context, sink, milter string) error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	der := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	_, sinkPort, _ := net.SplitHostPort(sink)
	_, milterPort, _ := net.SplitHostPort(milter)
	var errs []error
	for name, text := range map[string]string{
		"main.cf":       fmt.Sprintf(mainCF, p.dir, sinkPort, milter),
		"master.cf":     fmt.Sprintf(masterCF, p.address),
		"opendkim.conf": fmt.Sprintf(opendkimConf, p.dir, milterPort),
		"key.pem":       string(der),
	} {
		errs = append(errs, os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o644))
	}
	for _, name := range []string{"spool", "data"} {
		errs = append(errs, os.Mkdir(filepath.Join(p.dir, name), 0o755))
	}
	own := exec.CommandContext(ctx, "chown", "postfix", filepath.Join(p.dir, "data"))
	errs = append(errs, os.Chmod(p.dir, 0o755), own.Run())
	return errors.Join(errs...)
}

// listens waits until address accepts connections.
func listens(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	for tick := time.NewTicker(50 * time.Millisecond); ; {
		var d net.Dialer
		if conn, err := d.DialContext(ctx, "tcp", address); err == nil {
			return conn.Close()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("nothing listens at %s", address)
		}
	}
}

func (p *postfix) stop() {
	for _, cmd := range []*exec.Cmd{p.master, p.milter} {
		if cmd != nil && cmd.Process != nil {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			_ = cmd.Wait() // the exit status after SIGTERM does not matter
		}
	}
	_ = os.RemoveAll(p.dir)
}

func (*postfix) name() string { return "Postfix, OpenDKIM" }

func (p *postfix) cpu() time.Duration {
	return process.FamilyCPU(p.master.Process.Pid) + process.FamilyCPU(p.milter.Process.Pid)
}

func (*postfix) canBatch() bool { return false }

func (p *postfix) send(ctx context.Context, n, conns int, _ bool) error {
	return submit(ctx, n, conns, p.size, p.address, "")
}
