package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/postroom/postroom/internal/dnsrec"
	"github.com/postroom/postroom/internal/doctor"
	"github.com/postroom/postroom/internal/netguard"
	"github.com/postroom/postroom/smtp/outbound"
	"github.com/postroom/postroom/store"
)

// someServer is the default domain whose mail servers are tested. They accept
// connections from anyone, and no message is sent.
const someServer = "gmail.com"

func (p program) doctorCommand() *cobra.Command {
	var (
		asJSON bool
		to     string
	)
	cmd := &cobra.Command{
		Use:   "doctor [DOMAIN]",
		Short: "Find problems with receiving, sending and storing mail, and how to fix them",
		Long: "Find problems with receiving, sending and storing mail. Doctor checks the DNS records of the\n" +
			"mail domain and of the verified domains of accounts, or of one domain, port 25 in both\n" +
			"directions, the relay, certificates, clock, disk, database and settings.\n\n" +
			"It works whether or not `postroom serve` runs, and sends no mail. The exit status is 1 if a\n" +
			"check fails (FAIL).",
		Example: "  postroom doctor\n  postroom doctor mail.example.com --to ann@example.org\n  postroom doctor --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := p.config(cmd)
			if err != nil {
				return err
			}
			if !cmd.Flags().Changed("to") && !cfg.isPublic() {
				to = "" // a local test installation needs no outbound mail
			}
			if cfg.noDatabase() && askHealth(cmd.Context(), string(cfg.HTTP)) == nil {
				return cfg.errNoDatabase(cmd.Context())
			}
			if _, err := fmt.Fprintf(p.Stderr, "Checking the installation with the database %s\n", cfg.databasePlace()); err != nil {
				return err
			}
			look, err := cfg.doctor(args, to)
			if err != nil {
				return err
			}
			look.Store, look.StoreErr = cfg.openForDoctor(cmd.Context(), newLogger(cfg, p.Stderr))
			report := doctor.Run(cmd.Context(), look)
			if look.Store != nil {
				_ = look.Store.Close() // nothing to flush
			}
			write := report.WriteText
			if asJSON {
				write = report.WriteJSON
			}
			if err := write(p.Stdout); err != nil {
				return err
			}
			if n := report.Count(doctor.Fail); n > 0 {
				return fmt.Errorf("%d checks failed", n)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write the report as JSON")
	cmd.Flags().StringVar(&to, "to", someServer, "address or domain whose mail servers are used to test outbound connections; \"\" skips the test")
	return cmd
}

// doctor returns the doctor's configuration for this installation.
func (c Config) doctor(args []string, to string) (doctor.Config, error) {
	own, err := netguard.InterfaceAddrs()
	if err != nil {
		return doctor.Config{}, err
	}
	out := doctor.Config{
		MailDomain: string(c.MailDomain), Hostname: string(c.Hostname), Resolver: outbound.NewResolver(string(c.Resolver)),
		Allow: c.MXAllow, Own: own, MXPort: uint16(c.MXPort), BaseURL: c.publicURL(),
		Folders: append([]string{c.Data}, c.otherFolders()...), Migrates: bool(c.Migrate), ProveSecret: c.proveSecret,
		Settings: c.unfit(), To: to,
	}
	if len(args) == 1 {
		if out.Domain, err = dnsrec.CheckName(args[0]); err != nil {
			return out, fmt.Errorf("%q %w", args[0], err)
		}
	}
	if c.Relay != "" {
		out.Relay, err = outbound.ParseRelay(string(c.Relay))
	}
	return out, err
}

// publicURL returns the public URL of the API. It is empty if neither a base URL
// nor HTTPS is configured.
func (c Config) publicURL() string {
	if c.BaseURL != "" {
		return string(c.BaseURL)
	}
	_, p, err := net.SplitHostPort(string(c.HTTPS))
	n, bad := strconv.ParseUint(p, 10, 16)
	if err != nil || bad != nil || n == 0 {
		return ""
	}
	return "https://" + c.httpsHost(&net.TCPAddr{Port: int(n)})
}

// openForDoctor opens the store within the time of a check.
func (c Config) openForDoctor(ctx context.Context, log *slog.Logger) (*store.Store, error) {
	if c.noDatabase() {
		return nil, doctor.ErrNoDatabase
	}
	ctx, cancel := context.WithTimeout(ctx, doctor.Timeout)
	defer cancel()
	return c.openForCommand(ctx, false, log)
}

// proveSecret checks that the installation secret exists and matches the
// database.
func (c Config) proveSecret(ctx context.Context, s *store.Store) error {
	if _, err := c.installSecret(); err != nil {
		return err
	}
	return c.prove(ctx, s)
}

// noDatabase reports whether the SQLite file does not exist yet.
func (c Config) noDatabase() bool {
	if c.Database.postgres() {
		return false
	}
	_, err := os.Stat(string(c.Database))
	return errors.Is(err, fs.ErrNotExist)
}

// otherFolders returns the folders outside the data folder that the program
// writes to.
func (c Config) otherFolders() []string {
	var all []string
	add := func(folder string) {
		rel, err := filepath.Rel(c.Data, folder)
		if err != nil || !filepath.IsLocal(rel) {
			all = append(all, folder)
		}
	}
	if !c.Database.postgres() {
		add(filepath.Dir(string(c.Database)))
	}
	if !c.Blobs.bucket() {
		add(string(c.Blobs))
	}
	return all
}
