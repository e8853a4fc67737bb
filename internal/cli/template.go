package cli

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"

	"github.com/spf13/cobra"

	"github.com/postroom/postroom/gen"
)

func (p Program) templateCommand() *cobra.Command {
	list := &cobra.Command{Use: "list", Short: "List templates, newest first"}
	return Group(&cobra.Command{Use: "template", Short: "List, save and preview templates"},
		listing(p, list, []string{"ID", "UPDATED", "NAME", "SUBJECT"}, func(t gen.Template) []string {
			return []string{t.ID, when(t.UpdatedAt), short(t.Name, 40), short(t.Subject, 60)}
		}, func(ctx context.Context, a *api, page gen.OptInt) iter.Seq2[gen.Template, error] {
			return a.Templates(ctx, gen.ListTemplatesParams{Limit: page})
		}),
		p.templateGetCommand(), p.templateCreateCommand(), p.templateUpdateCommand(), p.templatePreviewCommand(),
		p.deletion("delete TEMPLATE", "Delete a template", "template %s", (*api).byID, func(ctx context.Context, a *api, id string) (any, error) {
			return a.DeleteTemplate(ctx, gen.DeleteTemplateParams{ID: id})
		}))
}

func (p Program) templateGetCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "get TEMPLATE", Short: "Show a template with its HTML, or its text"}
	return p.named(cmd, (*api).byID, func(ctx context.Context, a *api, id string) error {
		got, err := a.GetTemplate(ctx, gen.GetTemplateParams{ID: id})
		return a.show(got, err, func(t *table) {
			t.row("ID", got.ID)
			t.row("Name", got.Name)
			t.row("Subject", got.Subject)
			t.row("Updated", when(got.UpdatedAt))
			t.text(got.HTML.Or(got.Text.Value))
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

// read returns the content of the files. Without a file its part is unset.
func (c *templateContent) read(p Program) (html, text gen.OptNilString, err error) {
	err = errors.Join(p.readInto(&html, c.htmlFile), p.readInto(&text, c.textFile))
	return html, text, err
}

func (p Program) templateCreateCommand() *cobra.Command {
	var c templateContent
	cmd := &cobra.Command{
		Use:     "create",
		Short:   "Create a template",
		Example: "  postroom template create --name welcome --subject 'Hello {{name}}' --html-file welcome.html",
	}
	c.flags(cmd)
	mustGive(cmd, "name", "subject")
	cmd.MarkFlagsOneRequired("html-file", "text-file")
	return p.overAPI(cmd, func(ctx context.Context, a *api, _ []string) error {
		html, text, err := c.read(p)
		if err != nil {
			return err
		}
		made, err := a.CreateTemplate(ctx, &gen.TemplateCreate{Name: c.name, Subject: c.subject, HTML: html, Text: text}, gen.CreateTemplateParams{})
		return a.show(made, err, func(t *table) { t.row(made.ID, made.Name) })
	})
}

func (p Program) templateUpdateCommand() *cobra.Command {
	var c templateContent
	cmd := &cobra.Command{Use: "update TEMPLATE", Short: "Change what the flags name of a template"}
	c.flags(cmd)
	cmd.MarkFlagsOneRequired("name", "subject", "html-file", "text-file")
	return p.overAPI(cmd, func(ctx context.Context, a *api, args []string) error {
		html, text, err := c.read(p)
		if err != nil {
			return err
		}
		changed, err := a.UpdateTemplate(ctx, &gen.TemplateUpdate{Name: opt(c.name), Subject: opt(c.subject), HTML: html, Text: text},
			gen.UpdateTemplateParams{ID: args[0]})
		return a.show(changed, err, func(t *table) { t.row(changed.ID, changed.Name) })
	})
}

func (p Program) templatePreviewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "preview TEMPLATE",
		Short:   "Show a template with variables filled in",
		Example: `  postroom template preview tpl_01k5 --data '{"name":"Ana"}'`,
	}
	data := cmd.Flags().String("data", "{}", "JSON object with the variables, or @FILE")
	html := cmd.Flags().Bool("html", false, "show the HTML instead of the text")
	return p.named(cmd, (*api).byID, func(ctx context.Context, a *api, id string) error {
		text := []byte(*data)
		if file, isFile := strings.CutPrefix(*data, "@"); isFile {
			var err error
			if text, err = p.readFile(file); err != nil {
				return err
			}
		}
		var req gen.TemplatePreviewRequest
		if err := json.Unmarshal([]byte(`{"data":`+string(text)+`}`), &req); err != nil {
			return UsageError{errors.New("--data is not a JSON object")}
		}
		seen, err := a.PreviewTemplate(ctx, &req, gen.PreviewTemplateParams{ID: id})
		return a.show(seen, err, func(t *table) {
			t.row("Subject", seen.Subject)
			t.field("Missing", strings.Join(seen.MissingVariables, ", "))
			if text, ok := seen.Text.Get(); ok && !*html {
				t.text(text)
				return
			}
			t.text(seen.HTML.Value)
		})
	})
}
