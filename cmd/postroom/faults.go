package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/caarlos0/env/v11"

	"github.com/postroom/postroom/internal/cli"
	"github.com/postroom/postroom/internal/nearname"
	"github.com/postroom/postroom/store"
)

// faultList collects all errors in the settings, to report them together.
type faultList []string

func (l *faultList) add(format string, args ...any) { *l = append(*l, fmt.Sprintf(format, args...)) }

func (l *faultList) err() error {
	if len(*l) == 0 {
		return nil
	}
	return cli.UsageError{Err: errors.New("invalid settings:\n  " + strings.Join(*l, "\n  "))}
}

// notOurs matches variables with our prefix that others set: Kubernetes and
// Docker for a service named postroom, and our tests.
var notOurs = regexp.MustCompile(`^POSTROOM_(TEST_.*|SERVICE_(HOST|PORT(_.*)?)|PORT(_.*)?|ENV_.*|NAME)$`)

// unknown finds unknown variables with our prefix, because a misspelled setting
// must not be ignored silently.
func (l *faultList) unknown(vars map[string]string) {
	// Read by the client commands and `postroom dev`.
	known := map[string]bool{cli.ServerEnv: true, cli.KeyEnv: true, cli.ProfileEnv: true, devListenEnv: true, devHostsEnv: true}
	for _, s := range settings() {
		known[s.env] = true
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(known)) {
		names = append(names, strings.TrimPrefix(name, envPrefix))
	}
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if !strings.HasPrefix(name, envPrefix) || known[name] || notOurs.MatchString(name) {
			continue
		}
		short := strings.TrimPrefix(name, envPrefix)
		if near := nearname.Nearest(short, names); near != "" {
			l.add("%s is not a setting: did you mean %s%s?", name, envPrefix, near)
		} else {
			l.add("%s is not a setting: `postroom config` lists them", name)
		}
	}
}

// unreadable adds the values that could not be parsed.
func (l *faultList) unreadable(err error, given, vars map[string]string) {
	if err == nil {
		return
	}
	wrong := map[string]string{} // by field: the cause, if the want tag does not describe it
	all := []error{err}
	if many, ok := errors.AsType[env.AggregateError](err); ok {
		all = many.Errors
	}
	for _, e := range all {
		if one, ok := errors.AsType[env.ParseError](e); ok {
			wrong[one.Name] = reason(one.Err)
		} else {
			l.add("%v", e)
		}
	}
	for _, s := range settings() {
		why, is := wrong[s.field]
		switch {
		case !is:
		case s.hide != "":
			l.add("%s has a value that is not %s%s", given[s.field], s.want, why)
		default:
			l.add("%s is %q, which is not %s%s", given[s.field], vars[s.env], s.want, why)
		}
	}
}

func reason(err error) string {
	if errors.Is(err, errValue) {
		return ""
	}
	return " (" + err.Error() + ")"
}

// disagreeing adds settings that conflict with each other or with the machine.
func (l *faultList) disagreeing(c Config, given map[string]string) {
	switch {
	case c.TLSCert == "" && c.TLSKey == "":
	case c.TLSCert == "":
		l.add("%s is set without %s: set both, or none", given["TLSKey"], given["TLSCert"])
	case c.TLSKey == "":
		l.add("%s is set without %s: set both, or none", given["TLSCert"], given["TLSKey"])
	default:
		if _, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey); err != nil {
			l.add("%s and %s are not a certificate and its key: %v", given["TLSCert"], given["TLSKey"], err)
		}
	}
	l.tls(c, given)
	if !store.KnowsPlan(c.Plans, c.Plan) {
		l.add("%s is %q, which is neither self_hosted nor free nor a plan of %s", given["Plan"], c.Plan, given["Plans"])
	}
	for _, email := range c.Approvers {
		if _, domain, _ := strings.Cut(email, "@"); domain == string(c.MailDomain) || strings.HasSuffix(domain, "."+string(c.MailDomain)) {
			l.add("%s has %s, where an agent can have an inbox and approve its own drafts: use addresses that this installation does not receive for", given["Approvers"], email)
		}
	}
	if len(c.Approvers) > 0 && !bool(c.Dashboard) {
		l.add("%s is set and %s is off: the links open a page of the dashboard", given["Approvers"], given["Dashboard"])
	}
	l.oauth(c, given)
	if c.HTTP == c.SMTP && !strings.HasSuffix(string(c.HTTP), ":0") && c.HTTP != "" {
		l.add("%s and %s are both %s: each needs a port of its own", given["HTTP"], given["SMTP"], c.HTTP)
	}
}

// oauth adds what OAuth lacks: the dashboard, which has the page for approval, and a URL
// that clients trust with tokens.
func (l *faultList) oauth(c Config, given map[string]string) {
	if !bool(c.OAuth) {
		return
	}
	if !bool(c.Dashboard) {
		l.add("%s is on and %s is off: a page of the dashboard asks for approval", given["OAuth"], given["Dashboard"])
	}
	base, err := url.Parse(string(c.BaseURL))
	switch {
	case err != nil || c.BaseURL == "" && (c.HTTPS != "" || isLoopback(string(c.HTTP))):
	case c.BaseURL == "":
		l.add("%s is on: set %s to the public https:// address", given["OAuth"], given["BaseURL"])
	case base.Scheme != "https" && !isLoopback(net.JoinHostPort(base.Hostname(), "0")):
		l.add("%s is on and %s is %s: use https://, or http:// with a loopback address", given["OAuth"], given["BaseURL"], c.BaseURL)
	case strings.Trim(base.Path, "/") != "":
		l.add("%s is on and %s has a path: use an address without one", given["OAuth"], given["BaseURL"])
	}
}

// tls adds missing settings of HTTPS and ACME.
func (l *faultList) tls(c Config, given map[string]string) {
	acme := len(c.ACMEHosts) > 0
	if acme && c.TLSCert != "" {
		l.add("%s and %s are both set: a certificate comes from files or by ACME", given["TLSCert"], given["ACMEHosts"])
	}
	if c.HTTPS != "" && !acme && c.TLSCert == "" {
		l.add("%s is set without a certificate: set %s and %s, or %s", given["HTTPS"], given["TLSCert"], given["TLSKey"], given["ACMEHosts"])
	}
	if c.Submissions != "" && !acme && c.TLSCert == "" {
		l.add("%s is set without a certificate: set %s and %s, or %s", given["Submissions"], given["TLSCert"], given["TLSKey"], given["ACMEHosts"])
	}
	if c.Submission != "" && !acme && c.TLSCert == "" && !isLoopback(string(c.Submission)) {
		l.add("%s is %s, where keys need TLS: set %s and %s, or %s, or listen on 127.0.0.1", given["Submission"], c.Submission, given["TLSCert"], given["TLSKey"], given["ACMEHosts"])
	}
	if c.HTTPS != "" && c.HTTPS == c.HTTP && !strings.HasSuffix(string(c.HTTPS), ":0") {
		l.add("%s and %s are both %s: each needs a port of its own", given["HTTP"], given["HTTPS"], c.HTTPS)
	}
}
