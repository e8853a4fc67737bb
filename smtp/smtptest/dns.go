package smtptest

import (
	"errors"
	"net"
	"syscall"
	"testing"

	"github.com/foxcpp/go-mockdns"
)

// Zone is what the DNS knows of a name. Err makes it answer SERVFAIL.
type Zone = mockdns.Zone

// Zones are names, each with a dot at the end.
type Zones map[string]Zone

// MXRecords is a name with MX records.
func MXRecords(records ...net.MX) Zone { return Zone{MX: records} }

// A is the addresses of a name.
func A(ips ...string) Zone { return Zone{A: ips} }

// Domain adds a domain whose only MX host is at ip.
func (z Zones) Domain(name, ip string) Zones {
	z[name+"."] = MXRecords(net.MX{Host: "mx." + name + ".", Pref: 10})
	z["mx."+name+"."] = A(ip)
	return z
}

// Resolver answers as NewDNS does, without a network between and so with answers
// of any length.
func (z Zones) Resolver() *mockdns.Resolver { return &mockdns.Resolver{Zones: z} }

// NewDNS starts a DNS server and returns its host:port.
func NewDNS(t testing.TB, zones Zones) string {
	t.Helper()
	srv, err := mockdns.NewServerWithLogger(zones, noLog{}, false)
	for range 10 { // it wants one port for both TCP and UDP, and takes it of TCP's
		if !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
		srv, err = mockdns.NewServerWithLogger(zones, noLog{}, false)
	}
	if err != nil {
		t.Fatalf("fake DNS: %v", err)
	}
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Errorf("fake DNS: %v", err)
		}
	})
	return srv.LocalAddr().String()
}

type noLog struct{}

func (noLog) Printf(string, ...any) {}
