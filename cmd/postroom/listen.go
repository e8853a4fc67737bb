package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"syscall"

	"github.com/postroom/postroom/internal/httpserver"
)

// listeners are the listeners of a node. All but http and smtp are nil if not
// configured.
type listeners struct{ http, https, smtp, submission, submissions, metrics, pprof net.Listener }

// listen opens all listeners, or none.
func (c Config) listen(ctx context.Context) (l listeners, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, l.close())
		}
	}()
	for _, one := range []struct {
		l       *net.Listener
		at      string
		setting string
	}{
		{&l.http, string(c.HTTP), "HTTP"}, {&l.https, string(c.HTTPS), "HTTPS"}, {&l.smtp, string(c.SMTP), "SMTP"},
		{&l.submission, string(c.Submission), "SUBMISSION"}, {&l.submissions, string(c.Submissions), "SUBMISSIONS"},
		{&l.metrics, string(c.Metrics), "METRICS"}, {&l.pprof, string(c.Pprof), "PPROF"},
	} {
		if one.at == "" {
			continue
		}
		if *one.l, err = listenOn(ctx, one.at, one.setting); err != nil {
			return l, err
		}
	}
	return l, err
}

func listenOn(ctx context.Context, at, setting string) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", at)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s%s: %s is in use by another program", envPrefix, setting, at)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("%s%s: no permission to listen on %s", envPrefix, setting, at)
	case err != nil:
		return nil, fmt.Errorf("%s%s: %w", envPrefix, setting, err)
	}
	return l, nil
}

// close closes the open listeners.
func (l listeners) close() error {
	var errs []error
	for _, one := range []net.Listener{l.http, l.https, l.smtp, l.submission, l.submissions, l.metrics, l.pprof} {
		if one == nil {
			continue
		}
		if err := one.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// spareFiles are the file descriptors that no client's connection takes. They are for
// the database, files, and connections to other servers.
const spareFiles = 256

// connLimits divides the file descriptors of the process. SMTP connections get at most
// half of those that are left, two for each connection: a large message is kept in a
// file. HTTP connections get the rest. smtp is the limit of each of the SMTP servers.
func (c Config) connLimits(files, smtpServers int) (limits httpserver.Limits, smtp int) {
	left := files - min(spareFiles, files/2)
	smtp = max(1, min(int(c.SMTPMaxConns), left/4/smtpServers))
	limits.Total = max(2, min(int(c.HTTPMaxConns), left-2*smtp*smtpServers))
	if c.HTTPMaxConnsPerIP < c.HTTPMaxConns {
		limits.PerNetwork = max(1, min(int(c.HTTPMaxConnsPerIP), limits.Total/2)) // one client leaves room for others
	}
	limits.Trusted = c.TrustedProxies
	return limits, smtp
}

// smtpServers returns the number of SMTP servers.
func (l listeners) smtpServers() int {
	n := 1
	for _, submission := range []net.Listener{l.submission, l.submissions} {
		if submission != nil {
			n++
		}
	}
	return n
}

// baseURL returns the public URL of the API that listens on addr, and on https if
// that is not nil. guessed reports that the URL works only on this machine,
// because none is configured and addr is unspecified.
func (c Config) baseURL(addr, https net.Addr) (base *url.URL, guessed bool) {
	if c.BaseURL != "" {
		if u, err := url.Parse(string(c.BaseURL)); err == nil { // already validated
			return u, false
		}
	}
	if https != nil {
		return &url.URL{Scheme: "https", Host: c.httpsHost(https)}, false
	}
	host := addr.String()
	ap, err := netip.ParseAddrPort(host)
	if guessed = err == nil && ap.Addr().IsUnspecified(); guessed {
		host = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), ap.Port()).String()
	}
	return &url.URL{Scheme: "http", Host: host}, guessed
}

// httpsHost returns the host name of the certificate, with the port of addr
// unless it is 443.
func (c Config) httpsHost(addr net.Addr) string {
	name := string(c.Hostname)
	if len(c.ACMEHosts) > 0 {
		name = c.ACMEHosts[0]
	}
	if _, p, err := net.SplitHostPort(addr.String()); err == nil && p != "443" {
		return net.JoinHostPort(name, p)
	}
	return name
}

// addrOf returns the address of a listener, or nil.
func addrOf(l net.Listener) net.Addr {
	if l == nil {
		return nil
	}
	return l.Addr()
}

// httpsAddr returns the address to listen on for HTTPS, or nil.
func (c Config) httpsAddr() (net.Addr, error) {
	if c.HTTPS == "" {
		return nil, nil //nolint:nilnil // there may be none
	}
	return net.ResolveTCPAddr("tcp", string(c.HTTPS))
}
