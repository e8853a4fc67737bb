package smtptest

import (
	"errors"
	"net"
	"syscall"
	"testing"

	"github.com/foxcpp/go-mockdns"
)

// Zone holds the records of a name. Err causes SERVFAIL.
type Zone = mockdns.Zone

// Zones maps names, each with a trailing dot, to records.
type Zones map[string]Zone

// MXRecords returns a zone with MX records.
func MXRecords(records ...net.MX) Zone { return Zone{MX: records} }

// A returns a zone with addresses.
func A(ips ...string) Zone { return Zone{A: ips} }

// Domain adds a domain whose only MX host is at ip.
func (z Zones) Domain(name, ip string) Zones {
	z[name+"."] = MXRecords(net.MX{Host: "mx." + name + ".", Pref: 10})
	z["mx."+name+"."] = A(ip)
	return z
}

// Resolver returns the results of NewDNS without a network, and so without a size
// limit.
func (z Zones) Resolver() *mockdns.Resolver { return &mockdns.Resolver{Zones: z} }

// NewDNS starts a DNS server and returns its host:port.
func NewDNS(t testing.TB, zones Zones) string {
	t.Helper()
	srv, err := mockdns.NewServerWithLogger(zones, noLog{}, false)
	for range 10 { // TCP and UDP need the same port; the TCP port may be taken for UDP
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
