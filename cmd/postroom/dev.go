package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"
	"github.com/spf13/cobra"

	"github.com/postroom/postroom/internal/apikey"
	"github.com/postroom/postroom/internal/cli"
	"github.com/postroom/postroom/internal/disk"
	"github.com/postroom/postroom/internal/dropin"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/netguard"
	"github.com/postroom/postroom/smtp"
	"github.com/postroom/postroom/smtp/inbound"
	"github.com/postroom/postroom/store"
)

// Environment variables of `postroom dev`.
const (
	devListenEnv = envPrefix + "DEV_LISTEN"
	devHostsEnv  = envPrefix + "DEV_HOSTS"
)

// devStopTimeout is how long clients may stay when `postroom dev` stops.
const devStopTimeout = 500 * time.Millisecond

// devCommand returns the command that runs the service for development and tests.
func (p program) devCommand() *cobra.Command {
	var httpAddr, submission, receiving, domain, level, listen, hosts string
	var scanLinks bool
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run the service for development: in memory, without keys or sign-in, and no mail leaves",
		Long: "Run the service for development and tests. Everything is in memory. Programs on this machine and on private\n" +
			"networks need no key. Every address has an inbox, on any domain, and no mail leaves.\n\n" +
			"The environment variables of `postroom serve` have no effect.",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			vars := env.ToMap(p.Environ)
			if listen = cmp.Or(listen, vars[devListenEnv], "loopback"); listen != "loopback" && listen != "all" {
				return cli.UsageError{Err: fmt.Errorf("--listen or %s: %q must be loopback or all", devListenEnv, listen)}
			}
			for _, at := range []string{httpAddr, submission, receiving} {
				if !isLoopback(at) {
					return fmt.Errorf("%s is not a loopback address: use --listen all to let private networks in", at)
				}
			}
			trusted, err := parseDevHosts(cmp.Or(hosts, vars[devHostsEnv]))
			if err != nil {
				return err
			}
			data, err := memoryFolder()
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, os.RemoveAll(data)) }()
			cfg, err := load(nil, map[string]string{
				"data": data, "http": httpAddr, "submission": submission, "smtp": receiving, "mail-domain": domain, "log-level": level,
				"bootstrap-key": apikey.New(string(store.KeyLive), "sk"), "rate-limits": "off", "auto-pause": "off",
				"smtp-max-conns": "100000", "smtp-max-conns-per-ip": "100000", "webhook-allow": "127.0.0.0/8,::1/128",
				"smtp-line-ends": "normalize",
			})
			if err != nil {
				return err
			}
			cfg.dev, cfg.devHosts, cfg.scanLinks, cfg.Dropin = true, trusted, scanLinks, dropin.All()
			if listen == "all" {
				for _, at := range []*listenAddr{&cfg.HTTP, &cfg.Submission, &cfg.SMTP} {
					_, port, _ := net.SplitHostPort(string(*at)) // already validated
					*at = listenAddr(":" + port)
				}
			}
			err = newNode(cfg, p.Stdout, newLogger(cfg, p.Stderr)).Run(cmd.Context())
			if cmd.Context().Err() != nil && errors.Is(err, context.DeadlineExceeded) {
				return nil // some client is still connected, and nothing is kept
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&listen, "listen", "", "all listens on all interfaces, for private networks ["+devListenEnv+"] (default: loopback)")
	f.StringVar(&hosts, "hosts", "", "other hosts that need no key: names by which this server is called, and addresses or networks of clients, "+
		"separated by commas ["+devHostsEnv+"]")
	f.BoolVar(&scanLinks, "scan-links", false, "visit the links of each message as mail scanners do, and show which stop working by that")
	f.StringVar(&httpAddr, "http", cli.DevAddress, "listen address of the API and the dashboard")
	f.StringVar(&submission, "submission", "127.0.0.1:1025", "listen address for submission, with or without login")
	f.StringVar(&receiving, "smtp", "127.0.0.1:2525", "listen address for receiving")
	f.StringVar(&domain, "mail-domain", "postroom.localhost", "domain of inboxes that the API creates")
	f.StringVar(&level, "log-level", "warn", "minimum log level")
	return cmd
}

// memoryFolder creates a temporary folder, in memory where the system has such a
// file system with enough space: that of a container often has 64 MB.
func memoryFolder() (string, error) {
	const pattern, memory = "postroom-dev-", "/dev/shm"
	if space, err := disk.Left(memory); err == nil && space.Free >= 256<<20 {
		if dir, err := os.MkdirTemp(memory, pattern); err == nil {
			return dir, nil
		}
	}
	return os.MkdirTemp("", pattern)
}

// newDevInbox returns the function that creates the inbox of any address, for the
// first account. An address that has an inbox, or had one, is not an error.
func newDevInbox(s *store.Store) func(ctx context.Context, local, domain string) error {
	return func(ctx context.Context, local, domain string) error {
		account, err := s.FirstAccount(ctx)
		if err != nil {
			return err
		}
		_, err = s.CreateInbox(ctx, store.Inbox{
			AccountID: account.Seq, Address: local + "@" + domain, Name: local, Domain: domain,
			SendPolicy: store.PolicyOpen, RetentionDays: 1, Metadata: store.JSON[store.Labels]{V: store.Labels{}},
		}, nil)
		if errors.Is(err, store.ErrAddressTaken) {
			return nil
		}
		return err
	}
}

// findDevInbox returns the function that finds the inbox that mail to an address reaches,
// and creates one if there is none.
func findDevInbox(r *inbound.Receiver) func(ctx context.Context, address string) (string, error) {
	return func(ctx context.Context, address string) (string, error) {
		in, _, err := r.Resolve(ctx, address)
		if _, refused := errors.AsType[*smtp.Reply](err); refused {
			return "", nil
		}
		return in.ID, err
	}
}

// devHosts are the hosts that need no key, in addition to those of private networks.
type devHosts struct {
	names    []string // in Host
	networks []netip.Prefix
}

func parseDevHosts(list string) (devHosts, error) {
	var h devHosts
	for one := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ',' || r == ' ' }) {
		var name domain
		if networks, err := netguard.ParsePrefixes(one); err == nil {
			h.networks = append(h.networks, networks...)
		} else if name.UnmarshalText([]byte(one)) == nil {
			h.names = append(h.names, string(name))
		} else {
			return h, cli.UsageError{Err: fmt.Errorf("--hosts or %s: %q is not a host name, address or network", devHostsEnv, one)}
		}
	}
	return h, nil
}

// has reports whether ip is on this machine, in a private network, or listed.
func (h devHosts) has(ip netip.Addr) bool {
	ip = netguard.PlainIP(ip)
	return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast() ||
		slices.ContainsFunc(h.networks, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// called reports whether host, as a client calls this server, is an address that has
// accepts, or a name that strangers cannot point here by DNS rebinding, or is listed.
func (h devHosts) called(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if ip, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return h.has(ip)
	}
	name := strings.TrimSuffix(strings.ToLower(host), ".")
	_, parent, dotted := strings.Cut(name, ".")
	top := parent[strings.LastIndexByte(parent, '.')+1:]
	return name != "" && !dotted || top == "test" || top == "localhost" || top == "internal" || slices.Contains(h.names, name)
}

// refusal returns the reply to a client that is not on a private network, or "".
func (h devHosts) refusal(peer string) string {
	at, err := netip.ParseAddrPort(peer)
	if err == nil && h.has(at.Addr()) {
		return ""
	}
	return fmt.Sprintf("postroom dev serves private networks only: add %s to %s, or run `postroom serve`", netguard.PlainIP(at.Addr()), devHostsEnv)
}

// guest returns the user that a browser on a private network is in the dashboard, unless
// it calls this server by a name that it does not know.
func (h devHosts) guest(r *http.Request) string {
	if h.refusal(r.RemoteAddr) != "" || !h.called(r.Host) {
		return ""
	}
	return firstUserName
}

// withoutKey adds key to requests that have none or the key "dev", for clients that
// insist on one, or a key of a vendor whose API is served. It adds none to those that a web page on another site makes a browser
// send. Links begin with the name in Host, if it is trusted.
func (h devHosts) withoutKey(next http.Handler, key string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if text := h.refusal(r.RemoteAddr); text != "" {
			http.Error(w, text, http.StatusForbidden)
			return
		}
		called := h.called(r.Host)
		if called {
			r = r.WithContext(httpapi.WithSpecial(r.Context(), func(s *httpapi.Special) { s.CalledHost = r.Host }))
		}
		given := r.Header.Get("Authorization")
		isAPI := strings.HasPrefix(r.URL.Path, "/v1/") || r.URL.Path == "/mcp"
		if !dropin.NeedsKey(r, "sk_") && (!isAPI || given != "" && given != "Bearer "+cli.DevKey) {
			next.ServeHTTP(w, r)
			return
		}
		if !called {
			http.Error(w, fmt.Sprintf("postroom dev does not know that it is called %q: add the name to %s", r.Host, devHostsEnv), http.StatusForbidden)
			return
		}
		if fromThisSite(r) {
			r.Header.Set("Authorization", "Bearer "+key)
		}
		next.ServeHTTP(w, r)
	})
}

// fromThisSite reports whether a program or a page of this server sends a request.
func fromThisSite(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return false
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host == r.Host
}

// devListener accepts SMTP clients of private networks only.
type devListener struct {
	net.Listener
	hosts devHosts
}

// Accept implements net.Listener.
func (l devListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		text := l.hosts.refusal(c.RemoteAddr().String())
		if text == "" {
			return &devConn{Conn: c, in: bufio.NewReader(c)}, nil
		}
		_, _ = io.WriteString(c, "554 5.7.1 "+text+"\r\n") // the first bytes never block
		_ = c.Close()
	}
}

// devConn is a connection whose client may end a line, also of a command, with LF alone.
type devConn struct {
	net.Conn
	in   *bufio.Reader
	last byte // returned by Read
}

// Read implements net.Conn.
func (c *devConn) Read(p []byte) (n int, err error) {
	for n < len(p) && (n == 0 || c.in.Buffered() > 0) {
		b, err := c.in.ReadByte()
		if err != nil {
			return n, err
		}
		if b == '\n' && c.last != '\r' {
			b, err = '\r', c.in.UnreadByte()
		}
		if err != nil {
			return n, err
		}
		p[n], c.last = b, b
		n++
	}
	return n, nil
}
