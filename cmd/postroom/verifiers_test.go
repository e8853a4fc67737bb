//go:build clients

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/skiptest"
)

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
