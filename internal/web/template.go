package web

import (
	"encoding/json"
	"net/url"
	"strings"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/template"
)

// templateList is the page of templates. To is the address to send one to, if a contact was
// chosen first.
type templateList struct {
	list[gen.Template]
	To string
}

func (d *Dashboard) listTemplates(p *page) error {
	l, err := d.api.ListTemplates(p.ctx(), gen.ListTemplatesParams{Limit: limit(), Cursor: p.cursor()})
	if err != nil {
		return err
	}
	return p.show("templates", templateList{list[gen.Template]{Rows: l.Data, paging: p.paging(l.Cursor)}, p.r.URL.Query().Get("to")})
}

// templateView is the page on which a template is written, beside its preview. Template is
// nil for a new one.
type templateView struct {
	Template *gen.Template
	Form     form
}

// newTemplate shows an empty form, or with the parameter "from" a copy of a template.
func (d *Dashboard) newTemplate(p *page) error {
	values := url.Values{"data": {"{}"}}
	if id := p.r.URL.Query().Get("from"); id != "" {
		t, err := d.api.GetTemplate(p.ctx(), gen.GetTemplateParams{ID: id})
		if err != nil {
			return err
		}
		values = templateValues(t)
		values.Set("name", "Copy of "+t.Name)
	}
	return p.show("template", templateView{nil, p.newForm(values)})
}

func (d *Dashboard) showTemplate(p *page) error {
	t, err := d.api.GetTemplate(p.ctx(), gen.GetTemplateParams{ID: p.id()})
	if err != nil {
		return err
	}
	in, err := d.api.ListInboxes(p.ctx(), gen.ListInboxesParams{Limit: gen.NewOptInt(1)})
	if err != nil {
		return err
	}
	values := templateValues(t)
	if len(in.Data) > 0 {
		values.Set("from", in.Data[0].Address)
	}
	if values.Set("to", p.r.URL.Query().Get("to")); values.Get("to") == "" && strings.Contains(p.user.Name, "@") {
		values.Set("to", p.user.Name)
	}
	return p.show("template", templateView{t, p.newForm(values)})
}

// templateValues returns a template as its form has it, with sample data for the preview.
func templateValues(t *gen.Template) url.Values {
	data := map[string]any{}
	if parsed, err := template.Parse(template.Source{Subject: t.Subject, HTML: t.HTML.Value, Text: t.Text.Value}); err == nil {
		data = parsed.Sample()
	}
	sample, _ := json.MarshalIndent(data, "", "  ") // such data always has a JSON
	return url.Values{"name": {t.Name}, "subject": {t.Subject}, "html": {t.HTML.Value}, "text": {t.Text.Value}, "data": {string(sample)}}
}

// templateRequest returns the template of the form.
func (p *page) templateRequest() *gen.TemplateCreate {
	part := func(name string) gen.OptNilString {
		value := unixLines(p.form.Get(name))
		return gen.OptNilString{Value: value, Set: true, Null: strings.TrimSpace(value) == ""}
	}
	return &gen.TemplateCreate{Name: p.field("name"), Subject: p.field("subject"), HTML: part("html"), Text: part("text")}
}

func (d *Dashboard) createTemplate(p *page) error {
	t, err := d.api.CreateTemplate(p.ctx(), p.templateRequest(), gen.CreateTemplateParams{IdempotencyKey: p.once()})
	if err != nil {
		return p.again(err, d.newTemplate)
	}
	return p.done("/templates/"+t.ID, "Template created.")
}

func (d *Dashboard) saveTemplate(p *page) error {
	if err := d.updateTemplate(p); err != nil {
		return p.again(err, d.showTemplate)
	}
	return p.done("/templates/"+p.id(), "Template saved.")
}

func (d *Dashboard) updateTemplate(p *page) error {
	t := p.templateRequest()
	_, err := d.api.UpdateTemplate(p.ctx(), &gen.TemplateUpdate{
		Name: gen.NewOptString(t.Name), Subject: gen.NewOptString(t.Subject), HTML: t.HTML, Text: t.Text,
	}, gen.UpdateTemplateParams{ID: p.id()})
	return err
}

func (d *Dashboard) deleteTemplate(p *page) error {
	_, err := d.api.DeleteTemplate(p.ctx(), gen.DeleteTemplateParams{ID: p.id()})
	return p.result(err, "/templates", "/templates", "Template deleted.")
}

// previewTemplate writes the document of the preview: the template as the form has it, saved
// or not, with the data of the form.
func (d *Dashboard) previewTemplate(p *page) error {
	t := p.templateRequest()
	var data map[string]any
	if json.Unmarshal([]byte(p.form.Get("data")), &data) != nil {
		return p.showText("The data is not a JSON object.")
	}
	parsed, err := template.Parse(template.Source{Subject: t.Subject, HTML: t.HTML.Value, Text: t.Text.Value})
	if err != nil {
		return p.showText(err.Error())
	}
	out, missing, err := parsed.Render(data)
	if err != nil {
		return p.showText(err.Error())
	}
	m := mailSource{Title: out.Subject, Text: out.Text, HTML: out.HTML, Lead: "Subject: " + out.Subject}
	if len(missing) > 0 {
		m.Lead += "\nWithout a value: " + strings.Join(missing, ", ")
	}
	if p.form.Get("part") == "text" {
		m.HTML = ""
	}
	return p.showDocument(m, true)
}

// savedPreview writes the preview of a template as it is saved.
func (d *Dashboard) savedPreview(p *page) error {
	t, err := d.api.GetTemplate(p.ctx(), gen.GetTemplateParams{ID: p.id()})
	if err != nil {
		return err
	}
	p.form = templateValues(t)
	return d.previewTemplate(p)
}

// sendTemplate saves a template and sends it, with the data of the form.
func (d *Dashboard) sendTemplate(p *page) error {
	data := gen.FreeObject{}
	err := d.updateTemplate(p)
	if err == nil && json.Unmarshal([]byte(p.form.Get("data")), &data) != nil {
		err = fieldProblem("data", `Write a JSON object, as {"name": "Ana"}.`)
	}
	var response gen.SendEmailRes
	if err == nil {
		response, err = d.api.SendEmail(p.ctx(), &gen.EmailSend{
			From: gen.NewMailboxAddress(gen.Mailbox(p.field("from"))), To: gen.NewAddressArrayRecipients(addressesOf(p.form.Get("to"))),
			Template: gen.NewOptNilString(p.id()), Data: gen.NewOptFreeObject(data),
		}, gen.SendEmailParams{IdempotencyKey: p.once()})
	}
	if err != nil {
		return p.again(err, d.showTemplate)
	}
	return p.sent(response)
}
