//go:build clients && unix

package queue_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/postroom/postroom/internal/skiptest"
	"github.com/postroom/postroom/internal/waittest"
	"github.com/postroom/postroom/smtp/smtptest"
)

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
virtual_mailbox_domains = out.example, relayed.example
virtual_mailbox_maps = texthash:%[1]s/mailboxes
virtual_mailbox_base = %[1]s/mail
virtual_mailbox_limit = 0
virtual_minimum_uid = 1
virtual_uid_maps = static:%[3]s
virtual_gid_maps = static:%[4]s
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

const (
	// postfixTTL bounds, in seconds, how long a Postfix outlives a killed test.
	postfixTTL = "600"
	// postfixMaxSize is the maximum size of a message in bytes.
	postfixMaxSize = 3 << 20
)

// startPostfix starts a Postfix with mailboxes in two domains. If Postfix is missing or
// cannot be started, the test is skipped, or fails in CI.
func startPostfix(t testing.TB) *postfix {
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
	p.write(t, owner)
	p.start(t)
	return p
}

// write writes the configuration.
func (p *postfix) write(t testing.TB, owner *user.User) {
	t.Helper()
	boxes, access := "one@out.example one@out.example/\ntwo@out.example two@out.example/\n", ""
	for _, domain := range []string{"out.example", "relayed.example"} {
		for _, name := range []string{"ann", "bob", "дима"} {
			boxes += fmt.Sprintf("%s@%s %[1]s@%s/\n", name, domain)
		}
		access += fmt.Sprintf("gone@%s 550 5.1.1 mailbox closed\nbusy@%[1]s 450 4.2.1 come again\n", domain)
	}
	cfg, _ := smtptest.NewTLS(t, "mx.out.example")
	key, err := x509.MarshalPKCS8PrivateKey(cfg.Certificates[0].PrivateKey)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(err)
	for name, text := range map[string]string{
		"main.cf": fmt.Sprintf(mainCF, p.dir, postfixMaxSize, owner.Uid, owner.Gid), "master.cf": fmt.Sprintf(masterCF, p.addr),
		"mailboxes": boxes, "access": access, "headers": "/^Subject:.*virus/ REJECT 5.7.1 bad subject\n",
		"cert.pem": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cfg.Certificates[0].Certificate[0]})),
		"key.pem":  string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})),
	} {
		must(os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o644)) //nolint:gosec // Postfix reads them as another user
	}
	uid, err := strconv.Atoi(owner.Uid)
	must(err)
	must(os.Chmod(p.dir, 0o755)) //nolint:gosec // as above
	for _, name := range []string{"spool", "data", "mail"} {
		must(os.Mkdir(filepath.Join(p.dir, name), 0o755)) //nolint:gosec // as above
		if name != "spool" {
			must(os.Chown(filepath.Join(p.dir, name), uid, -1))
		}
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
			t.Logf("what Postfix said:\n%s", p.log(t))
		}
	})
	waittest.Until(t, "Postfix listens", func() bool {
		conn, err := net.Dial("tcp", p.addr)
		return err == nil && conn.Close() == nil
	})
}

func (p *postfix) port() uint16 { return netip.MustParseAddrPort(p.addr).Port() }

func (p *postfix) log(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, "log"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(text)
}

// messages waits until a mailbox has n messages and returns all of them, with CRLF
// and with the fields that Postfix adds.
func (p *postfix) messages(t testing.TB, box string, n int) (all [][]byte) {
	t.Helper()
	var files []string
	waittest.Until(t, fmt.Sprintf("%s has %d messages", box, n), func() bool {
		files, _ = filepath.Glob(filepath.Join(p.dir, "mail", box, "new", "*")) // the pattern is right
		return len(files) >= n
	})
	for _, f := range files {
		mail, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, bytes.ReplaceAll(mail, []byte("\n"), []byte("\r\n")))
	}
	return all
}
