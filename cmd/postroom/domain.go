package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/postroom/postroom/internal/cli"
	"github.com/postroom/postroom/internal/dnsrec"
	"github.com/postroom/postroom/smtp/queue"
	"github.com/postroom/postroom/store"
)

// domainCommand groups commands that call a server's API and those that use the
// settings and the database of the installation.
func (p program) domainCommand() *cobra.Command {
	cmd := grouped(&cobra.Command{Use: "domain", Short: "Add and verify domains; show DNS records, and rotate signing keys"})
	own := []*cobra.Command{p.domainRotateCommand(), p.domainShowCommand()}
	return cli.Group(cmd, append(inGroup(apiGroup, p.DomainCommands()), onInstall(own)...)...)
}

func (p program) domainShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show",
		Short: "Show the DNS records of the mail domain in zone file format",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withOpenStore(cmd, true, func(ctx context.Context, cfg Config, s *store.Store) error {
				return cfg.showDomain(ctx, p.Stdout, s)
			})
		},
	}
}

func (p program) domainRotateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rotate [DOMAIN_ID]",
		Short: "Create new signing keys for a domain, and show their DNS records",
		Long: "Create new signing keys for the mail domain, or for the domain of an account, and show\n" +
			"their DNS records.\n\n" +
			"The old keys sign until the new records are found in DNS. Keep the old records for 7\n" +
			"more days, because mail that they signed may still be in transit.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withOpenStore(cmd, true, func(ctx context.Context, cfg Config, s *store.Store) error {
				if len(args) == 0 {
					return rotateKeys(p.Stdout, string(cfg.MailDomain), func(keys []store.DKIMKey) error {
						return s.RotateInstallKeys(ctx, string(cfg.MailDomain), keys)
					})
				}
				a, err := accountOf(ctx, cmd, s)
				if err != nil {
					return err
				}
				d, err := s.Domain(ctx, a.Seq, args[0])
				if err != nil {
					return err
				}
				return rotateKeys(p.Stdout, d.Name, func(keys []store.DKIMKey) error {
					_, err := s.RotateKeys(ctx, a.Seq, d.ID, keys)
					return err
				})
			})
		},
	}
	inAccount(cmd)
	return cmd
}

func rotateKeys(w io.Writer, domain string, add func([]store.DKIMKey) error) error {
	keys, err := queue.NewKeys(domain)
	if err != nil {
		return err
	}
	err = add(keys)
	if errors.Is(err, store.ErrState) {
		return fmt.Errorf("the newest keys of %s are not published in DNS yet", domain)
	}
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, k := range keys {
		printRecord(t, dnsrec.Key{Selector: k.Selector, Algorithm: k.Algorithm, Public: k.Public}.Record(domain))
	}
	return t.Flush()
}

func printRecord(t *tabwriter.Writer, r dnsrec.Record) {
	_, _ = fmt.Fprintf(t, "%s.\t%d\tIN\t%s\t%s\n", r.Name, dnsrec.TTL, r.Type, r.ZoneValue()) // reported by Flush
}

// showDomain prints the DNS records of the mail domain: MX, DKIM (RFC 6376), SPF
// (RFC 7208) and DMARC (RFC 7489).
func (c Config) showDomain(ctx context.Context, w io.Writer, s *store.Store) error {
	keys, err := queue.Records(ctx, s, string(c.MailDomain))
	if err != nil {
		return err
	}
	if len(keys) == 0 {
		return fmt.Errorf("no signing keys for %s: start `postroom serve` once with this mail domain", c.MailDomain)
	}
	domain := string(c.MailDomain)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	printRecord(t, dnsrec.Record{Type: "MX", Name: domain, Value: string(c.Hostname), Priority: 10})
	for _, k := range keys {
		printRecord(t, k)
	}
	if c.Relay != "" {
		_, _ = fmt.Fprintln(t, "; Also add the hosts of the relay to the next line. Its operator knows them.") // as above
	}
	printRecord(t, dnsrec.Record{Type: "TXT", Name: domain, Value: "v=spf1 mx -all"})
	printRecord(t, dnsrec.Record{Type: "TXT", Name: "_dmarc." + domain, Value: "v=DMARC1; p=quarantine"})
	return t.Flush()
}
