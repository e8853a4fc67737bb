package webhook_test

import (
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"
)

// newUnconnectable returns the URL of a server that neither accepts nor refuses
// connections: its backlog is full.
func newUnconnectable(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	loopback := syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}
	if err := errors.Join(syscall.Bind(fd, &loopback), syscall.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	at, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", at.(*syscall.SockaddrInet4).Port) //nolint:forcetypeassert // it was bound as one
	for range 10 {
		conn, err := (&net.Dialer{Timeout: patience / 600}).DialContext(t.Context(), "tcp", address)
		if err != nil {
			return "http://" + address
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	t.Fatal("the system delays all connections")
	return ""
}
