package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/idna"

	"github.com/postroom/postroom/internal/dropin"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/netguard"
	"github.com/postroom/postroom/internal/s3blob"
	"github.com/postroom/postroom/smtp/outbound"
	"github.com/postroom/postroom/store"
)

// errValue means that a value has the wrong type. The setting's want tag
// describes a correct one.
var errValue = errors.New("invalid value")

// hidden replaces a secret value.
const hidden = "(hidden)"

// Types of settings. Each validates its text, so that the value can be used
// without further checks.
type (
	onOff        bool
	port         uint16
	count        int
	days         int
	mebibytes    int
	listenAddr   string // host:port to listen on; the host may be empty and the port 0
	loopback     string // host:port to listen on, loopback only
	hostPort     string // host:port to connect to
	domain       string // lower case, in A-label form
	hosts        []string
	addresses    []string
	loops        []string // domains and email addresses
	vendors      []string // of dropin
	webURL       string   // http or https, without a trailing slash
	relayURL     string   // as for outbound.ParseRelay
	database     string   // postgres:// address or path
	blobs        string   // s3:// address or path
	prefixes     []netip.Prefix
	secret       string
	bootstrapKey string
	keyPrefix    string
	quota        store.Quota
	lineEnds     string
	tracking     string
	sendPolicy   store.SendPolicy
	planList     []store.Plan
	agentLimits  struct{ *store.Limits }
	logFormat    string
	logLevel     slog.Level
)

func (v *onOff) UnmarshalText(b []byte) error {
	*v = string(b) == "on"
	return oneOf(b, "on", "off")
}

func (v onOff) String() string {
	if v {
		return "on"
	}
	return "off"
}

func (v *port) UnmarshalText(b []byte) error {
	n, err := strconv.ParseUint(string(b), 10, 16)
	*v = port(n)
	return valid(err == nil && n > 0)
}

func (v *count) UnmarshalText(b []byte) error {
	n, err := strconv.Atoi(string(b))
	*v = count(n)
	return valid(err == nil && n > 0 && n <= 1_000_000)
}

func (v *days) UnmarshalText(b []byte) error {
	number := strings.TrimSuffix(string(b), "d")
	n, err := strconv.Atoi(number)
	*v = days(n)
	return valid(err == nil && n >= 1 && n <= 3650)
}

func (v days) String() string { return strconv.Itoa(int(v)) + "d" }

func (v days) duration() time.Duration { return time.Duration(v) * 24 * time.Hour }

func (v *mebibytes) UnmarshalText(b []byte) error {
	number, ok := strings.CutSuffix(string(b), "MiB")
	n, err := strconv.Atoi(number)
	*v = mebibytes(n)
	return valid(ok && err == nil && n >= 1 && n <= 100)
}

func (v mebibytes) String() string { return strconv.Itoa(int(v)) + "MiB" }

func (v mebibytes) bytes() int64 { return int64(v) << 20 }

// UnmarshalText parses a size in MB or GB and a number of messages, or off.
func (v *quota) UnmarshalText(b []byte) error {
	*v = quota{}
	if string(b) == "off" {
		return nil
	}
	size, messages, _ := strings.Cut(string(b), ",")
	unit := int64(1_000_000)
	number, ok := strings.CutSuffix(size, "MB")
	if !ok {
		unit = 1_000_000_000
		number, ok = strings.CutSuffix(size, "GB")
	}
	bytes, err := strconv.ParseUint(number, 10, 20)
	count, errCount := strconv.ParseUint(strings.TrimSpace(messages), 10, 32)
	*v = quota{Bytes: int64(bytes) * unit, Messages: int64(count)} //nolint:gosec // both are small
	return valid(ok && err == nil && errCount == nil && bytes > 0 && count > 0)
}

func (v quota) String() string {
	switch {
	case v == quota{}:
		return "off"
	case v.Bytes%1_000_000_000 == 0:
		return fmt.Sprintf("%dGB,%d", v.Bytes/1_000_000_000, v.Messages)
	}
	return fmt.Sprintf("%dMB,%d", v.Bytes/1_000_000, v.Messages)
}

func (v *lineEnds) UnmarshalText(b []byte) error {
	*v = lineEnds(b)
	return oneOf(b, "reject", "normalize")
}

func (v *tracking) UnmarshalText(b []byte) error {
	*v = tracking(b)
	return oneOf(b, "off", "opens", "clicks", "all")
}

func (v tracking) opens() bool { return v == "opens" || v == "all" }

func (v tracking) clicks() bool { return v == "clicks" || v == "all" }

func (v *listenAddr) UnmarshalText(b []byte) error {
	*v = listenAddr(b)
	_, p, err := net.SplitHostPort(string(b))
	return valid(err == nil && isPort(p))
}

func (v *loopback) UnmarshalText(b []byte) error {
	*v = loopback(b)
	ap, err := netip.ParseAddrPort(string(b))
	return valid(err == nil && ap.Addr().IsLoopback())
}

func (v *hostPort) UnmarshalText(b []byte) error {
	*v = hostPort(b)
	host, p, err := net.SplitHostPort(string(b))
	return valid(err == nil && host != "" && isPort(p) && p != "0")
}

func isPort(s string) bool {
	_, err := strconv.ParseUint(s, 10, 16)
	return err == nil
}

// UnmarshalText accepts a name in any script and stores its A-label form, as DNS
// and SMTP use it.
func (v *domain) UnmarshalText(b []byte) error {
	ascii, err := idna.Lookup.ToASCII(strings.TrimSuffix(string(b), "."))
	*v = domain(strings.ToLower(ascii))
	_, notAName := netip.ParseAddr(ascii)
	return valid(err == nil && len(ascii) <= 253 && domainForm.MatchString(ascii) && notAName != nil)
}

// UnmarshalText accepts a list of host names that a certificate can cover.
func (v *hosts) UnmarshalText(b []byte) error {
	*v = nil
	for name := range strings.SplitSeq(string(b), ",") {
		var d domain
		if err := d.UnmarshalText([]byte(strings.TrimSpace(name))); err != nil || !strings.Contains(string(d), ".") {
			return errValue
		}
		*v = append(*v, string(d))
	}
	return nil
}

func (v *addresses) UnmarshalText(b []byte) error {
	*v = nil
	for email := range strings.SplitSeq(string(b), ",") {
		email = strings.TrimSpace(email)
		local, name, _ := strings.Cut(email, "@")
		var d domain
		if err := d.UnmarshalText([]byte(name)); err != nil || !strings.Contains(string(d), ".") || mail.ValidAddress(email) != nil {
			return errValue
		}
		if email = strings.ToLower(local) + "@" + string(d); !slices.Contains(*v, email) {
			*v = append(*v, email)
		}
	}
	return nil
}

func (v *loops) UnmarshalText(b []byte) error {
	*v = nil
	for one := range strings.SplitSeq(string(b), ",") {
		var name hosts
		read := name.UnmarshalText
		if strings.Contains(one, "@") {
			read = (*addresses)(&name).UnmarshalText
		}
		if err := read([]byte(one)); err != nil {
			return err
		}
		*v = append(*v, name...)
	}
	return nil
}

func (v *vendors) UnmarshalText(b []byte) error {
	list, err := dropin.Parse(string(b))
	*v = list
	return err
}

func (v vendors) String() string { return strings.Join(v, ",") }

func (v loops) String() string { return strings.Join(v, ",") }

func (v addresses) String() string { return strings.Join(v, ",") }

func (v hosts) String() string { return strings.Join(v, ",") }

// domainForm is the syntax of RFC 1123: labels of letters, digits and inner
// hyphens.
var domainForm = regexp.MustCompile(`(?i)^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

func (v *webURL) UnmarshalText(b []byte) error {
	*v = webURL(strings.TrimRight(string(b), "/"))
	u, err := url.Parse(string(b))
	return valid(err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" &&
		u.User == nil && u.RawQuery == "" && u.Fragment == "")
}

func (v *relayURL) UnmarshalText(b []byte) error {
	*v = relayURL(b)
	_, err := outbound.ParseRelay(string(b)) // its errors do not show the password
	return err
}

// String hides the password.
func (v relayURL) String() string { return redacted(string(v)) }

func (v *database) UnmarshalText(b []byte) error {
	*v = database(b)
	if !strings.Contains(string(b), "://") {
		return valid(!strings.ContainsAny(string(b), "\x00?"))
	}
	u, err := url.Parse(string(b))
	return valid(err == nil && (u.Scheme == "postgres" || u.Scheme == "postgresql"))
}

// String hides the password.
func (v database) String() string { return redacted(string(v)) }

// postgres reports whether the database is a PostgreSQL server.
func (v database) postgres() bool { return strings.Contains(string(v), "://") }

func (v *blobs) UnmarshalText(b []byte) error {
	*v = blobs(b)
	if !strings.Contains(string(b), "://") {
		return valid(!strings.ContainsRune(string(b), 0))
	}
	_, err := s3blob.Parse(string(b)) // its errors do not show credentials
	return err
}

// bucket reports whether the blobs are in S3-compatible storage.
func (v blobs) bucket() bool { return strings.HasPrefix(string(v), s3blob.Scheme) }

// redacted hides the password in a URL, before the host or in the query.
func redacted(address string) string {
	if !strings.Contains(address, "://") {
		return address
	}
	u, err := url.Parse(address)
	if err != nil {
		return hidden
	}
	if q := u.Query(); q.Has("password") {
		q.Set("password", "xxxxx")
		u.RawQuery = q.Encode()
	}
	return u.Redacted()
}

func (v *prefixes) UnmarshalText(b []byte) error {
	list, err := netguard.ParsePrefixes(string(b))
	*v = list
	return err
}

func (v prefixes) String() string {
	var all []string
	for _, p := range v {
		all = append(all, p.String())
	}
	return strings.Join(all, ",")
}

func (v *secret) UnmarshalText(b []byte) error {
	*v = secret(b)
	return valid(len(b) >= 32)
}

// String keeps the secret out of logs.
func (v secret) String() string { return hidden }

// UnmarshalText rejects characters that cannot appear in an Authorization header.
func (v *bootstrapKey) UnmarshalText(b []byte) error {
	*v = bootstrapKey(b)
	odd := slices.ContainsFunc(b, func(c byte) bool { return c <= ' ' || c > '~' })
	return valid(len(b) >= 20 && len(b) <= 200 && !odd)
}

// String keeps the key out of logs.
func (v bootstrapKey) String() string { return hidden }

func (v *keyPrefix) UnmarshalText(b []byte) error {
	*v = keyPrefix(b)
	return valid(regexp.MustCompile(`^[a-z0-9]{1,16}$`).Match(b))
}

// rateLimits are limits per minute, or none.
type rateLimits struct {
	httpapi.Rates
	off bool
}

// UnmarshalText parses limits of the form number/60s. Those that are not given have
// the default.
func (v *rateLimits) UnmarshalText(b []byte) error {
	*v = rateLimits{Rates: httpapi.DefaultRates, off: string(b) == "off"}
	if v.off || string(b) == "on" {
		return nil
	}
	limits := []*int{&v.Calls, &v.Sends, &v.Refused}
	for i, text := range strings.Split(string(b), ",") {
		number, ok := strings.CutSuffix(strings.TrimSpace(text), "/60s")
		n, err := strconv.Atoi(number)
		if !ok || err != nil || n < 1 || i >= len(limits) {
			return errValue
		}
		*limits[i] = n
	}
	return nil
}

func (v rateLimits) String() string {
	if v.off {
		return "off"
	}
	return fmt.Sprintf("%d/60s,%d/60s,%d/60s", v.Calls, v.Sends, v.Refused)
}

func (v *sendPolicy) UnmarshalText(b []byte) error {
	*v = sendPolicy(b)
	return oneOf(b, string(store.PolicyOpen), string(store.PolicyReplyOnly), string(store.PolicyApproval))
}

// UnmarshalText parses plans of the form name:limit=number,..., separated by
// semicolons.
func (v *planList) UnmarshalText(b []byte) error {
	*v = nil
	for text := range strings.SplitSeq(string(b), ";") {
		p, err := parsePlan(strings.TrimSpace(text))
		if err != nil {
			return err
		}
		*v = append(*v, p)
	}
	return nil
}

func parsePlan(text string) (store.Plan, error) {
	name, limits, _ := strings.Cut(text, ":")
	p := store.Plan{Name: name}
	if !planName.MatchString(name) {
		return p, fmt.Errorf("invalid plan name %q: use a-z, 0-9 and _", name)
	}
	into := map[string]*int64{"inboxes": &p.Inboxes, "daily": &p.Daily, "monthly": &p.Monthly}
	for limit := range strings.SplitSeq(limits, ",") {
		if limit == "" && limits == "" {
			break
		}
		key, value, _ := strings.Cut(limit, "=")
		n, err := strconv.ParseInt(value, 10, 64)
		if into[key] == nil || err != nil || n < 1 {
			return p, fmt.Errorf("invalid limit %q: use a form such as daily=2000", limit)
		}
		*into[key] = n
	}
	return p, nil
}

var planName = regexp.MustCompile(`^[a-z0-9_]{1,32}$`)

func (v planList) String() string {
	var all []string
	for _, p := range v {
		var limits []string
		for _, l := range []struct {
			name string
			n    int64
		}{{"inboxes", p.Inboxes}, {"daily", p.Daily}, {"monthly", p.Monthly}} {
			if l.n > 0 {
				limits = append(limits, fmt.Sprintf("%s=%d", l.name, l.n))
			}
		}
		all = append(all, strings.TrimSuffix(p.Name+":"+strings.Join(limits, ","), ":"))
	}
	return strings.Join(all, ";")
}

// UnmarshalText parses limits of the form limit=number, separated by commas.
func (v *agentLimits) UnmarshalText(b []byte) error {
	v.Limits = nil
	l := store.Limits{OnLimit: store.LimitRefuses}
	for text := range strings.SplitSeq(string(b), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(text), "=")
		if name == "on_limit" {
			l.OnLimit = store.OnLimit(value)
			if err := oneOf([]byte(value), string(store.LimitRefuses), string(store.LimitApproval)); err != nil {
				return err
			}
			continue
		}
		n, err := strconv.ParseInt(value, 10, 64)
		i := slices.IndexFunc(store.LimitFields(), func(f store.LimitField) bool { return f.Name == name })
		if i < 0 || err != nil || n < 0 {
			return fmt.Errorf("invalid limit %q: use a form such as sends_per_hour=500", text)
		}
		*store.LimitFields()[i].Of(&l) = &n
	}
	if l.None() {
		return errors.New("sets no limit: use a form such as sends_per_hour=500")
	}
	v.Limits = &l
	return nil
}

func (v agentLimits) String() string {
	if v.Limits == nil {
		return ""
	}
	var all []string
	for _, f := range store.LimitFields() {
		if n := *f.Of(v.Limits); n != nil {
			all = append(all, f.Name+"="+strconv.FormatInt(*n, 10))
		}
	}
	return strings.Join(append(all, "on_limit="+string(v.OnLimit)), ",")
}

func (v *logFormat) UnmarshalText(b []byte) error {
	*v = logFormat(b)
	return oneOf(b, "text", "json")
}

func (v *logLevel) UnmarshalText(b []byte) error {
	if err := oneOf(b, "debug", "info", "warn", "error"); err != nil {
		return err
	}
	return (*slog.Level)(v).UnmarshalText(b)
}

func (v logLevel) String() string { return strings.ToLower(slog.Level(v).String()) }

func oneOf(b []byte, values ...string) error { return valid(slices.Contains(values, string(b))) }

func valid(ok bool) error {
	if ok {
		return nil
	}
	return errValue
}

// wait is a short time that something waits.
type wait time.Duration

func (v *wait) UnmarshalText(b []byte) error {
	d, err := time.ParseDuration(string(b))
	*v = wait(d)
	return valid(err == nil && d >= 0 && d <= 10*time.Minute)
}

func (v wait) String() string { return time.Duration(v).String() }
