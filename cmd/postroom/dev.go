package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/postroom/postroom/internal/apikey"
	"github.com/postroom/postroom/store"
)

// devCommand returns the command that runs the service for development and tests.
func (p program) devCommand() *cobra.Command {
	var httpAddr, submission, smtp, domain, level string
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run the service for development: in memory, without keys, and no mail leaves",
		Long: "Run the service for development and tests. Everything is in memory. Programs on this machine need no key. " +
			"Every address has an inbox, on any domain, and no mail leaves.\n\nThe environment variables of `postroom serve` have no effect.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			for _, at := range []string{httpAddr, submission, smtp} {
				if !isLoopback(at) {
					return fmt.Errorf("%s is not a loopback address: without keys, `postroom dev` must be reachable from this machine only", at)
				}
			}
			data, err := memoryFolder()
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, os.RemoveAll(data)) }()
			cfg, err := load(nil, map[string]string{
				"data": data, "http": httpAddr, "submission": submission, "smtp": smtp, "mail-domain": domain, "log-level": level,
				"bootstrap-key": apikey.New(string(store.KeyLive), "sk"), "rate-limits": "off", "auto-pause": "off",
				"smtp-max-conns": "100000", "smtp-max-conns-per-ip": "100000", "webhook-allow": "127.0.0.0/8,::1/128",
			})
			if err != nil {
				return err
			}
			cfg.dev = true
			return newNode(cfg, p.Stdout, newLogger(cfg, p.Stderr)).Run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&httpAddr, "http", "127.0.0.1:8025", "listen address of the API and the dashboard")
	f.StringVar(&submission, "submission", "127.0.0.1:1025", "listen address for submission, with or without login")
	f.StringVar(&smtp, "smtp", "127.0.0.1:2525", "listen address for receiving")
	f.StringVar(&domain, "mail-domain", "postroom.localhost", "domain of inboxes that the API creates")
	f.StringVar(&level, "log-level", "warn", "minimum log level")
	return cmd
}

// memoryFolder creates a temporary folder, in memory where the system has such a
// file system.
func memoryFolder() (string, error) {
	const pattern = "postroom-dev-"
	if dir, err := os.MkdirTemp("/dev/shm", pattern); err == nil {
		return dir, nil
	}
	return os.MkdirTemp("", pattern)
}

// newDevInbox returns the function that creates the inbox of any address, for the
// first account.
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
		if errors.Is(err, store.ErrAddressTaken) { // by another message just now, or deleted
			return nil
		}
		return err
	}
}

// withoutKey adds key to requests of programs on this machine that have none. It
// adds none to those that a web page on another site makes a browser send.
func withoutKey(next http.Handler, key string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		isAPI := strings.HasPrefix(r.URL.Path, "/v1/") || r.URL.Path == "/mcp"
		if isAPI && r.Header.Get("Authorization") == "" && fromThisMachine(r) {
			r.Header.Set("Authorization", "Bearer "+key)
		}
		next.ServeHTTP(w, r)
	})
}

func fromThisMachine(r *http.Request) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !peer.Addr().Unmap().IsLoopback() {
		return false
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if ip, err := netip.ParseAddr(strings.Trim(host, "[]")); host != "localhost" && (err != nil || !ip.IsLoopback()) {
		return false // another name for this machine, as in DNS rebinding
	}
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
