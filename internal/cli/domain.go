package cli

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/spf13/cobra"

	"github.com/postroom/postroom/client"
	"github.com/postroom/postroom/gen"
)

// DomainCommands returns the subcommands of `postroom domain` that call a server.
func (p Program) DomainCommands() []*cobra.Command {
	list := &cobra.Command{Use: "list", Short: "List the domains of the account, newest first"}
	return []*cobra.Command{
		listing(p, list, []string{"DOMAIN", "STATUS", "VERIFIED", "ID"}, func(d gen.Domain) []string {
			return []string{d.Domain, d.Status, whenNil(d.VerifiedAt), d.ID}
		}, func(ctx context.Context, a *api, page gen.OptInt) iter.Seq2[gen.Domain, error] {
			return a.Domains(ctx, gen.ListDomainsParams{Limit: page})
		}),
		p.domainGetCommand(), p.domainCreateCommand(), p.domainVerifyCommand(),
		p.deletion("delete DOMAIN", "Delete a domain, by ID or name", "domain %s", (*api).domainID, func(ctx context.Context, a *api, id string) (any, error) {
			return a.DeleteDomain(ctx, gen.DeleteDomainParams{ID: id})
		}),
	}
}

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

func (a *api) showDomain(d *gen.Domain, err error) error {
	return a.show(d, err, func(t *table) {
		t.row(d.Domain, d.Status, d.ID)
		showRecords(t, d.DNSRecords)
	})
}

func (p Program) domainGetCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "get DOMAIN", Short: "Show a domain with its DNS records, by ID or name"}
	return p.named(cmd, (*api).domainID, func(ctx context.Context, a *api, id string) error {
		return a.showDomain(a.GetDomain(ctx, gen.GetDomainParams{ID: id}))
	})
}

func (p Program) domainCreateCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "create DOMAIN", Short: "Add a domain to the account, and show the DNS records to publish"}
	return p.overAPI(cmd, func(ctx context.Context, a *api, args []string) error {
		return a.showDomain(a.CreateDomain(ctx, &gen.DomainCreate{Domain: args[0]}, gen.CreateDomainParams{}))
	})
}

func (p Program) domainVerifyCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "verify DOMAIN", Short: "Check the DNS records of a domain, by ID or name"}
	return p.overAPI(cmd, func(ctx context.Context, a *api, args []string) error {
		id, err := a.domainID(ctx, args[0])
		if err != nil {
			return err
		}
		v, err := a.VerifyDomain(ctx, gen.VerifyDomainParams{ID: id})
		return a.show(v, err, func(t *table) {
			t.row(args[0], v.Status, v.ID)
			showRecords(t, v.DNSRecords)
		})
	})
}
