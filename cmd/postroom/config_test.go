package main

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLoadOrder(t *testing.T) {
	t.Parallel()
	environ := []string{"POSTROOM_MX_PORT=2500", "POSTROOM_LOG=json", "POSTROOM_HOSTNAME=", "OTHER_LOG=x"}
	cfg, err := load(environ, map[string]string{"mx-port": "26"})
	if err != nil {
		t.Fatal(err)
	}
	if cfg.MXPort != 26 {
		t.Errorf("MXPort = %d: the flag must win over the environment", cfg.MXPort)
	}
	if cfg.Log != "json" {
		t.Errorf("Log = %q: the environment must win over the default", cfg.Log)
	}
	if cfg.Hostname != "postroom.localhost" {
		t.Errorf("Hostname = %q: an empty value must be the default", cfg.Hostname)
	}
}

func TestLoadValues(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, env string
		got       func(Config) any
		want      any
	}{
		{"a port of 0 to listen on", "HTTP=127.0.0.1:0", func(c Config) any { return c.HTTP }, listenAddr("127.0.0.1:0")},
		{"all addresses", "SMTP=:25", func(c Config) any { return c.SMTP }, listenAddr(":25")},
		{"a domain in upper case", "MAIL_DOMAIN=Agents.Example.COM.", func(c Config) any { return c.MailDomain }, domain("agents.example.com")},
		{"a domain in another script", "MAIL_DOMAIN=почта.example", func(c Config) any { return c.MailDomain }, domain("xn--80a1acny.example")},
		{"a base address with a path", "BASE_URL=https://example.com/mail/", func(c Config) any { return c.BaseURL }, webURL("https://example.com/mail")},
		{
			"ranges", "MX_ALLOW=10.1.2.3/8, fd00::/8", func(c Config) any { return c.MXAllow },
			prefixes{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")},
		},
		{"a file with a space", "DATABASE=/my mail/post.db", func(c Config) any { return c.Database }, database("/my mail/post.db")},
		{
			"plans", "PLANS=team:inboxes=50,daily=2000; open:", func(c Config) any { return c.Plans },
			planList{{Name: "team", Inboxes: 50, Daily: 2000}, {Name: "open"}},
		},
		{"a quota", "INBOX_QUOTA=500MB, 5000", func(c Config) any { return c.InboxQuota.String() }, "500MB,5000"},
		{"no quota", "INBOX_QUOTA=off", func(c Config) any { return c.InboxQuota.String() }, "off"},
		{"off", "RATE_LIMITS=off", func(c Config) any { return c.RateLimits.String() }, "off"},
		{"default limits", "RATE_LIMITS=on", func(c Config) any { return c.RateLimits.String() }, "600/60s,60/60s,60/60s"},
		{"one limit", "RATE_LIMITS=6000/60s", func(c Config) any { return c.RateLimits.String() }, "6000/60s,60/60s,60/60s"},
		{"two limits", "RATE_LIMITS=6000/60s, 7/60s", func(c Config) any { return c.RateLimits.String() }, "6000/60s,7/60s,60/60s"},
		{
			"addresses", "APPROVERS=Ann@Example.com, ben@bücher.example,ann@example.com", func(c Config) any { return c.Approvers },
			addresses{"ann@example.com", "ben@xn--bcher-kva.example"},
		},
		{
			"feedback loops", "FEEDBACK_LOOPS=FBL.Example.net, Reports@Example.com", func(c Config) any { return c.FeedbackLoops },
			loops{"fbl.example.net", "reports@example.com"},
		},
		{
			"limits", "AGENT_LIMITS=sends_per_hour=500, new_recipients_per_day=0,on_limit=approval",
			func(c Config) any { return c.AgentLimits.String() }, "sends_per_hour=500,new_recipients_per_day=0,on_limit=approval",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cfg, err := load([]string{"POSTROOM_" + tt.env}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, tt.got(cfg), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, env, want string }{
		{"a word for a port", "MX_PORT=smtp", `POSTROOM_MX_PORT is "smtp", which is not a port from 1 to 65535`},
		{"a quota without a number of messages", "INBOX_QUOTA=1GB", `POSTROOM_INBOX_QUOTA is "1GB", which is not a size and a number of messages`},
		{"an unknown limit", "AGENT_LIMITS=sends_per_week=5", `invalid limit "sends_per_week=5"`},
		{"a limit below 0", "AGENT_LIMITS=sends_per_hour=-1", "POSTROOM_AGENT_LIMITS"},
		{"no limit", "AGENT_LIMITS=on_limit=approval", "sets no limit"},
		{"a feedback loop without a domain", "FEEDBACK_LOOPS=example.net,ann@", "POSTROOM_FEEDBACK_LOOPS"},
		{"port 0 to connect to", "MX_PORT=0", "POSTROOM_MX_PORT"},
		{"a port out of range", "HTTP=127.0.0.1:65536", "POSTROOM_HTTP"},
		{"an address without a port", "SMTP=127.0.0.1", "POSTROOM_SMTP"},
		{"a resolver without a host", "RESOLVER=:53", "POSTROOM_RESOLVER"},
		{"an address for a domain", "MAIL_DOMAIN=10.0.0.1", "POSTROOM_MAIL_DOMAIN"},
		{"an empty label", "MAIL_DOMAIN=a..example", "POSTROOM_MAIL_DOMAIN"},
		{"an email address instead of a domain", "MAIL_DOMAIN=me@example.com", "POSTROOM_MAIL_DOMAIN"},
		{"a base address without a scheme", "BASE_URL=mail.example.com", "POSTROOM_BASE_URL"},
		{"a base address with a query", "BASE_URL=https://example.com/?a=b", "POSTROOM_BASE_URL"},
		{"a base address of another scheme", "BASE_URL=ftp://example.com", "POSTROOM_BASE_URL"},
		{"a relay with an unknown parameter", "RELAY=smtp://relay.example.com?ssl=on", `unknown parameter "ssl"`},
		{"a relay of another scheme", "RELAY=http://relay.example.com:25", "POSTROOM_RELAY"},
		{"another database", "DATABASE=mysql://localhost/mail", "POSTROOM_DATABASE"},
		{"blobs in another storage", "BLOBS=gs://mail", "POSTROOM_BLOBS"},
		{"blobs with credentials", "BLOBS=s3://key:hunter2@mail", "POSTROOM_BLOBS"},
		{"a bucket with an unknown parameter", "BLOBS=s3://mail?presign=on", `unknown parameter "presign"`},
		{"a bucket without credentials", "BLOBS=s3://mail", "POSTROOM_BLOBS names a bucket: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY must be set"},
		{"yes for on", "FILES=yes", "POSTROOM_FILES"},
		{"a range that is too long", "MX_ALLOW=10.0.0.0/8,10.0.0.0/33", `"10.0.0.0/33" is not a range`},
		{"a short secret", "SECRET=tooshort", "POSTROOM_SECRET"},
		{"a short key", "BOOTSTRAP_KEY=nineteen-characters", "POSTROOM_BOOTSTRAP_KEY"},
		{"a key with a space", "BOOTSTRAP_KEY=correct horse battery staple", "POSTROOM_BOOTSTRAP_KEY"},
		{"true for on", "RATE_LIMITS=true", "POSTROOM_RATE_LIMITS"},
		{"line ends to be kept", "SMTP_LINE_ENDS=keep", "POSTROOM_SMTP_LINE_ENDS"},
		{"no rate limit", "RATE_LIMITS=0/60s", "POSTROOM_RATE_LIMITS"},
		{"a rate limit of another time", "RATE_LIMITS=600/1h", "POSTROOM_RATE_LIMITS"},
		{"four rate limits", "RATE_LIMITS=1/60s,1/60s,1/60s,1/60s", "POSTROOM_RATE_LIMITS"},
		{"no connections", "SMTP_MAX_CONNS=0", "POSTROOM_SMTP_MAX_CONNS"},
		{"an unknown policy", "DEFAULT_SEND_POLICY=closed", "POSTROOM_DEFAULT_SEND_POLICY"},
		{"profiles for everybody", "PPROF=0.0.0.0:6060", "POSTROOM_PPROF"},
		{"an approver with an inbox", "APPROVERS=ann@far.example,ben@agents.postroom.localhost", `POSTROOM_APPROVERS has ben@agents.postroom.localhost, where an agent can have an inbox`},
		{"an approver without a domain", "APPROVERS=ann", `POSTROOM_APPROVERS`},
		{"OAuth without TLS", "OAUTH=on\nBASE_URL=http://mail.example.com", `POSTROOM_OAUTH is on and POSTROOM_BASE_URL is http://mail.example.com: use https://`},
		{"OAuth below a path", "OAUTH=on\nBASE_URL=https://example.com/mail", "POSTROOM_OAUTH is on and POSTROOM_BASE_URL has a path"},
		{"OAuth without an address", "OAUTH=on\nHTTP=:8080", "POSTROOM_OAUTH is on: set POSTROOM_BASE_URL"},
		{"OAuth without pages", "OAUTH=on\nDASHBOARD=off", "POSTROOM_OAUTH is on and POSTROOM_DASHBOARD is off"},
		{"an unknown plan", "PLAN=gold", `POSTROOM_PLAN is "gold", which is neither self_hosted nor free nor a plan of POSTROOM_PLANS`},
		{"a plan with an unknown limit", "PLANS=team:hourly=5", `invalid limit "hourly=5": use a form such as daily=2000`},
		{"a plan with a limit of nothing", "PLANS=team:daily=0", `invalid limit "daily=0"`},
		{"a plan without a name", "PLANS=:daily=5", `invalid plan name ""`},
		{"an unknown log format", "LOG=xml", "POSTROOM_LOG"},
		{"an unknown log level", "LOG_LEVEL=INFO", "POSTROOM_LOG_LEVEL"},
		{"a prefix with an underscore", "KEY_PREFIX=my_brand", "POSTROOM_KEY_PREFIX"},
		{"a certificate without a key", "TLS_CERT=cert.pem", "POSTROOM_TLS_CERT is set without POSTROOM_TLS_KEY"},
		{"HTTPS without a certificate", "HTTPS=:443", "POSTROOM_HTTPS is set without a certificate"},
		{"a name that no certificate is for", "ACME_HOSTS=mail.example.com,localhost", "POSTROOM_ACME_HOSTS"},
		{"a key without a certificate", "TLS_KEY=key.pem", "POSTROOM_TLS_KEY is set without POSTROOM_TLS_CERT"},
		{"one port for both", "SMTP=127.0.0.1:8080", "POSTROOM_HTTP and POSTROOM_SMTP"},
		{"a misspelt name", "MAILDOMAIN=example.com", "POSTROOM_MAILDOMAIN is not a setting: did you mean POSTROOM_MAIL_DOMAIN?"},
		{"swapped letters", "DATABSAE=x", "did you mean POSTROOM_DATABASE?"},
		{"a name like none", "FAVOURITE_COLOUR=blue", "POSTROOM_FAVOURITE_COLOUR is not a setting: `postroom config` lists them"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var environ []string
			for setting := range strings.SplitSeq(tt.env, "\n") {
				environ = append(environ, "POSTROOM_"+setting)
			}
			_, err := load(environ, nil)
			if err == nil {
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error is\n%v\nwant it to say %q", err, tt.want)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("a secret is shown: %v", err)
			}
			if n := strings.Count(err.Error(), "\n"); n != 1 {
				t.Errorf("%d faults, want 1:\n%v", n, err)
			}
		})
	}
}

func TestLoadIgnoresOtherVariables(t *testing.T) {
	t.Parallel()
	// What Kubernetes and Docker set for a service named postroom, and the
	// tests for themselves.
	environ := []string{
		"POSTROOM_SERVICE_HOST=10.0.0.1", "POSTROOM_SERVICE_PORT=8080", "POSTROOM_SERVICE_PORT_HTTP=8080",
		"POSTROOM_PORT=tcp://10.0.0.1:8080", "POSTROOM_PORT_8080_TCP=tcp://10.0.0.1:8080",
		"POSTROOM_PORT_8080_TCP_ADDR=10.0.0.1", "POSTROOM_NAME=/web/postroom", "POSTROOM_ENV_PATH=/bin",
		"POSTROOM_TEST_POSTGRES=postgres://localhost",
	}
	if _, err := load(environ, nil); err != nil {
		t.Error(err)
	}
}

func TestConfigPrintHidesSecrets(t *testing.T) {
	t.Parallel()
	environ := []string{
		"POSTROOM_DATABASE=postgres://mail:hunter2@db/mail?password=hunter3&sslmode=require",
		"POSTROOM_RELAY=smtps://user:hunter4@relay.example.com:465",
		"POSTROOM_SECRET=hunter5-hunter5-hunter5-hunter5-hunter5",
		"POSTROOM_BOOTSTRAP_KEY=hunter6-hunter6-hunter6-hunter6",
	}
	cfg, err := load(environ, map[string]string{"mail-domain": "example.com"})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := cfg.print(&out); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "hunter") {
		t.Errorf("a secret is shown:\n%s", &out)
	}
	for _, line := range []string{
		"POSTROOM_DATABASE postgres://mail:xxxxx@db/mail?password=xxxxx&sslmode=require environment",
		"POSTROOM_RELAY smtps://user:xxxxx@relay.example.com:465 environment",
		"POSTROOM_SECRET (hidden) environment",
		"POSTROOM_BOOTSTRAP_KEY (hidden) environment",
		"POSTROOM_MAIL_DOMAIN example.com flag",
		"POSTROOM_HOSTNAME example.com default: the mail domain",
		"POSTROOM_MX_PORT 25 default",
		"POSTROOM_LOG_LEVEL info default",
	} {
		if !hasLine(out.String(), line) {
			t.Errorf("no line %q in\n%s", line, &out)
		}
	}
}

// hasLine tells whether text has the line, whatever the width of its columns.
func hasLine(text, line string) bool {
	for l := range strings.Lines(text) {
		if strings.Join(strings.Fields(l), " ") == line {
			return true
		}
	}
	return false
}
