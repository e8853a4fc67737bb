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

func (p Program) contactCommand() *cobra.Command {
	return Group(&cobra.Command{Use: "contact", Short: "List and change contacts"},
		p.contactListCommand(), p.contactCreateCommand(), p.contactUpdateCommand(),
		p.deletion("delete CONTACT", "Delete a contact, by ID or address", "contact %s", (*api).contactID, func(ctx context.Context, a *api, id string) (any, error) {
			return a.DeleteContact(ctx, gen.DeleteContactParams{ID: id})
		}))
}

func (p Program) contactListCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List contacts, newest first"}
	email := cmd.Flags().String("email", "", "only the contact with this address")
	return listing(p, cmd, []string{"EMAIL", "NAME", "CREATED", "ID"}, func(c gen.Contact) []string {
		return []string{c.Email, short(strings.TrimSpace(c.FirstName.Or("")+" "+c.LastName.Or("")), 40), when(c.CreatedAt), c.ID}
	}, func(ctx context.Context, a *api, page gen.OptInt) iter.Seq2[gen.Contact, error] {
		return a.Contacts(ctx, gen.ListContactsParams{Limit: page, Email: opt(*email)})
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
	cmd := &cobra.Command{Use: "create EMAIL", Short: "Create a contact"}
	first := cmd.Flags().String("first-name", "", "first name")
	last := cmd.Flags().String("last-name", "", "last name")
	return p.overAPI(cmd, func(ctx context.Context, a *api, args []string) error {
		made, err := a.CreateContact(ctx, &gen.ContactCreate{Email: gen.EmailAddress(args[0]), FirstName: optNil(*first), LastName: optNil(*last)}, gen.CreateContactParams{})
		return a.show(made, err, func(t *table) { t.row(made.ID, made.Email) })
	})
}

func (p Program) contactUpdateCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "update CONTACT", Short: "Change what the flags name of a contact, by ID or address"}
	email := cmd.Flags().String("email", "", "new address")
	first := cmd.Flags().String("first-name", "", "first name")
	last := cmd.Flags().String("last-name", "", "last name")
	cmd.MarkFlagsOneRequired("email", "first-name", "last-name")
	return p.named(cmd, (*api).contactID, func(ctx context.Context, a *api, id string) error {
		change := &gen.ContactUpdate{FirstName: optNil(*first), LastName: optNil(*last)}
		given(&change.Email, gen.EmailAddress(*email))
		changed, err := a.UpdateContact(ctx, change, gen.UpdateContactParams{ID: id})
		return a.show(changed, err, func(t *table) { t.row(changed.ID, changed.Email) })
	})
}

func (p Program) suppressionCommand() *cobra.Command {
	list := &cobra.Command{Use: "list", Short: "List suppressed addresses, newest first"}
	return Group(&cobra.Command{Use: "suppression", Short: "List, add and remove suppressed addresses"},
		listing(p, list, []string{"EMAIL", "REASON", "CATEGORY", "SINCE", "SOURCE"}, func(s gen.Suppression) []string {
			return []string{s.Email, s.Reason, s.Category, when(s.CreatedAt), s.Source.Or("")}
		}, func(ctx context.Context, a *api, page gen.OptInt) iter.Seq2[gen.Suppression, error] {
			return a.Suppressions(ctx, gen.ListSuppressionsParams{Limit: page})
		}),
		p.suppressionCreateCommand(),
		p.deletion("delete EMAIL", "Remove an address from the list, so that it receives mail again", "the suppression of %s", (*api).byID, func(ctx context.Context, a *api, email string) (any, error) {
			return a.DeleteSuppression(ctx, gen.DeleteSuppressionParams{Email: email})
		}))
}

func (p Program) suppressionCreateCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "create EMAIL", Short: "Suppress an address: nothing is sent to it any more"}
	category := choose(cmd, "category", "which mail is not sent", "", gen.SuppressionCreateCategory("").AllValues())
	return p.overAPI(cmd, func(ctx context.Context, a *api, args []string) error {
		add := &gen.SuppressionCreate{Email: gen.EmailAddress(args[0])}
		given(&add.Category, *category)
		made, err := a.CreateSuppression(ctx, add, gen.CreateSuppressionParams{})
		return a.show(made, err, func(t *table) { t.row(made.Email, made.Reason, made.Category) })
	})
}
