package queue_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/netguard"
	"github.com/postroom/postroom/smtp/queue"
	"github.com/postroom/postroom/smtp/smtptest"
	"github.com/postroom/postroom/store"
)

// How a server behaves at one of the addresses 127.0.0.1 to 127.0.0.5.
const (
	good    = "" // takes everything
	refuses = "refuses"
	silent  = "silent"
	web     = "web"
	busy    = "busy"
	badTLS  = "bad TLS" // needs TLS and cannot do it
)

// dnsCase is the DNS zone of a domain and the expected result of a message to it.
type dnsCase struct {
	name     string
	zones    smtptest.Zones
	servers  []string // at 127.0.0.1 and on
	status   store.RecipientStatus
	response string
	calls    []string // the addresses that were called, in order
}

// mxs is the domain out.example with hosts h0, h1 and so on, which have these
// preferences and the addresses 127.0.0.1, 127.0.0.2 and so on.
func mxs(prefs ...uint16) smtptest.Zones {
	zones := smtptest.Zones{}
	var records []net.MX
	for i, pref := range prefs {
		name := fmt.Sprintf("h%d.out.example.", i)
		records = append(records, net.MX{Host: name, Pref: pref})
		zones[name] = smtptest.A(fmt.Sprintf("127.0.0.%d", i+1))
	}
	zones["out.example."] = smtptest.MXRecords(records...)
	return zones
}

// with is zones with one more.
func with(zones smtptest.Zones, name string, zone smtptest.Zone) smtptest.Zones {
	zones[name] = zone
	return zones
}

// without is zones with one less.
func without(zones smtptest.Zones, name string) smtptest.Zones {
	delete(zones, name)
	return zones
}

func dnsCases() []dnsCase {
	const (
		queued    = store.RecipientQueued
		bounced   = store.RecipientBounced
		delivered = store.RecipientDelivered
	)
	many := make([]uint16, 50)
	for i := range many {
		many[i] = uint16(100 - i)
	}
	return []dnsCase{
		{"preference", mxs(30, 10, 20), []string{good, good, good}, delivered, "250", []string{"127.0.0.2"}},
		{"refused, then the next", mxs(10, 20), []string{refuses, good}, delivered, "250", []string{"127.0.0.2"}},
		{"timeout, then the next", mxs(10, 20), []string{silent, good}, delivered, "250", []string{"127.0.0.1", "127.0.0.2"}},
		{"bad banner, then the next", mxs(10, 20), []string{web, good}, delivered, "250", []string{"127.0.0.1", "127.0.0.2"}},
		{"421, then the next", mxs(10, 20), []string{busy, good}, delivered, "250", []string{"127.0.0.1", "127.0.0.2"}},
		{
			"TLS failure, then the next", mxs(10, 20),
			[]string{badTLS, good},
			delivered, "250",
			[]string{"127.0.0.1", "127.0.0.1", "127.0.0.2"}, // once more in the clear
		},
		{"no MX", smtptest.Zones{"out.example.": smtptest.A("127.0.0.1")}, []string{good}, delivered, "250", []string{"127.0.0.1"}},
		{
			"the domain is an alias", with(mxs(10), "alias.example.", smtptest.Zone{CNAME: "out.example."}),
			[]string{good},
			delivered, "250",
			[]string{"127.0.0.1"},
		},
		{"NXDOMAIN", smtptest.Zones{}, nil, bounced, "550 5.1.2", nil},
		{"SERVFAIL", smtptest.Zones{"out.example.": {Err: errors.New("servfail")}}, nil, queued, "451 4.4.3", nil},
		{"neither MX nor address", smtptest.Zones{"out.example.": {TXT: []string{"x"}}}, nil, bounced, "550 5.1.2", nil},
		{
			"SERVFAIL for the only host", with(mxs(10), "h0.out.example.", smtptest.Zone{Err: errors.New("servfail")}),
			nil, queued, "451 4.4.1", nil,
		},
		{
			"the only host does not exist", without(mxs(10), "h0.out.example."),
			nil, queued, "451 4.4.1 h0.out.example: no such host", nil,
		},
		{
			"a host that does not exist, then the next", without(mxs(10, 20), "h0.out.example."),
			[]string{good, good},
			delivered, "250",
			[]string{"127.0.0.2"},
		},
		{
			"the MX is an alias", with(with(mxs(10), "real.example.", smtptest.A("127.0.0.1")), "h0.out.example.", smtptest.Zone{CNAME: "real.example."}),
			[]string{good},
			delivered, "250",
			[]string{"127.0.0.1"},
		},
		{
			"an IP address instead of a host name", smtptest.Zones{"out.example.": smtptest.MXRecords(net.MX{Host: "127.0.0.1.", Pref: 1})},
			[]string{good},
			queued, "451 4.4.1", nil,
		},
		{
			"null MX",
			smtptest.Zones{"out.example.": {MX: []net.MX{{Host: "."}}, A: []string{"127.0.0.1"}}},
			[]string{good},
			bounced, "556 5.1.10", nil,
		},
		{"MX in 127/8", with(mxs(10), "h0.out.example.", smtptest.A("127.9.9.9")), []string{good}, bounced, "550 5.4.4", nil},
		{"MX in 10/8", with(mxs(10), "h0.out.example.", smtptest.A("10.1.2.3")), []string{good}, bounced, "550 5.4.4", nil},
		{"MX is this machine", with(mxs(10), "h0.out.example.", smtptest.A("9.9.9.9")), []string{good}, bounced, "550 5.4.4", nil},
		{
			"a private MX before a public one", with(mxs(10, 20), "h0.out.example.", smtptest.A("10.1.2.3")),
			[]string{good, good},
			delivered, "250",
			[]string{"127.0.0.2"},
		},
		{
			"50 MX, all busy", with(mxs(many...), "h49.out.example.", smtptest.A("127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5", "127.0.0.6")),
			[]string{busy, busy, busy, busy, busy, good},
			queued, "421 4.3.2",
			[]string{"127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"},
		},
	}
}

// What the DNS says of a domain decides which servers are called, and in what
// order (O1). That hosts of one preference share the mail is
// TestEqualPreferencesShareTheMail.
func TestDNSTables(t *testing.T) {
	inSQLite(t, func(t *testing.T, w *world) {
		for _, tt := range dnsCases() {
			t.Run(tt.name, func(t *testing.T) {
				servers := newServers(t, tt.servers)
				q := w.queue(t, servers.port, tt.zones, func(c *queue.Config) {
					c.Resolver = tt.zones.Resolver()
					c.Timeouts.Banner = 300 * time.Millisecond
					c.Guard = netguard.New(netguard.Config{
						Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/24")}, Own: []netip.Addr{netip.MustParseAddr("9.9.9.9")},
					})
				})
				to := "bob@out.example"
				if _, alias := tt.zones["alias.example."]; alias {
					to = "bob@alias.example"
				}
				m := w.send(t, to)

				round(t, q, 1)

				w.wantRecipient(t, m, tt.status, tt.response)
				if diff := cmp.Diff(tt.calls, servers.called()); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
			})
		}
	})
}

// servers note who is called.
type servers struct {
	port uint16

	mu    sync.Mutex
	calls []string
}

func newServers(t *testing.T, kinds []string) *servers {
	t.Helper()
	ips := []string{"127.0.0.1"}
	for i := 1; i < len(kinds); i++ {
		ips = append(ips, fmt.Sprintf("127.0.0.%d", i+1))
	}
	s := &servers{}
	listeners := smtptest.Listen(t, ips...)
	s.port = port(listeners[0])
	for i, kind := range kinds {
		l := &notedListener{listeners[i], s, ips[i]}
		script := smtptest.Script{Banner: "220 hi", Reply: smtptest.Replies(nil)}
		switch kind {
		case refuses:
			_ = l.Close()
			continue
		case silent:
			script.Banner = smtptest.Hang
		case web:
			script.Banner = "HTTP/1.1 400 Bad Request"
		case busy:
			script.Banner = "421 4.3.2 not now"
		case badTLS:
			script.Reply = smtptest.Replies(map[string]string{
				"EHLO": "250-mx.test\n250 STARTTLS", "STARTTLS": "220 go ahead\n550 surprise", "MAIL": "530 5.7.0 Must issue STARTTLS first",
			})
		}
		script.Serve(t, l)
	}
	return s
}

func (s *servers) called() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

type notedListener struct {
	net.Listener
	servers *servers
	ip      string
}

func (l *notedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.servers.mu.Lock()
		defer l.servers.mu.Unlock()
		l.servers.calls = append(l.servers.calls, l.ip)
	}
	return conn, err
}
