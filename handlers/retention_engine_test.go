//go:build !clients

package handlers_test

import (
	"testing"

	"github.com/postroom/postroom/store/storetest"
)

// eachRetained runs test on its engines with the blobs in a folder. With the tag
// clients, it uses S3-compatible storage instead.
func eachRetained(t *testing.T, test func(t *testing.T, s retained)) {
	t.Helper()
	for _, e := range storetest.Engines(t) {
		t.Run(string(e), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			test(t, newRetained(t, e, dir, newFileClock(), storetest.WithBlobs(dir)))
		})
	}
}
