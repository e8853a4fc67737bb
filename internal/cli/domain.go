package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/postroom/postroom/client"
	"github.com/postroom/postroom/gen"
)

// DomainCommands returns the subcommands of `postroom domain` that call a server.
func (p Program) DomainCommands() []*cobra.Command {
	return []*cobra.Command{p.domainListCommand(), p.domainGetCommand(), p.domainCreateCommand(), p.domainVerifyCommand(), p.domainDeleteCommand()}
}

func (p Program) domainListCommand() *cobra.Command {
	var limit int
	cmd := &cobra.Command{Use: "list", Short: "List the domains of the account, newest first", Args: cobra.NoArgs}
	limitFlag(cmd, &limit)
	return p.overAPI(cmd, func(ctx context.Context, a *api, _ []string) error {
		all := a.Domains(ctx, gen.ListDomainsParams{Limit: pageOf(limit)})
		return showList(a.output, all, limit, []string{"DOMAIN", "STATUS", "VERIFIED", "ID"}, func(d gen.Domain) []string {
			return []string{d.Domain, d.Status, whenNil(d.VerifiedAt), d.ID}
		})
	})
}

// domainID returns the id of a domain, given its id or name.
func (a *api) domainID(ctx context.Context, name string) (string, error) {
	if !strings.Contains(name, ".") {
		return name, nil
	}
	for d, err := range a.Domains(ctx, gen.ListDomainsParams{Limit: gen.NewOptInt(100)}) {
		if err != nil {
			return "", err
		}
		if strings.EqualFold(d.Domain, name) {
			return d.ID, nil
		}
	}
	return "", &Explained{fmt.Sprintf("domain %s not found", clean(name)), client.ErrNotFound}
}

// showRecords adds the DNS records of a domain.
func showRecords(t *table, records []gen.DnsRecord) {
	t.row("TYPE", "STATUS", "NAME", "VALUE")
	for _, r := range records {
		value := r.Value
		if priority, ok := r.Priority.Get(); ok {
			value = fmt.Sprintf("%d %s", priority, value)
		}
		status := r.Status
		if !r.Required {
			status += ", optional"
		}
		t.row(r.Type, status, r.Name, value)
	}
}

func (p Program) domainGetCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "get DOMAIN", Short: "Show a domain with its DNS records, by ID or name", Args: Wants(1)}
	return p.overAPI(cmd, func(ctx context.Context, a *api, args []string) error {
		id, err := a.domainID(ctx, args[0])
		if err != nil {
			return err
		}
		d, err := a.GetDomain(ctx, gen.GetDomainParams{ID: id})
		if err != nil {
			return err
		}
		return a.show(d, func(t *table) {
			t.row(d.Domain, d.Status, d.ID)
			showRecords(t, d.DNSRecords)
		})
	})
}

func (p Program) domainCreateCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "create DOMAIN", Short: "Add a domain to the account, and show the DNS records to publish", Args: Wants(1)}
	return p.overAPI(cmd, func(ctx context.Context, a *api, args []string) error {
		d, err := a.CreateDomain(ctx, &gen.DomainCreate{Domain: args[0]}, gen.CreateDomainParams{})
		if err != nil {
			return err
		}
		return a.show(d, func(t *table) {
			t.row(d.Domain, d.Status, d.ID)
			showRecords(t, d.DNSRecords)
		})
	})
}

func (p Program) domainVerifyCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "verify DOMAIN", Short: "Check the DNS records of a domain, by ID or name", Args: Wants(1)}
	return p.overAPI(cmd, func(ctx context.Context, a *api, args []string) error {
		id, err := a.domainID(ctx, args[0])
		if err != nil {
			return err
		}
		v, err := a.VerifyDomain(ctx, gen.VerifyDomainParams{ID: id})
		if err != nil {
			return err
		}
		return a.show(v, func(t *table) {
			t.row(args[0], v.Status, v.ID)
			showRecords(t, v.DNSRecords)
		})
	})
}

func (p Program) domainDeleteCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "delete DOMAIN", Short: "Delete a domain, by ID or name", Args: Wants(1)}
	return p.overAPI(deletes(cmd), func(ctx context.Context, a *api, args []string) error {
		id, err := a.domainID(ctx, args[0])
		if err != nil {
			return err
		}
		if err := p.confirm(cmd, "domain "+args[0]); err != nil {
			return err
		}
		gone, err := a.DeleteDomain(ctx, gen.DeleteDomainParams{ID: id})
		return a.showDeleted(gone, err, "domain "+args[0])
	})
}
