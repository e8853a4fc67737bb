package dnsrec_test

import (
	"errors"
	"testing"

	"github.com/foxcpp/go-mockdns"
	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/dnsrec"
)

// TestCheckHost covers the part of row O10 about the sending host: its EHLO
// name has addresses, and each has a PTR name that resolves back.
func TestCheckHost(t *testing.T) {
	t.Parallel()
	const host, addr, reverse = "mx.agents.example.", "192.0.2.7", "7.2.0.192.in-addr.arpa."
	forward := mockdns.Zone{A: []string{addr}}
	broken := mockdns.Zone{Err: errors.New("broken")}
	tests := []struct {
		name  string
		zones map[string]mockdns.Zone
		want  dnsrec.Finding
		ptr   string
	}{
		{"forward and reverse match", map[string]mockdns.Zone{host: forward, reverse: {PTR: []string{host}}}, dnsrec.Found, "mx.agents.example"},
		{"another name resolves to the address", map[string]mockdns.Zone{host: forward, reverse: {PTR: []string{"h7.isp.example."}}, "h7.isp.example.": forward}, dnsrec.Found, "h7.isp.example"},
		{"one of two names is our own", map[string]mockdns.Zone{host: forward, reverse: {PTR: []string{"h7.isp.example.", host}}, "h7.isp.example.": forward}, dnsrec.Found, "mx.agents.example"},
		{"one of two names resolves to the address", map[string]mockdns.Zone{host: forward, reverse: {PTR: []string{"gone.isp.example.", "h7.isp.example."}}, "h7.isp.example.": forward}, dnsrec.Found, "h7.isp.example"},
		{"no name", map[string]mockdns.Zone{host: forward}, dnsrec.Missing, ""},
		{"a name without an address", map[string]mockdns.Zone{host: forward, reverse: {PTR: []string{"gone.isp.example."}}}, dnsrec.Missing, "gone.isp.example"},
		{"a name of another address", map[string]mockdns.Zone{host: forward, reverse: {PTR: []string{"h8.isp.example."}}, "h8.isp.example.": {A: []string{"192.0.2.8"}}}, dnsrec.Missing, "h8.isp.example"},
		{"the DNS does not say the name", map[string]mockdns.Zone{host: forward, reverse: broken}, dnsrec.Unknown, ""},
		{"the DNS does not say the way back", map[string]mockdns.Zone{host: forward, reverse: {PTR: []string{"h7.isp.example."}}, "h7.isp.example.": broken}, dnsrec.Unknown, "h7.isp.example"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := dnsrec.CheckHost(t.Context(), &mockdns.Resolver{Zones: tt.zones}, "mx.agents.example")
			want := dnsrec.Host{
				Name: "mx.agents.example", Finding: tt.want,
				Addresses: []dnsrec.HostAddress{{Address: addr, PTR: tt.ptr, Finding: tt.want}},
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	for name, tt := range map[string]struct {
		zone mockdns.Zone
		want dnsrec.Finding
	}{"no such host": {mockdns.Zone{}, dnsrec.Missing}, "the DNS is in trouble": {broken, dnsrec.Unknown}} {
		got := dnsrec.CheckHost(t.Context(), &mockdns.Resolver{Zones: map[string]mockdns.Zone{host: tt.zone}}, "mx.agents.example")
		if got.Finding != tt.want || len(got.Addresses) != 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
