package doctor_test

import (
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/doctor"
	"github.com/postroom/postroom/smtp/outbound"
	"github.com/postroom/postroom/smtp/smtptest"
	"github.com/postroom/postroom/store/storetest"
)

func parseRelay(t *testing.T, s string) *outbound.Relay {
	t.Helper()
	r, err := outbound.ParseRelay(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// shut returns an address without a listener.
func shut(t *testing.T, ip string) *net.TCPAddr {
	t.Helper()
	l := smtptest.Listen(t, ip)[0]
	at := l.Addr().(*net.TCPAddr)
	_ = l.Close()
	return at
}

func portOf(a net.Addr) uint16 {
	return uint16(a.(*net.TCPAddr).Port) //nolint:gosec // a port fits
}

// script moves SMTP to a port on which only a scripted server at ip listens.
func (w *world) script(t *testing.T, ip, banner string, replies map[string]string) {
	t.Helper()
	l := smtptest.Listen(t, ip)[0]
	smtptest.Script{Banner: banner, Reply: smtptest.Replies(replies)}.Serve(t, l)
	w.cfg.MXPort = portOf(l.Addr())
}

func TestFaultsOfMailTransport(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		spoil  func(t *testing.T, w *world)
		check  string
		status doctor.Status
		saw    string
		advice string
	}{
		{"the mail port is closed", func(t *testing.T, w *world) { w.cfg.MXPort = portOf(shut(t, hostIP)) }, "inbound", doctor.Fail, "connection refused", "POSTROOM_SMTP"},
		{"another server responds", func(t *testing.T, w *world) { w.script(t, hostIP, "220 mail.hoster.example ESMTP Exim", nil) }, "inbound", doctor.Fail, `responds as "mail.hoster.example"`, "stop that server"},
		{"the port does not speak SMTP", func(t *testing.T, w *world) { w.script(t, hostIP, "SSH-2.0-OpenSSH_9.6", nil) }, "inbound", doctor.Fail, "not SMTP", "firewall"},
		{"our server does not encrypt", func(t *testing.T, w *world) { w.script(t, hostIP, "220 "+hostname+" ESMTP", nil) }, "inbound", doctor.Warn, "without encryption", "POSTROOM_TLS_CERT"},
		{"our server offers a certificate that is out of date", func(t *testing.T, w *world) {
			l := smtptest.Listen(t, hostIP)[0]
			smtptest.NewMX(t, smtptest.MXConfig{Listener: l, Name: hostname, TLS: w.certificate(t, time.Now().Add(-time.Hour), hostname)})
			w.cfg.MXPort = portOf(l.Addr())
		}, "inbound", doctor.Fail, "expired at", "renew"},
		{"our server offers a certificate for another", func(t *testing.T, w *world) {
			l := smtptest.Listen(t, hostIP)[0]
			smtptest.NewMX(t, smtptest.MXConfig{Listener: l, Name: hostname, TLS: w.certificate(t, time.Now().Add(2000*time.Hour), "old.example")})
			w.cfg.MXPort = portOf(l.Addr())
		}, "inbound", doctor.Fail, "is for \"old.example\"", "POSTROOM_HOSTNAME"},
		{"our server's certificate ends soon", func(t *testing.T, w *world) {
			l := smtptest.Listen(t, hostIP)[0]
			smtptest.NewMX(t, smtptest.MXConfig{Listener: l, Name: hostname, TLS: w.certificate(t, time.Now().Add(73*time.Hour), hostname)})
			w.cfg.MXPort = portOf(l.Addr())
		}, "inbound", doctor.Warn, "in 3 days", "renew"},
		{"our server's certificate has an unknown issuer", func(t *testing.T, w *world) {
			l := smtptest.Listen(t, hostIP)[0]
			stranger, _ := smtptest.NewTLSUntil(t, time.Now().Add(2000*time.Hour), hostname)
			smtptest.NewMX(t, smtptest.MXConfig{Listener: l, Name: hostname, TLS: stranger})
			w.cfg.MXPort = portOf(l.Addr())
		}, "inbound", doctor.Warn, "unknown authority", "chain"},

		{"port 25 is closed", func(t *testing.T, w *world) { w.cfg.MXPort = portOf(shut(t, outsideIP)) }, "outbound", doctor.Fail, "connection refused", "POSTROOM_RELAY"},
		{"an unknown domain", func(_ *testing.T, w *world) { w.cfg.To = "nowhere.example" }, "outbound", doctor.Fail, "cannot send mail", "POSTROOM_RESOLVER"},
		{"the server refuses us", func(t *testing.T, w *world) {
			w.script(t, outsideIP, "554 5.7.1 your address is listed", nil)
		}, "outbound", doctor.Fail, "554 5.7.1 your address is listed", "see the reply"},
		{"the server refuses mail for the mailbox", func(t *testing.T, w *world) {
			w.script(t, outsideIP, "220 mx.outside.example", map[string]string{"RCPT": "550 5.7.25 no PTR record"})
		}, "outbound", doctor.Warn, "550 5.7.25 no PTR record", "PTR record"},
		{"the server is private", func(t *testing.T, w *world) { w.cfg.Allow = prefixes(t, hostIP+"/32") }, "outbound", doctor.Fail, "not public", "POSTROOM_MX_ALLOW"},
		{"no server is given", func(_ *testing.T, w *world) { w.cfg.To = "" }, "outbound", doctor.Skipped, "no server given", "--to"},

		{"the relay is unreachable", func(t *testing.T, w *world) { w.cfg.Relay = parseRelay(t, "smtp://"+shut(t, "127.0.0.1").String()) }, "relay", doctor.Fail, "connection refused", "host, port"},
		{"the relay does not know the password", func(t *testing.T, w *world) {
			mx := smtptest.NewMX(t, smtptest.MXConfig{Users: map[string]string{"ann": "right"}})
			w.cfg.Relay = parseRelay(t, "smtp://ann:wrong@"+mx.Addr()+"?tls=off")
		}, "relay", doctor.Fail, "credentials not accepted", "password"},
		{"the relay does not encrypt", func(t *testing.T, w *world) {
			mx := smtptest.NewMX(t, smtptest.MXConfig{})
			w.cfg.Relay = parseRelay(t, "smtp://"+mx.Addr()+"?tls=verify")
		}, "relay", doctor.Fail, "offers no TLS", "tls=verify"},
		{"the relay's certificate is for another", func(t *testing.T, w *world) {
			mx := smtptest.NewMX(t, smtptest.MXConfig{TLS: w.certificate(t, time.Now().Add(time.Hour), "other.example")})
			w.cfg.Relay = parseRelay(t, "smtp://"+mx.Addr()+"?tls=verify")
		}, "relay", doctor.Fail, "TLS:", "certificate"},
		{"the relay's certificate is out of date", func(t *testing.T, w *world) {
			mx := smtptest.NewMX(t, smtptest.MXConfig{TLS: w.certificate(t, time.Now().Add(-time.Hour), "127.0.0.1")})
			w.cfg.Relay = parseRelay(t, "smtp://"+mx.Addr()+"?tls=verify")
		}, "relay", doctor.Fail, "expired", "certificate"},
		{"the relay takes us", func(t *testing.T, w *world) {
			mx := smtptest.NewMX(t, smtptest.MXConfig{TLS: w.certificate(t, time.Now().Add(time.Hour), "127.0.0.1"), Users: map[string]string{"ann": "right"}})
			w.cfg.Relay = parseRelay(t, "smtp://ann:right@"+mx.Addr()+"?tls=verify")
		}, "relay", doctor.OK, "accepts us", ""},
		{"the relay hears us in the clear", func(t *testing.T, w *world) {
			w.script(t, outsideIP, "220 relay", nil)
			w.zones["relay.example."] = smtptest.A(outsideIP)
			w.cfg.Relay = parseRelay(t, "smtp://relay.example:"+strconv.Itoa(int(w.cfg.MXPort)))
		}, "relay", doctor.Warn, "without encryption", "tls=verify"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, storetest.SQLite)
			tt.spoil(t, w)
			wantResult(t, w.run(t), tt.check, tt.status, tt.saw, tt.advice)
		})
	}
}

// TestNoMailIsSent checks what the servers received.
func TestNoMailIsSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite)
	relay := smtptest.NewMX(t, smtptest.MXConfig{})
	w.run(t)
	w.cfg.Relay = parseRelay(t, "smtp://"+relay.Addr())
	w.run(t)
	if w.host.Conns() == 0 || relay.Conns() == 0 {
		t.Errorf("%d connections to our own port, %d to the relay", w.host.Conns(), relay.Conns())
	}
	if n := len(w.host.Messages()) + len(relay.Messages()); n != 0 {
		t.Errorf("%d messages were sent", n)
	}
}
