package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/postroom/postroom/client"
	"github.com/postroom/postroom/gen"
)

func (p Program) contactCommand() *cobra.Command {
	return Group(&cobra.Command{Use: "contact", Short: "List and change contacts"},
		p.contactListCommand(), p.contactCreateCommand(), p.contactUpdateCommand(), p.contactDeleteCommand())
}

func (p Program) contactListCommand() *cobra.Command {
	var (
		limit int
		email string
	)
	cmd := &cobra.Command{Use: "list", Short: "List contacts, newest first", Args: cobra.NoArgs}
	cmd.Flags().StringVar(&email, "email", "", "only the contact with this address")
	limitFlag(cmd, &limit)
	return p.overAPI(cmd, func(ctx context.Context, a *api, _ []string) error {
		all := a.Contacts(ctx, gen.ListContactsParams{Limit: pageOf(limit), Email: opt(email)})
		return showList(a.output, all, limit, []string{"EMAIL", "NAME", "CREATED", "ID"}, func(c gen.Contact) []string {
			return []string{c.Email, short(strings.TrimSpace(c.FirstName.Or("")+" "+c.LastName.Or("")), 40), when(c.CreatedAt), c.ID}
		})
	})
}

// contactID returns the id of a contact, given its id or address.
func (a *api) contactID(ctx context.Context, name string) (string, error) {
	if !strings.Contains(name, "@") {
		return name, nil
	}
	found, err := a.ListContacts(ctx, gen.ListContactsParams{Email: opt(name)})
	if err != nil {
		return "", err
	}
	if len(found.Data) == 0 {
		return "", &Explained{fmt.Sprintf("contact %s not found", clean(name)), client.ErrNotFound}
	}
	return found.Data[0].ID, nil
}

func (p Program) contactCreateCommand() *cobra.Command {
	var first, last string
	cmd := &cobra.Command{Use: "create EMAIL", Short: "Create a contact", Args: Wants(1)}
	cmd.Flags().StringVar(&first, "first-name", "", "first name")
	cmd.Flags().StringVar(&last, "last-name", "", "last name")
	return p.overAPI(cmd, func(ctx context.Context, a *api, args []string) error {
		made, err := a.CreateContact(ctx, &gen.ContactCreate{Email: gen.EmailAddress(args[0]), FirstName: optNil(first), LastName: optNil(last)}, gen.CreateContactParams{})
		if err != nil {
			return err
		}
		return a.show(made, func(t *table) { t.row(made.ID, made.Email) })
	})
}

func (p Program) contactUpdateCommand() *cobra.Command {
	var email, first, last string
	cmd := &cobra.Command{Use: "update CONTACT", Short: "Change what the flags name of a contact, by ID or address", Args: Wants(1)}
	cmd.Flags().StringVar(&email, "email", "", "new address")
	cmd.Flags().StringVar(&first, "first-name", "", "first name")
	cmd.Flags().StringVar(&last, "last-name", "", "last name")
	cmd.MarkFlagsOneRequired("email", "first-name", "last-name")
	return p.overAPI(cmd, func(ctx context.Context, a *api, args []string) error {
		id, err := a.contactID(ctx, args[0])
		if err != nil {
			return err
		}
		change := &gen.ContactUpdate{FirstName: optNil(first), LastName: optNil(last)}
		if email != "" {
			change.Email.SetTo(gen.EmailAddress(email))
		}
		changed, err := a.UpdateContact(ctx, change, gen.UpdateContactParams{ID: id})
		if err != nil {
			return err
		}
		return a.show(changed, func(t *table) { t.row(changed.ID, changed.Email) })
	})
}

func (p Program) contactDeleteCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "delete CONTACT", Short: "Delete a contact, by ID or address", Args: Wants(1)}
	return p.overAPI(deletes(cmd), func(ctx context.Context, a *api, args []string) error {
		id, err := a.contactID(ctx, args[0])
		if err != nil {
			return err
		}
		if err := p.confirm(cmd, "contact "+args[0]); err != nil {
			return err
		}
		gone, err := a.DeleteContact(ctx, gen.DeleteContactParams{ID: id})
		return a.showDeleted(gone, err, "contact "+args[0])
	})
}

func (p Program) suppressionCommand() *cobra.Command {
	return Group(&cobra.Command{Use: "suppression", Short: "List, add and remove suppressed addresses"},
		p.suppressionListCommand(), p.suppressionCreateCommand(), p.suppressionDeleteCommand())
}

func (p Program) suppressionListCommand() *cobra.Command {
	var limit int
	cmd := &cobra.Command{Use: "list", Short: "List suppressed addresses, newest first", Args: cobra.NoArgs}
	limitFlag(cmd, &limit)
	return p.overAPI(cmd, func(ctx context.Context, a *api, _ []string) error {
		all := a.Suppressions(ctx, gen.ListSuppressionsParams{Limit: pageOf(limit)})
		return showList(a.output, all, limit, []string{"EMAIL", "REASON", "CATEGORY", "SINCE", "SOURCE"}, func(s gen.Suppression) []string {
			return []string{s.Email, s.Reason, s.Category, when(s.CreatedAt), s.Source.Or("")}
		})
	})
}

func (p Program) suppressionCreateCommand() *cobra.Command {
	var category gen.SuppressionCreateCategory
	cmd := &cobra.Command{Use: "create EMAIL", Short: "Suppress an address: nothing is sent to it any more", Args: Wants(1)}
	choose(cmd, &category, "category", "which mail is not sent", category.AllValues())
	return p.overAPI(cmd, func(ctx context.Context, a *api, args []string) error {
		add := &gen.SuppressionCreate{Email: gen.EmailAddress(args[0])}
		if category != "" {
			add.Category.SetTo(category)
		}
		made, err := a.CreateSuppression(ctx, add, gen.CreateSuppressionParams{})
		if err != nil {
			return err
		}
		return a.show(made, func(t *table) { t.row(made.Email, made.Reason, made.Category) })
	})
}

func (p Program) suppressionDeleteCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "delete EMAIL", Short: "Remove an address from the list, so that it receives mail again", Args: Wants(1)}
	return p.overAPI(deletes(cmd), func(ctx context.Context, a *api, args []string) error {
		if err := p.confirm(cmd, "the suppression of "+args[0]); err != nil {
			return err
		}
		gone, err := a.DeleteSuppression(ctx, gen.DeleteSuppressionParams{Email: args[0]})
		return a.showDeleted(gone, err, "the suppression of "+args[0])
	})
}
