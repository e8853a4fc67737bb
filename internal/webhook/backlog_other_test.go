//go:build !linux

package webhook_test

import "testing"

// newUnconnectable is newSilent on systems where the backlog cannot be filled.
func newUnconnectable(t *testing.T) string {
	t.Helper()
	return "http://" + newSilent(t)
}
