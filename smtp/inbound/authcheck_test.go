package inbound

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/dns"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mailauth"
	"github.com/postroom/postroom/smtp"
	"github.com/postroom/postroom/smtp/outbound"
	"github.com/postroom/postroom/smtp/queue"
	"github.com/postroom/postroom/smtp/smtptest"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// authenticatedWith makes a receiver authenticate messages with a DNS server with these
// zones.
func authenticatedWith(t testing.TB, zones smtptest.Zones, timeout time.Duration) func(*ReceiverConfig) {
	t.Helper()
	dns := outbound.NewResolver(smtptest.NewDNS(t, zones))
	return func(c *ReceiverConfig) {
		c.Auth, c.Hostname = mailauth.NewChecker(mailauth.NewCache(dns, nil), timeout, nil), "MX.in.example"
	}
}

// TestReceivedMailIsAuthenticated sends a signed mail over SMTP, asking a DNS server
// over UDP.
func TestReceivedMailIsAuthenticated(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		if err := queue.EnsureKeys(t.Context(), s, "out.example"); err != nil {
			t.Fatal(err)
		}
		zones := smtptest.Zones{
			"out.example.":        {TXT: []string{"v=spf1 ip4:127.0.0.0/8 ip6:::1 -all"}},
			"_dmarc.out.example.": {TXT: []string{"v=DMARC1; p=reject"}},
			"other.example.":      {TXT: []string{"v=spf1 -all"}},
		}
		records, err := queue.Records(t.Context(), s, "out.example")
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			zones[r.Name+"."] = smtptest.Zone{TXT: []string{r.Value}}
		}
		lines, err := queue.NewSigner(s, nil).Sign(t.Context(), store.TheInstall, "out.example", strings.NewReader(rawMail("Hi.")))
		if err != nil {
			t.Fatal(err)
		}
		signed := lines + rawMail("Hi.")

		tests := []struct {
			name, from, raw string
			want            mail.AuthResult
		}{
			{"signed", "ann@out.example", signed, mail.AuthResult{SPF: "pass", DKIM: "pass", DMARC: "pass"}},
			{"signed, by another way", "list@other.example", signed, mail.AuthResult{SPF: "fail", DKIM: "pass", DMARC: "pass"}},
			{"changed", "ann@out.example", signed + "PS.\r\n", mail.AuthResult{SPF: "pass", DKIM: "fail", DMARC: "pass"}},
			{"forged", "list@other.example", rawMail("Hi."), mail.AuthResult{SPF: "fail", DKIM: "none", DMARC: "fail"}},
			{"without a From", "", rawMail("Hi."), mail.AuthResult{SPF: "none", DKIM: "none", DMARC: "fail"}},
			{"large", "ann@out.example", rawMail(strings.Repeat("x\r\n", 200<<10)), mail.AuthResult{SPF: "pass", DKIM: "none", DMARC: "pass"}},
		}
		_, addr := serve(t, newReceiver(t, s, authenticatedWith(t, zones, 0)))
		for _, tt := range tests {
			in := storetest.Inbox(t, s)
			c := hello(t, addr)
			c.begin(tt.from, in.Address)
			c.send(tt.raw + ".\r\n")
			c.want("250")

			m := only(t, s, in)
			got := m.Content.Auth.V
			if !strings.HasPrefix(got.Field, "mx.in.example;") || !strings.Contains(got.Field, "dmarc="+tt.want.DMARC) {
				t.Errorf("%s: field %q", tt.name, got.Field)
			}
			got.Field = ""
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s: %s", tt.name, diff)
			}
			if raw := readRaw(t, s, m); raw != tt.raw {
				t.Errorf("%s: the stored message differs from the received one", tt.name)
			}
		}
	})
}

// TestMailOfOurOwnQueueIsNotAuthenticated: it has crossed no network.
func TestMailOfOurOwnQueueIsNotAuthenticated(t *testing.T) {
	t.Parallel()
	s := storetest.OpenSQLite(t)
	in := storetest.Inbox(t, s)
	r := newReceiver(t, s, func(c *ReceiverConfig) { c.Auth = mailauth.NewChecker(brokenDNS{t}, 0, nil) })
	if _, err := receive(t, r, smtp.Envelope{MailFrom: "a@in.example", RcptTo: []string{in.Address}}, rawMail("Hi.")); err != nil {
		t.Fatal(err)
	}
	if m := only(t, s, in); m.Content.Auth != nil {
		t.Errorf("auth %+v", m.Content.Auth)
	}
}

// brokenDNS fails a test that asks it.
type brokenDNS struct{ t *testing.T }

func (d brokenDNS) LookupTXT(_ context.Context, name string) ([]string, error) {
	d.t.Errorf("asked for %s", name)
	return nil, errors.New("broken")
}
func (d brokenDNS) LookupMX(context.Context, string) ([]*net.MX, error) { panic("broken") }
func (d brokenDNS) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	panic("broken")
}
func (d brokenDNS) LookupAddr(context.Context, string) ([]string, error) { panic("broken") }

// TestMailIsAcceptedWithoutDNS is row A6: whatever the DNS does, the message is
// stored with its authentication results within the time limit.
func TestMailIsAcceptedWithoutDNS(t *testing.T) {
	t.Parallel()
	silent, err := net.ListenPacket("udp", "127.0.0.1:0") // takes questions and says nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	closed, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	broken := smtptest.NewDNS(t, smtptest.Zones{"out.example.": {Err: errors.New("broken")}, "_dmarc.out.example.": {Err: errors.New("broken")}})

	none := mail.AuthResult{SPF: "temperror", DKIM: "none", DMARC: "temperror"}
	for name, resolver := range map[string]dns.Resolver{
		"no response":            outbound.NewResolver(silent.LocalAddr().String()),
		"no server":              outbound.NewResolver(closed.LocalAddr().String()),
		"SERVFAIL":               outbound.NewResolver(broken),
		"a panic":                panicking{},
		"a timeout":              lasting{},
		"a panic behind a cache": mailauth.NewCache(panicking{}, nil),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storetest.OpenSQLite(t)
			in := storetest.Inbox(t, s)
			_, addr := serve(t, newReceiver(t, s, func(c *ReceiverConfig) {
				c.Auth = mailauth.NewChecker(resolver, 300*time.Millisecond, nil)
				c.Log = testLog(t)
			}))
			begin := time.Now()
			c := hello(t, addr)
			c.begin("ann@out.example", in.Address)
			c.send(rawMail("Hi.") + ".\r\n")
			c.want("250")
			if took := time.Since(begin); took > mailauth.DefaultTimeout {
				t.Errorf("took %s", took)
			}
			m := only(t, s, in)
			got := m.Content.Auth.V
			got.Field = ""
			if diff := cmp.Diff(none, got); diff != "" {
				t.Error(diff)
			}

			// An inbox that takes mail only from this sender cannot refuse it permanently.
			if _, err := s.CreateListEntry(t.Context(), store.ListEntry{
				AccountID: in.AccountID, InboxSeq: in.Seq, Direction: store.ListInbound, Action: mail.ListAllow, Pattern: "ann@out.example", CreatedBy: "key_test",
			}, true, nil); err != nil {
				t.Fatal(err)
			}
			for from, want := range map[string]string{"ann@out.example": "451 4.7.0", "bob@out.example": "550 5.7.1"} {
				c.begin(from, in.Address)
				c.send(strings.ReplaceAll(rawMail("Hi."), "ann@out.example", from) + ".\r\n")
				c.want(want)
			}
		})
	}
}

// panicking is a resolver with a fault of its own.
type panicking struct{}

func (panicking) LookupTXT(context.Context, string) ([]string, error) { panic("broken") }

func (panicking) LookupMX(context.Context, string) ([]*net.MX, error) { panic("broken") }

func (panicking) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) { panic("broken") }

func (panicking) LookupAddr(context.Context, string) ([]string, error) { panic("broken") }

// lasting is a resolver that takes as long as it may.
type lasting struct{ panicking }

func (lasting) LookupTXT(ctx context.Context, name string) ([]string, error) {
	<-ctx.Done()
	return nil, fmt.Errorf("%s: %w", name, ctx.Err())
}

// slowDNS replies to no query until it is released, and reports policy queries.
type slowDNS struct {
	dns.Resolver
	policies chan struct{}
	response chan struct{}
}

func (d slowDNS) LookupTXT(_ context.Context, name string) ([]string, error) {
	if strings.HasPrefix(name, "_dmarc.") {
		d.policies <- struct{}{}
	}
	<-d.response
	return nil, nil
}

// The content of large messages is not kept in memory while waiting for DNS: a
// slow DNS server could fill the memory. The test runs alone to measure it.
func TestLargeMailWaitsForItsResultsOnTheDisk(t *testing.T) { //nolint:paralleltest // as it says
	const messages = 12
	s := storetest.OpenSQLite(t)
	in := botInbox(t, s)
	dns := slowDNS{policies: make(chan struct{}, messages), response: make(chan struct{})}
	r := newReceiver(t, s, func(c *ReceiverConfig) { c.Auth = mailauth.NewChecker(dns, time.Minute, nil) })
	raw := rawMail(strings.Repeat(strings.Repeat("word ", 15)+"\r\n", 2<<20/77))
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	failed := make(chan error, messages)
	for range messages {
		go func() {
			spool := r.NewSpool()
			defer r.close(t.Context(), spool)
			_, err := io.WriteString(spool, raw)
			if err == nil {
				_, err = r.Receive(t.Context(), smtp.Envelope{MailFrom: "a@out.example", RcptTo: []string{bot}, RemoteAddr: "192.0.2.1", HELO: "x.example"}, spool)
			}
			failed <- err
		}()
	}
	for range messages {
		<-dns.policies
	}
	for range cap(r.reading) { // all parsers are free
		r.reading <- struct{}{}
	}
	if held := int64(heap()) - int64(before); held > 8<<20 { //nolint:gosec // far from the limits
		t.Errorf("%d messages of %d MiB use %d MiB while they wait", messages, len(raw)>>20, held>>20)
	}
	for range cap(r.reading) {
		<-r.reading
	}
	close(dns.response)
	for range messages {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	if n := len(list(t, s, in)); n != messages {
		t.Errorf("%d messages stored, want %d", n, messages)
	}
}
