package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/postroom/postroom/gen"
)

func (p Program) templateCommand() *cobra.Command {
	return Group(&cobra.Command{Use: "template", Short: "List, save and preview templates"},
		p.templateListCommand(), p.templateGetCommand(), p.templateCreateCommand(), p.templateUpdateCommand(), p.templatePreviewCommand(), p.templateDeleteCommand())
}

func (p Program) templateListCommand() *cobra.Command {
	var limit int
	cmd := &cobra.Command{Use: "list", Short: "List templates, newest first", Args: cobra.NoArgs}
	limitFlag(cmd, &limit)
	return p.overAPI(cmd, func(ctx context.Context, a *api, _ []string) error {
		all := a.Templates(ctx, gen.ListTemplatesParams{Limit: pageOf(limit)})
		return showList(a.output, all, limit, []string{"ID", "UPDATED", "NAME", "SUBJECT"}, func(t gen.Template) []string {
			return []string{t.ID, when(t.UpdatedAt), short(t.Name, 40), short(t.Subject, 60)}
		})
	})
}

func (p Program) templateGetCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "get TEMPLATE", Short: "Show a template with its HTML", Args: Wants(1)}
	return p.overAPI(cmd, func(ctx context.Context, a *api, args []string) error {
		got, err := a.GetTemplate(ctx, gen.GetTemplateParams{ID: args[0]})
		if err != nil {
			return err
		}
		return a.show(got, func(t *table) {
			t.row("ID", got.ID)
			t.row("Name", got.Name)
			t.row("Subject", got.Subject)
			t.row("Updated", when(got.UpdatedAt))
			t.text(got.HTML)
		})
	})
}

// templateContent holds the flags for the content of a template.
type templateContent struct{ name, subject, htmlFile, textFile string }

func (c *templateContent) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.name, "name", "", "name of the template")
	cmd.Flags().StringVar(&c.subject, "subject", "", "subject line, with variables such as {{name}}")
	cmd.Flags().StringVar(&c.htmlFile, "html-file", "", "file with the HTML; - for standard input")
	cmd.Flags().StringVar(&c.textFile, "text-file", "", "file with the text; - for standard input")
}

// read returns the content of the files. Without a text file the text is unset.
func (c *templateContent) read(p Program) (html string, text gen.OptNilString, err error) {
	if c.htmlFile != "" {
		b, err := p.readFile(c.htmlFile)
		if err != nil {
			return "", text, err
		}
		html = string(b)
	}
	if c.textFile != "" {
		b, err := p.readFile(c.textFile)
		if err != nil {
			return "", text, err
		}
		text.SetTo(string(b))
	}
	return html, text, nil
}

func (p Program) templateCreateCommand() *cobra.Command {
	var c templateContent
	cmd := &cobra.Command{
		Use:     "create",
		Short:   "Create a template",
		Example: "  postroom template create --name welcome --subject 'Hello {{name}}' --html-file welcome.html",
		Args:    cobra.NoArgs,
	}
	c.flags(cmd)
	mustGive(cmd, "name", "subject", "html-file")
	return p.overAPI(cmd, func(ctx context.Context, a *api, _ []string) error {
		html, text, err := c.read(p)
		if err != nil {
			return err
		}
		made, err := a.CreateTemplate(ctx, &gen.TemplateCreate{Name: c.name, Subject: c.subject, HTML: html, Text: text}, gen.CreateTemplateParams{})
		if err != nil {
			return err
		}
		return a.show(made, func(t *table) { t.row(made.ID, made.Name) })
	})
}

func (p Program) templateUpdateCommand() *cobra.Command {
	var c templateContent
	cmd := &cobra.Command{Use: "update TEMPLATE", Short: "Change what the flags name of a template", Args: Wants(1)}
	c.flags(cmd)
	cmd.MarkFlagsOneRequired("name", "subject", "html-file", "text-file")
	return p.overAPI(cmd, func(ctx context.Context, a *api, args []string) error {
		html, text, err := c.read(p)
		if err != nil {
			return err
		}
		changed, err := a.UpdateTemplate(ctx, &gen.TemplateUpdate{Name: opt(c.name), Subject: opt(c.subject), HTML: opt(html), Text: text},
			gen.UpdateTemplateParams{ID: args[0]})
		if err != nil {
			return err
		}
		return a.show(changed, func(t *table) { t.row(changed.ID, changed.Name) })
	})
}

func (p Program) templatePreviewCommand() *cobra.Command {
	var (
		data string
		html bool
	)
	cmd := &cobra.Command{
		Use:     "preview TEMPLATE",
		Short:   "Show a template with variables filled in",
		Example: `  postroom template preview tpl_01k5 --data '{"name":"Ana"}'`,
		Args:    Wants(1),
	}
	cmd.Flags().StringVar(&data, "data", "{}", "JSON object with the variables, or @FILE")
	cmd.Flags().BoolVar(&html, "html", false, "show the HTML instead of the text")
	return p.overAPI(cmd, func(ctx context.Context, a *api, args []string) error {
		if file, isFile := strings.CutPrefix(data, "@"); isFile {
			b, err := p.readFile(file)
			if err != nil {
				return err
			}
			data = string(b)
		}
		var req gen.TemplatePreviewRequest
		if err := json.Unmarshal([]byte(`{"data":`+data+`}`), &req); err != nil {
			return UsageError{errors.New("--data is not a JSON object")}
		}
		seen, err := a.PreviewTemplate(ctx, &req, gen.PreviewTemplateParams{ID: args[0]})
		if err != nil {
			return err
		}
		return a.show(seen, func(t *table) {
			t.row("Subject", seen.Subject)
			t.field("Missing", strings.Join(seen.MissingVariables, ", "))
			if text, ok := seen.Text.Get(); ok && !html {
				t.text(text)
				return
			}
			t.text(seen.HTML)
		})
	})
}

func (p Program) templateDeleteCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "delete TEMPLATE", Short: "Delete a template", Args: Wants(1)}
	return p.overAPI(deletes(cmd), func(ctx context.Context, a *api, args []string) error {
		if err := p.confirm(cmd, "template "+args[0]); err != nil {
			return err
		}
		gone, err := a.DeleteTemplate(ctx, gen.DeleteTemplateParams{ID: args[0]})
		return a.showDeleted(gone, err, "template "+args[0])
	})
}

// showDeleted prints what was deleted.
func (a *api) showDeleted(res any, err error, what string) error {
	if err != nil {
		return err
	}
	return a.show(res, func(t *table) { t.row(fmt.Sprintf("Deleted %s.", what)) })
}
