//go:build !linux

package webhook_test

import "testing"

// newUnconnectable is newSilent where the system cannot be made to leave
// connections alone.
func newUnconnectable(t *testing.T) string {
	t.Helper()
	return "http://" + newSilent(t)
}
