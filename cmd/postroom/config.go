package main

import (
	"path/filepath"
	"reflect"
	"strings"

	"github.com/caarlos0/env/v11"

	"github.com/postroom/postroom/internal/s3blob"
)

// envPrefix is the prefix of every setting's environment variable.
const envPrefix = "POSTROOM_"

// Config holds every setting of the program. The tags of a field hold its name
// (MX_PORT is POSTROOM_MX_PORT in the environment and --mx-port on the command
// line), default, description, a hint for correct values, and whether the value
// is secret. A flag overrides the environment; an empty value means the default.
type Config struct {
	Data           string     `env:"DATA" envDefault:"./data" usage:"data folder: the SQLite file, large messages and the installation secret" want:"path of a folder"`
	Database       database   `env:"DATABASE" usage:"the database: PostgreSQL or an SQLite file" unset:"postroom.db in the data folder" want:"a postgres:// address or the path of a file" hide:"password"`
	Blobs          blobs      `env:"BLOBS" usage:"storage of messages over 256 KiB: a folder, or a bucket of S3-compatible storage with the credentials in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY" unset:"blobs in the data folder" want:"path of a folder, or s3://bucket/prefix?endpoint=https://host&region=name" hide:"password"`
	Migrate        onOff      `env:"MIGRATE" envDefault:"on" usage:"bring the database schema up to date at start" want:"on or off"`
	Secret         secret     `env:"SECRET" usage:"installation secret: signs links and cursors, encrypts private keys" unset:"the file secret in the data folder, created at first start" want:"32 characters or more, the same on every node" hide:"all"`
	HTTP           listenAddr `env:"HTTP" envDefault:"127.0.0.1:8080" usage:"listen address of the API" want:"host:port, such as 127.0.0.1:8080"`
	BaseURL        webURL     `env:"BASE_URL" usage:"public URL of the API; links start with it" unset:"http:// and the listen address of the API" want:"an http:// or https:// address without a query, such as https://mail.example.com"`
	Files          onOff      `env:"FILES" envDefault:"on" usage:"create and serve download links of raw messages and attachments" want:"on or off"`
	TrustedProxies prefixes   `env:"TRUSTED_PROXIES" usage:"proxies whose X-Forwarded-For header is trusted" want:"addresses and ranges separated by commas, such as 10.0.0.2,fd00::/64" unset:"none"`
	SMTP           listenAddr `env:"SMTP" envDefault:"127.0.0.1:2525" usage:"listen address of the SMTP server" want:"host:port, such as 127.0.0.1:2525"`
	Submission     listenAddr `env:"SUBMISSION" usage:"listen address for submission: programs send mail with an API key, and TLS by STARTTLS" want:"host:port, such as :587" unset:"off"`
	Submissions    listenAddr `env:"SUBMISSIONS" usage:"listen address for submission with TLS from the start" want:"host:port, such as :465" unset:"off"`
	MailDomain     domain     `env:"MAIL_DOMAIN" envDefault:"postroom.localhost" usage:"mail domain of the installation" want:"a domain, such as agents.example.com"`
	Hostname       domain     `env:"HOSTNAME" usage:"host name in SMTP: greeting and EHLO" unset:"the mail domain" want:"a host name, such as mx1.example.com"`

	HTTPS         listenAddr `env:"HTTPS" usage:"listen address for HTTPS; HTTP then redirects to it, unless it listens on a loopback address" unset:"off" want:"host:port, such as :443"`
	TLSCert       string     `env:"TLS_CERT" usage:"certificate chain for HTTPS, STARTTLS and submission" want:"path of a PEM file" unset:"none, or those of ACME_HOSTS"`
	TLSKey        string     `env:"TLS_KEY" usage:"private key of that certificate" want:"path of a PEM file"`
	ACMEHosts     hosts      `env:"ACME_HOSTS" usage:"host names to get certificates for with ACME; setting it accepts the terms of service. The names must reach this host on HTTP port 80 or HTTPS port 443" unset:"none" want:"host names separated by commas, such as mail.example.com,mx1.example.com"`
	ACMEDirectory webURL     `env:"ACME_DIRECTORY" envDefault:"https://acme-v02.api.letsencrypt.org/directory" usage:"directory of the ACME server; https://acme-staging-v02.api.letsencrypt.org/directory is for tests" want:"an https:// address"`
	ACMEEmail     string     `env:"ACME_EMAIL" usage:"contact email address for the ACME server" unset:"none" want:"an email address"`

	HTTPMaxConns      count     `env:"HTTP_MAX_CONNS" envDefault:"10000" usage:"maximum number of HTTP connections; at the limit, the longest idle one is closed; with few file descriptors, fewer are accepted" want:"a number from 1 to 1000000"`
	HTTPMaxConnsPerIP count     `env:"HTTP_MAX_CONNS_PER_IP" envDefault:"2000" usage:"maximum number of HTTP connections from one IPv4 address or IPv6 /64, except TRUSTED_PROXIES; at most half of all, or unlimited if it is not below HTTP_MAX_CONNS" want:"a number from 1 to 1000000"`
	SMTPMaxConns      count     `env:"SMTP_MAX_CONNS" envDefault:"1000" usage:"maximum number of SMTP connections; at the limit, idle connections are closed" want:"a number from 1 to 1000000"`
	SMTPMaxConnsPerIP count     `env:"SMTP_MAX_CONNS_PER_IP" envDefault:"50" usage:"maximum number of SMTP connections from one IPv4 address or IPv6 /64" want:"a number from 1 to 1000000"`
	MaxMessageSize    mebibytes `env:"MAX_MESSAGE_SIZE" envDefault:"25MiB" usage:"largest message that the SMTP server accepts" want:"a size from 1MiB to 100MiB"`
	InboxQuota        quota     `env:"INBOX_QUOTA" envDefault:"1GB,20000" usage:"most received mail in an inbox, by size and number of messages; an account holds at most a hundred times as much. More is deferred with 452" want:"a size and a number of messages, such as 1GB,20000 or 500MB,5000, or off"`
	SMTPLineEnds      lineEnds  `env:"SMTP_LINE_ENDS" envDefault:"normalize" usage:"handling of bare CR and LF in messages: change them to CRLF, or refuse the message" want:"reject or normalize"`

	Relay    relayURL `env:"RELAY" usage:"SMTP relay for all mail to other domains" unset:"deliver to the MX hosts of each domain" want:"smtp://user:password@host:port or smtps://..." hide:"password"`
	Resolver hostPort `env:"RESOLVER" usage:"DNS server for MX records, records of domains, and SPF, DKIM and DMARC checks" unset:"the system resolver" want:"host:port, such as 9.9.9.9:53"`
	MXPort   port     `env:"MX_PORT" envDefault:"25" usage:"port of the MX hosts" want:"a port from 1 to 65535"`
	MXAllow  prefixes `env:"MX_ALLOW" usage:"private address ranges to which mail can be delivered" unset:"none" want:"ranges separated by commas, such as 10.0.0.0/8,fd00::/8"`

	WebhookAllow prefixes `env:"WEBHOOK_ALLOW" usage:"private address ranges to which webhooks can be sent, also over plain HTTP" unset:"none" want:"ranges separated by commas, such as 127.0.0.0/8,10.0.0.0/8"`

	Dashboard onOff `env:"DASHBOARD" envDefault:"on" usage:"serve the dashboard" want:"on or off"`

	Dropin vendors `env:"DROPIN" usage:"APIs of other products to serve below their names, such as /mailosaur, so that their SDKs work with Postroom" unset:"none" want:"names separated by commas, such as mailosaur,mailpit"`

	OAuth onOff `env:"OAUTH" envDefault:"off" usage:"let MCP clients connect with OAuth: they register themselves, and a user approves each in the dashboard" want:"on or off"`

	BootstrapKey      bootstrapKey `env:"BOOTSTRAP_KEY" usage:"the first full-access key" unset:"created at first start and printed once" want:"20 printable characters or more, without spaces" hide:"all"`
	KeyPrefix         keyPrefix    `env:"KEY_PREFIX" envDefault:"sk" usage:"prefix of new keys (sk: sk_live_...)" want:"1 to 16 of a-z and 0-9"`
	DefaultSendPolicy sendPolicy   `env:"DEFAULT_SEND_POLICY" envDefault:"open" usage:"default send policy of inboxes" want:"open, reply_only or approval"`
	Plan              string       `env:"PLAN" envDefault:"self_hosted" usage:"default plan of accounts" want:"self_hosted, free or a plan of PLANS"`
	Plans             planList     `env:"PLANS" usage:"more plans; a limit that you omit is unlimited" unset:"only self_hosted and free" want:"plans separated by semicolons, such as team:inboxes=50,daily=2000,monthly=20000"`
	Undo              wait         `env:"UNDO" envDefault:"10s" usage:"how long the approval of a draft by a person, and the deletion of messages in the dashboard, can be undone; the message waits for that time; 0s sends it at once" want:"a duration from 0s to 10m"`
	Approvers         addresses    `env:"APPROVERS" usage:"people who get an email about each draft that waits for approval, with a link to approve or reject it; not at a domain of this installation" unset:"none" want:"email addresses separated by commas, such as ann@example.com,ben@example.com"`
	AgentLimits       agentLimits  `env:"AGENT_LIMITS" usage:"limits of each account for everything that it sends; keys and inboxes have their own limits" unset:"none" want:"limits separated by commas, such as sends_per_hour=500,new_recipients_per_day=50,on_limit=approval"`
	EmailRetention    days         `env:"EMAIL_RETENTION" envDefault:"30d" usage:"retention of email content after the email was sent or failed; messages use the retention of their inbox" want:"a number of days from 1d to 3650d"`
	MaxRetentionDays  days         `env:"MAX_RETENTION_DAYS" envDefault:"30d" usage:"longest retention of message content that an inbox can have, in days; the default of an inbox is 7" want:"a number of days from 1d to 3650d"`
	AutoPause         onOff        `env:"AUTO_PAUSE" envDefault:"on" usage:"pause sending of accounts with over 5 % hard bounces, or over 0.3 % complaints in three domains" want:"on or off"`
	FeedbackLoops     loops        `env:"FEEDBACK_LOOPS" usage:"authors of complaints and bounces that are believed about any recipient, in addition to the built-in feedback loops; their mail must pass DMARC" unset:"none" want:"domains (with their subdomains) and email addresses, separated by commas, such as fbl.example.net,reports@example.com"`
	Track             tracking     `env:"TRACK" envDefault:"off" usage:"tracking of emails: opens with an image in the HTML, clicks with links through this server" want:"off, opens, clicks or all"`
	RateLimits        rateLimits   `env:"RATE_LIMITS" envDefault:"600/60s,60/60s,60/60s" usage:"limits per minute: on the calls of a key, its sending calls, and the refused calls of a client address; off is for benchmarks" want:"on, off, or one to three limits such as 600/60s,60/60s,60/60s"`

	Log       logFormat  `env:"LOG" envDefault:"text" usage:"format of the log" want:"text or json"`
	LogLevel  logLevel   `env:"LOG_LEVEL" envDefault:"info" usage:"minimum log level" want:"debug, info, warn or error"`
	AccessLog onOff      `env:"ACCESS_LOG" envDefault:"off" usage:"log every request to the API, with its path, status, duration and client address" want:"on or off"`
	Metrics   listenAddr `env:"METRICS" usage:"listen address of the Prometheus metrics, at /metrics" unset:"off" want:"host:port, such as 127.0.0.1:9090"`
	Pprof     loopback   `env:"PPROF" usage:"listen address of the profiles for go tool pprof" unset:"off" want:"host:port on a loopback address, such as 127.0.0.1:6060"`

	dev       bool              // `postroom dev`
	devHosts  devHosts          // of `postroom dev`
	scanLinks bool              // of `postroom dev`
	bucket    *s3blob.Config    // of Blobs, if it names a bucket
	origin    map[string]string // source of each value, by field name
}

// setting holds the tags of one field of Config.
type setting struct {
	field string
	env   string // POSTROOM_MX_PORT
	flag  string // mx-port
	def   string // default value; empty if unset describes what happens instead
	usage string
	unset string
	want  string
	hide  string // "", "password" for a URL with a password, or "all"
}

// settings lists the fields of Config in order.
func settings() []setting {
	var all []setting
	for f := range reflect.TypeFor[Config]().Fields() {
		name := f.Tag.Get("env")
		if name == "" {
			continue
		}
		all = append(all, setting{
			field: f.Name,
			env:   envPrefix + name,
			flag:  strings.ToLower(strings.ReplaceAll(name, "_", "-")),
			def:   f.Tag.Get("envDefault"),
			usage: f.Tag.Get("usage"),
			unset: f.Tag.Get("unset"),
			want:  f.Tag.Get("want"),
			hide:  f.Tag.Get("hide"),
		})
	}
	return all
}

// load reads the settings from an environment, in the form of os.Environ, and the
// given flags by name. The error lists every fault.
func load(environ []string, flags map[string]string) (Config, error) {
	var (
		cfg    = Config{origin: map[string]string{}}
		vars   = env.ToMap(environ)
		given  = map[string]string{} // the name under which the user set each field
		faults faultList
	)
	faults.unknown(vars)
	for _, s := range settings() {
		given[s.field], cfg.origin[s.field] = s.env, "default"
		if vars[s.env] != "" {
			cfg.origin[s.field] = "environment"
		}
		if v, ok := flags[s.flag]; ok {
			vars[s.env] = v
			given[s.field], cfg.origin[s.field] = "--"+s.flag, "flag"
		}
	}
	faults.unreadable(env.ParseWithOptions(&cfg, env.Options{Prefix: envPrefix, Environment: vars}), given, vars)
	cfg.fill()
	cfg.useBucket(&faults, given, vars)
	faults.disagreeing(cfg, given)
	return cfg, faults.err()
}

// fill derives unset settings from others. BaseURL stays empty, because it
// depends on the actual listen address.
func (c *Config) fill() {
	if c.Database == "" {
		c.Database = database(filepath.Join(c.Data, "postroom.db"))
	}
	if c.Blobs == "" {
		c.Blobs = blobs(filepath.Join(c.Data, "blobs"))
	}
	if c.Hostname == "" {
		c.Hostname = c.MailDomain
	}
}
