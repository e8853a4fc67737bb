package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/mail"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/skiptest"

	"github.com/postroom/postroom/smtp/smtptest"
)

// outside is the world that mail goes to: one server for every domain, which
// speaks TLS, and what there is in the DNS.
type outside struct {
	mx    *smtptest.MX
	zones smtptest.Zones
	env   []string // settings of a service that sends there as agents.example.com
	http  string   // where its API listens
}

func newOutside(t *testing.T) *outside {
	t.Helper()
	cfg, _ := smtptest.NewTLS(t, "127.0.0.1")
	o := &outside{mx: smtptest.NewMX(t, smtptest.MXConfig{TLS: cfg, UTF8: true})}
	l, err := net.Listen("tcp", "127.0.0.1:0") // a port that is free, most likely still in a moment
	if err != nil {
		t.Fatal(err)
	}
	o.http = l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	o.zones = smtptest.Zones{}.Domain("outside.example", o.mx.IP()).Domain("xn--bcher-kva.example", o.mx.IP())
	o.env = []string{
		"POSTROOM_RESOLVER=" + smtptest.NewDNS(t, o.zones), fmt.Sprintf("POSTROOM_MX_PORT=%d", o.mx.Port()),
		"POSTROOM_MX_ALLOW=127.0.0.0/8", "POSTROOM_MAIL_DOMAIN=agents.example.com", "POSTROOM_HOSTNAME=out.example.com",
		"POSTROOM_RATE_LIMITS=off", "POSTROOM_BASE_URL=https://mail.example.com", "POSTROOM_HTTP=" + o.http,
	}
	return o
}

// serve starts the service, whose links begin with another address than that at
// which it listens.
func (o *outside) serve(t *testing.T, data string) *served {
	t.Helper()
	s := serve(t, data, o.env...)
	s.api = "http://" + o.http
	return s
}

// take waits until so many recipients have got their mail, and returns each mail
// once: it may come anew for each recipient.
func (o *outside) take(t *testing.T, recipients int) []smtptest.Message {
	t.Helper()
	seen := map[string]bool{}
	var once []smtptest.Message
	for have, n := 0, 0; have < recipients; {
		messages := o.mx.Wait(t, n+1)
		for _, m := range messages[n:] {
			have += len(m.To)
			if id := headerID(t, m); !seen[id] {
				seen[id] = true
				once = append(once, m)
			}
		}
		n = len(messages)
	}
	return once
}

func headerID(t *testing.T, m smtptest.Message) string {
	t.Helper()
	parsed, err := mail.ReadMessage(bytes.NewReader(m.Data))
	if err != nil {
		t.Fatalf("%v\n%.1000s", err, m.Data)
	}
	return parsed.Header.Get("Message-ID")
}

// txtRecords are the TXT records of what `postroom domain show` says, by name.
func txtRecords(t *testing.T, zoneFile string) map[string]string {
	t.Helper()
	records := map[string]string{}
	for line := range strings.Lines(zoneFile) {
		if f := strings.Fields(line); len(f) > 4 && f[3] == "TXT" {
			_, rest, _ := strings.Cut(line, "TXT")
			records[strings.TrimSuffix(f[0], ".")] = strings.NewReplacer(`" "`, "", `"`, "").Replace(strings.TrimSpace(rest))
		}
	}
	if len(records) == 0 {
		t.Fatalf("no TXT records in\n%s", zoneFile)
	}
	return records
}

// verification is the output of testdata/verify.py for a message.
type verification struct {
	File     string
	OpenDKIM string
	DKIMPy   []struct {
		A, D, Error string
		H           []string
		OK          bool
	}
}

// verifyAll verifies the messages in a folder with dkimpy and opendkim-testmsg.
func verifyAll(t *testing.T, folder string, records map[string]string) map[string]verification {
	t.Helper()
	keys, err := json.Marshal(records)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "keys.json"), keys, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "unshare", "-rmn", "/usr/bin/python3", "testdata/verify.py", folder)
	var failed bytes.Buffer
	cmd.Stderr = &failed
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("verify.py: %v\n%s", err, &failed)
	}
	all := map[string]verification{}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		var j verification
		if err := json.Unmarshal(lines.Bytes(), &j); err != nil {
			t.Fatalf("%v: %s", err, lines.Bytes())
		}
		all[j.File] = j
	}
	return all
}

// needVerifiers leaves the test out where the programs that verify, or what they
// need, are not available; in CI that is a failure.
func needVerifiers(t *testing.T) {
	t.Helper()
	_, err := exec.LookPath("opendkim-testmsg")
	if err == nil {
		err = exec.CommandContext(t.Context(), "unshare", "-rmn", "/usr/bin/python3", "-c", "import dkim, nacl").Run()
	}
	if err == nil {
		return
	}
	why := fmt.Sprintf("opendkim-testmsg, or dkimpy in a network of its own, cannot be run: %v", err)
	skiptest.OutsideCI(t, why)
}

// O9: dkimpy (RSA and Ed25519) and opendkim-testmsg (RSA only) verify the
// messages as sent. The signatures are aligned with From, and adding a From or
// Subject breaks them.
func TestOthersVerifyWhatIsSigned(t *testing.T) {
	t.Parallel()
	needVerifiers(t)
	o, data := newOutside(t), t.TempDir()
	s := o.serve(t, data)
	records := txtRecords(t, waitForSigningKeys(t, data, o.env))
	messages := o.take(t, sendVaried(t, s, signedMessages))
	if len(messages) != signedMessages {
		t.Fatalf("%d of %d messages arrived", len(messages), signedMessages)
	}
	folder := t.TempDir()
	for i, m := range messages {
		write(t, folder, fmt.Sprintf("%04d.eml", i), m.Data)
	}
	changed := changeSome(t, folder, messages)

	verified := verifyAll(t, folder, records)

	if len(verified) != len(messages)+changed {
		t.Fatalf("%d of %d messages were verified", len(verified), len(messages)+changed)
	}
	for name, j := range verified {
		if strings.HasPrefix(name, "changed") {
			j.wantRefused(t)
			continue
		}
		j.wantVerified(t)
	}
	if t.Failed() {
		logHeaders(t, messages)
	}
}

func write(t *testing.T, folder, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// changeSome writes modified messages, whose signatures must fail, and returns
// their number.
func changeSome(t *testing.T, folder string, messages []smtptest.Message) int {
	t.Helper()
	n := 0
	for i, m := range messages[:min(5, len(messages))] {
		header, body, _ := bytes.Cut(m.Data, []byte("\r\n\r\n"))
		for name, mail := range map[string][]byte{
			"from":    slices.Concat([]byte("From: eve@evil.example\r\n"), m.Data),
			"subject": slices.Concat(header, []byte("\r\nSubject: another\r\n\r\n"), body),
			"body":    slices.Concat(m.Data, []byte("more\r\n")),
		} {
			write(t, folder, fmt.Sprintf("changed-%s-%d.eml", name, i), mail)
			n++
		}
	}
	return n
}

func (j verification) wantVerified(t *testing.T) {
	t.Helper()
	if j.OpenDKIM != "" {
		t.Errorf("%s: opendkim-testmsg says %s", j.File, j.OpenDKIM)
	}
	var algorithms []string
	for _, sig := range j.DKIMPy {
		if !sig.OK || sig.D != "agents.example.com" {
			t.Errorf("%s: dkimpy on the signature of %q: %t %s", j.File, sig.D, sig.OK, sig.Error)
		}
		for _, name := range []string{"from", "subject"} {
			if n := len(slices.DeleteFunc(slices.Clone(sig.H), func(h string) bool { return h != name })); n != 2 {
				t.Errorf("%s: %s is signed %d times in %v, want once more than it is there", j.File, name, n, sig.H)
			}
		}
		algorithms = append(algorithms, sig.A)
	}
	if slices.Sort(algorithms); !slices.Equal(algorithms, []string{"ed25519-sha256", "rsa-sha256"}) {
		t.Errorf("%s: signed by %v", j.File, algorithms)
	}
}

func (j verification) wantRefused(t *testing.T) {
	t.Helper()
	if j.OpenDKIM == "" {
		t.Errorf("%s: opendkim-testmsg is content", j.File)
	}
	for _, sig := range j.DKIMPy {
		if sig.OK {
			t.Errorf("%s: dkimpy is content with %s", j.File, sig.A)
		}
	}
	if len(j.DKIMPy) != 2 {
		t.Errorf("%s: dkimpy found %d signatures", j.File, len(j.DKIMPy))
	}
}

// logHeaders shows the headers of what failed in the test's log.
func logHeaders(t *testing.T, messages []smtptest.Message) {
	t.Helper()
	for i, m := range messages {
		if parsed, err := mail.ReadMessage(bytes.NewReader(m.Data)); err == nil {
			t.Logf("%04d.eml: %v", i, parsed.Header)
		}
	}
}
