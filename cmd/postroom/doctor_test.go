package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/doctor"
	"github.com/postroom/postroom/smtp/smtptest"
)

// TestDoctorsAdviceHelps publishes what the doctor says is missing, as it says
// it, until nothing fails: while the node serves, and after it.
func TestDoctorsAdviceHelps(t *testing.T) {
	t.Parallel()
	onEngine(t, func(t *testing.T, data string, env []string) {
		dns := smtptest.NewChangingDNS(t)
		env = append(env, "POSTROOM_RESOLVER="+dns.Addr(), "POSTROOM_MAIL_DOMAIN=agents.example.com",
			"POSTROOM_HOSTNAME=mx1.example.com", "POSTROOM_MX_ALLOW=127.0.0.0/8")
		s := serve(t, data, append(env, "POSTROOM_SMTP=127.0.0.2:0")...)
		waitForSigningKeys(t, data, env)
		_, port, err := net.SplitHostPort(s.smtp)
		if err != nil {
			t.Fatal(err)
		}
		var lc net.ListenConfig
		door, err := lc.Listen(t.Context(), "tcp", net.JoinHostPort("127.0.0.3", port))
		if err != nil {
			t.Skipf("the port is in use elsewhere: %v", err)
		}
		smtptest.NewMX(t, smtptest.MXConfig{Listener: door})
		env = append(env, "POSTROOM_HTTP="+strings.TrimPrefix(s.api, "http://"), "POSTROOM_MX_PORT="+port)
		zones := smtptest.Zones{}.Domain("outside.example", "127.0.0.3")
		dns.Set(t, zones)

		sick := doctors(t, data, env, false)
		if n := sick.Count(doctor.Fail); n < 3 { // host, MX, RSA key
			t.Errorf("%d checks fail without any record", n)
		}
		zones = publish(t, zones, sick)
		// Whose address it is, and its name, the operator knows alone.
		zones["mx1.example.com."] = smtptest.A("127.0.0.2")
		zones["2.0.0.127.in-addr.arpa."] = smtptest.Zone{PTR: []string{"mx1.example.com."}}
		dns.Set(t, zones)
		report := doctors(t, data, env, true)
		// What SPF says can be asked once the host has an address.
		if len(zones["agents.example.com."].TXT) == 0 {
			t.Error("no SPF record was advised")
		}
		for check, want := range map[string]doctor.Status{
			"inbound": doctor.Warn, "outbound": doctor.OK, "dkim": doctor.OK, "ptr": doctor.OK, "spf": doctor.OK, "secret": doctor.OK,
		} {
			if got := statusOf(report, check); got != want {
				t.Errorf("%s is %q, want %q", check, got, want)
			}
		}
		s.stop(t)
		if in := statusOf(doctors(t, data, env, false), "inbound"); in != doctor.Fail {
			t.Errorf("after the stop, inbound is %q", in)
		}
	})
}

// doctors runs the command, which must fail unless well, and returns its report.
func doctors(t *testing.T, data string, env []string, well bool) doctor.Report {
	t.Helper()
	stdout, stderr, err := runCommand(t, data, env, "doctor", "--json", "--to", "bob@outside.example")
	if (err == nil) != well {
		t.Errorf("it ended with %v: %s\n%s", err, stderr, stdout)
	}
	var r doctor.Report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("the report: %v in\n%s%s", err, stdout, stderr)
	}
	return r
}

// statusOf is that of the first result of a check.
func statusOf(r doctor.Report, check string) doctor.Status {
	for _, one := range r.Results {
		if one.Check == check {
			return one.Status
		}
	}
	return ""
}

// publish returns zones, which are being served, with the records that a report
// advises.
func publish(t *testing.T, zones smtptest.Zones, r doctor.Report) smtptest.Zones {
	t.Helper()
	zones = maps.Clone(zones)
	// It cannot ask about SPF while the host has no address.
	lines := []string{`agents.example.com. 3600 IN TXT "v=spf1 mx -all"`}
	for _, one := range r.Results {
		for _, step := range one.Do {
			if line, is := strings.CutPrefix(step, "publish: "); is && !strings.Contains(line, "IN A ") {
				lines = append(lines, line)
			}
		}
	}
	for _, line := range lines {
		name, rest, _ := strings.Cut(line, " ")
		zone := zones[name]
		if _, mx, is := strings.Cut(rest, " IN MX "); is {
			pref, host, _ := strings.Cut(mx, " ")
			n, err := strconv.ParseUint(pref, 10, 16)
			if err != nil {
				t.Fatalf("not a record: %s", line)
			}
			zone.MX = append(slices.Clip(zone.MX), net.MX{Host: host, Pref: uint16(n)})
		}
		if _, value, is := strings.Cut(rest, " IN TXT "); is {
			zone.TXT = append(slices.Clip(zone.TXT), strings.ReplaceAll(strings.Trim(value, `"`), `" "`, ""))
		}
		zones[name] = zone
	}
	return zones
}

// TestDoctorChangesNothing runs the doctor on an installation that does not exist
// yet.
func TestDoctorChangesNothing(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	stdout, stderr, err := runCommand(t, data, nil, "doctor")
	if err != nil {
		t.Errorf("doctor accepts an unknown domain: %v %s\n%s", err, stderr, stdout)
	}
	if !strings.Contains(stdout, "no database yet") || !strings.Contains(stdout, "no server given") {
		t.Errorf("it says\n%s", stdout)
	}
	if _, err := os.Stat(data); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("doctor created the data folder: %v", err)
	}
	if _, stderr, err := runCommand(t, data, nil, "doctor", "not a domain"); err == nil || !strings.Contains(stderr, "is not a domain name") {
		t.Errorf("an invalid name: %v %s", err, stderr)
	}
}

func TestSettingsThatDoNotFit(t *testing.T) {
	t.Parallel()
	public := []string{
		"POSTROOM_MAIL_DOMAIN=agents.example.com", "POSTROOM_BASE_URL=https://mail.example.com", "POSTROOM_SMTP=:25", "POSTROOM_TRUSTED_PROXIES=127.0.0.1",
	}
	tests := []struct {
		name string
		env  string // what is set otherwise
		want string // the setting; empty: nothing
		saw  string
	}{
		{"all fit", "", "", ""},
		{"the address of the API is not set", "POSTROOM_BASE_URL=", "BASE_URL", "is not set"},
		{"the API is in the clear", "POSTROOM_BASE_URL=http://mail.example.com", "BASE_URL", "not encrypted"},
		{"the API is on this machine", "POSTROOM_BASE_URL=http://localhost:8080", "BASE_URL", "other hosts cannot reach"},
		{"the API listens to all, in the clear", "POSTROOM_BASE_URL=http://mail.example.com POSTROOM_HTTP=:8080", "HTTP", "from any host"},
		{"the API speaks HTTPS itself", "POSTROOM_BASE_URL= POSTROOM_TRUSTED_PROXIES= POSTROOM_HTTP=:80 POSTROOM_HTTPS=:443 POSTROOM_ACME_HOSTS=mail.example.com", "", ""},
		{"the proxy is not known", "POSTROOM_TRUSTED_PROXIES=", "TRUSTED_PROXIES", "appear as the proxy"},
		{"everybody is a proxy", "POSTROOM_TRUSTED_PROXIES=0.0.0.0/0", "TRUSTED_PROXIES", "any client can forge"},
		{"mail comes from this machine alone", "POSTROOM_SMTP=127.0.0.1:2525", "SMTP", "other servers cannot connect"},
		{"another port for the world", "POSTROOM_MX_PORT=2525", "MX_PORT", "listen on 25"},
		{"the relay's password in the clear", "POSTROOM_RELAY=smtp://ann:x@relay.example.com?tls=off", "RELAY", "not encrypted"},
		{"no limits", "POSTROOM_RATE_LIMITS=off", "RATE_LIMITS", "is off"},
		{"metrics for all", "POSTROOM_METRICS=:9090", "METRICS", "anyone can read"},
		{"files of one of several nodes", "POSTROOM_DATABASE=postgres://db/x POSTROOM_SECRET=0123456789abcdef0123456789abcdef", "BLOBS", "several nodes must share it"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			data := t.TempDir()
			cfg, err := load(append(append([]string{"POSTROOM_DATA=" + data}, public...), strings.Fields(tt.env)...), nil)
			if err != nil {
				t.Fatal(err)
			}
			wantUnfit(t, cfg, tt.want, tt.saw)
		})
	}
}

// TestReadableSecretFileIsReported uses a secret file that all users can read.
func TestReadableSecretFileIsReported(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	if err := os.WriteFile(filepath.Join(data, secretFile), []byte("0123456789abcdef0123456789abcdef"), 0o604); err != nil {
		t.Fatal(err)
	}
	cfg, err := load([]string{"POSTROOM_DATA=" + data}, nil)
	if err != nil {
		t.Fatal(err)
	}
	wantUnfit(t, cfg, "SECRET", "can read")
}

func wantUnfit(t *testing.T, cfg Config, setting, saw string) {
	t.Helper()
	found := cfg.unfit()
	for _, r := range found {
		if setting == "" && r.Status == doctor.OK || r.Subject == envPrefix+setting && strings.Contains(r.Saw, saw) && len(r.Do) > 0 {
			return
		}
	}
	t.Errorf("no result for %q contains %q: %v", setting, saw, found)
}

// In a folder without data, beside a server that runs, commands do not pretend to be in a new
// installation.
func TestCommandsBesideAServerSayThatTheyHaveNoDatabase(t *testing.T) {
	t.Parallel()
	s := dev(t)
	settings := []string{"POSTROOM_HTTP=" + strings.TrimPrefix(s.api, "http://")}
	for _, args := range [][]string{{"doctor"}, {"key", "list"}} {
		_, stderr, err := runCommand(t, t.TempDir(), settings, args...)
		if err == nil || !strings.Contains(stderr, "but a server runs at 127.0.0.1:") {
			t.Errorf("%v: %v %s", args, err, stderr)
		}
	}
}
