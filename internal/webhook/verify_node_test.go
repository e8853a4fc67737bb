//go:build clients

package webhook_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/postroom/postroom/internal/skiptest"
)

// TestNodeLibrariesVerifyWhatIsSent is TestOthersVerifyWhatIsSent with the libraries
// of testdata/verify.
func TestNodeLibrariesVerifyWhatIsSent(t *testing.T) {
	t.Parallel()
	othersVerify(t, 2, askNode)
}

// askNode runs the two npm packages of testdata/verify.
func askNode(t *testing.T, looks []look) []results {
	t.Helper()
	dir := filepath.Join("testdata", "verify")
	node, err := exec.LookPath("node")
	if err == nil {
		_, err = os.Stat(filepath.Join(dir, "node_modules"))
	}
	if err != nil {
		why := fmt.Sprintf("no node with the packages of %s, which `make clients` brings: %v", dir, err)
		skiptest.OutsideCI(t, why)
	}
	var in, out, faults bytes.Buffer
	enc := json.NewEncoder(&in)
	for _, l := range looks {
		if err := enc.Encode(l); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), node, filepath.Join(dir, "verify.mjs"))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = &in, &out, &faults
	if err := cmd.Run(); err != nil {
		t.Fatalf("node: %v\n%s", err, &faults)
	}
	said := make([]results, len(looks))
	dec := json.NewDecoder(&out)
	for i := range said {
		if err := dec.Decode(&said[i]); err != nil || len(said[i]) != 2 {
			t.Fatalf("result %d of %d: %v %v", i, len(said), said[i], err)
		}
	}
	return said
}
