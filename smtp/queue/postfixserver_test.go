//go:build clients && unix

package queue_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/skiptest"
	"github.com/postroom/postroom/smtp/smtptest"
)

// postfixConfig configures a postfix.
type postfixConfig struct {
	// TLS is the certificate for STARTTLS.
	TLS *tls.Config
	// Mailboxes are the existing addresses.
	Mailboxes []string
	// Access maps other recipients to replies, such as "450 4.2.1 later". Other
	// addresses of the same domains are unknown.
	Access map[string]string
	// MaxSize is the maximum size of a message in bytes.
	MaxSize int
	// BadSubject, if set, is a word in the Subject. Postfix refuses a message
	// with it after DATA.
	BadSubject string
}

// postfix is a real Postfix on a free port of 127.0.0.1, with its own queue,
// configuration and mailboxes.
type postfix struct {
	dir  string
	addr string
}

// mainCF delivers messages from this machine to mailboxes in a folder. It refuses
// clients that pipeline commands illegally.
const mainCF = `compatibility_level = 3.6
queue_directory = %[1]s/spool
data_directory = %[1]s/data
command_directory = /usr/sbin
daemon_directory = /usr/lib/postfix/sbin
mail_owner = postfix
setgid_group = postdrop
myhostname = postfix.test
mydestination =
alias_maps =
mynetworks = 127.0.0.0/8
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
maillog_file = %[1]s/log
maillog_file_prefixes = %[1]s
smtputf8_enable = yes
message_size_limit = %[2]d
smtpd_tls_security_level = may
smtpd_tls_cert_file = %[1]s/cert.pem
smtpd_tls_key_file = %[1]s/key.pem
smtpd_tls_received_header = yes
smtpd_recipient_restrictions = check_recipient_access texthash:%[1]s/access, permit_mynetworks, reject
smtpd_data_restrictions = reject_unauth_pipelining
header_checks = regexp:%[1]s/headers
virtual_mailbox_domains = %[3]s
virtual_mailbox_maps = texthash:%[1]s/mailboxes
virtual_mailbox_base = %[1]s/mail
virtual_mailbox_limit = 0
virtual_minimum_uid = 1
virtual_uid_maps = static:%[4]s
virtual_gid_maps = static:%[5]s
`

const masterCF = `%s inet n - n - - smtpd
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
tlsmgr unix - - n 1000? 1 tlsmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
verify unix - - n - 1 verify
proxymap unix - - n - - proxymap
error unix - - n - - error
retry unix - - n - - error
virtual unix - n n - - virtual
anvil unix - - n - 1 anvil
postlog unix-dgram n - n - 1 postlogd
`

// postfixTTL bounds, in seconds, how long a Postfix outlives a killed test.
const postfixTTL = "600"

// startPostfix starts a Postfix. If Postfix is missing or cannot be started, the
// test is skipped, or fails in CI.
func startPostfix(t testing.TB, cfg postfixConfig) *postfix {
	t.Helper()
	owner, err := user.Lookup("postfix")
	if _, noMaster := os.Stat("/usr/lib/postfix/sbin/master"); err != nil || noMaster != nil || os.Getuid() != 0 {
		skiptest.OutsideCI(t, "this test starts a Postfix: it needs the package postfix, and root")
	}
	dir, err := os.MkdirTemp("", "postroom-postfix-") // accessible for other users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // the system removes it otherwise
	l := smtptest.Listen(t, "127.0.0.1")[0]
	p := &postfix{dir: dir, addr: l.Addr().String()}
	_ = l.Close() // the port stays free for a moment
	p.write(t, cfg, owner)
	p.start(t)
	return p
}

// write writes the configuration.
func (p *postfix) write(t testing.TB, cfg postfixConfig, owner *user.User) {
	t.Helper()
	var boxes, access strings.Builder
	domains := map[string]bool{}
	for _, box := range cfg.Mailboxes {
		fmt.Fprintf(&boxes, "%s %s/\n", box, box)
		domains[box[strings.LastIndexByte(box, '@')+1:]] = true
	}
	for rcpt, reply := range cfg.Access {
		fmt.Fprintf(&access, "%s %s\n", rcpt, reply)
	}
	var names []string
	for name := range domains {
		names = append(names, name)
	}
	cert, key := pemOf(t, cfg.TLS)
	headers := ""
	if cfg.BadSubject != "" {
		headers = "/^Subject:.*" + cfg.BadSubject + "/ REJECT 5.7.1 bad subject\n"
	}
	for name, text := range map[string]string{
		"main.cf":   fmt.Sprintf(mainCF, p.dir, cfg.MaxSize, strings.Join(names, ", "), owner.Uid, owner.Gid),
		"master.cf": fmt.Sprintf(masterCF, p.addr),
		"mailboxes": boxes.String(), "access": access.String(), "headers": headers, "cert.pem": cert, "key.pem": key,
	} {
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o644); err != nil { //nolint:gosec // Postfix reads them as another user
			t.Fatal(err)
		}
	}
	uid, err := strconv.Atoi(owner.Uid)
	if err == nil {
		err = os.Chmod(p.dir, 0o755) //nolint:gosec // as above
	}
	for _, name := range []string{"spool", "data", "mail"} {
		if err == nil {
			err = os.Mkdir(filepath.Join(p.dir, name), 0o755) //nolint:gosec // as above
		}
		if err == nil && name != "spool" {
			err = os.Chown(filepath.Join(p.dir, name), uid, -1)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// start starts Postfix and waits until it listens.
func (p *postfix) start(t testing.TB) {
	t.Helper()
	// The check creates the queue folders.
	if out, err := exec.CommandContext(t.Context(), "/usr/sbin/postfix", "-c", p.dir, "check").CombinedOutput(); err != nil { //nolint:gosec // a folder of ours
		t.Fatalf("check Postfix: %v: %s", err, out)
	}
	master := exec.CommandContext(context.WithoutCancel(t.Context()), "/usr/lib/postfix/sbin/master", "-c", p.dir, "-d", "-e", postfixTTL) //nolint:gosec // as above
	master.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}                                                                               // ended as a whole
	if err := master.Start(); err != nil {
		t.Fatalf("start Postfix: %v", err)
	}
	t.Cleanup(func() {
		_ = master.Process.Signal(syscall.SIGTERM)
		_ = master.Wait() // it exits on a signal
		if t.Failed() {
			t.Logf("what Postfix said:\n%s", p.Log(t))
		}
	})
	late := time.After(20 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		var d net.Dialer
		if conn, err := d.DialContext(t.Context(), "tcp", p.addr); err == nil {
			_ = conn.Close()
			return
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("Postfix does not listen\n%s", p.Log(t))
		}
	}
}

func pemOf(t testing.TB, cfg *tls.Config) (cert, key string) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(cfg.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cfg.Certificates[0].Certificate[0]})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// Addr returns host:port.
func (p *postfix) Addr() string { return p.addr }

// Port returns the listening port.
func (p *postfix) Port(t testing.TB) uint16 {
	t.Helper()
	_, port, _ := strings.Cut(p.addr, ":")
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	return uint16(n)
}

// Log returns the log.
func (p *postfix) Log(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, "log"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(text)
}

// messages waits until a mailbox has n messages and returns all of them, with CRLF
// and with the fields that Postfix adds.
func (p *postfix) messages(t testing.TB, box string, n int) [][]byte {
	t.Helper()
	late := time.After(20 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		files, err := filepath.Glob(filepath.Join(p.dir, "mail", box, "new", "*"))
		if err != nil {
			t.Fatal(err)
		}
		if len(files) >= n {
			var all [][]byte
			for _, f := range files {
				mail, err := os.ReadFile(f)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, bytes.ReplaceAll(mail, []byte("\n"), []byte("\r\n")))
			}
			return all
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%s has %d messages, want %d", box, len(files), n)
		}
	}
}
