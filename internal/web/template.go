package web

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/go-faster/jx"

	"github.com/postroom/postroom/gen"
)

func (d *Dashboard) listTemplates(p *page) error {
	l, err := d.api.ListTemplates(p.ctx(), gen.ListTemplatesParams{Limit: limit(), Cursor: p.cursor()})
	if err != nil {
		return err
	}
	return p.show("templates", struct {
		Templates []gen.Template
		paging
	}{l.Data, p.paging(l.Cursor)})
}

// templateForm is the page on which a template is written. Once is the idempotency key
// of a new one.
type templateForm struct {
	ID, Name, Subject, HTML, Text, Once string
	Problem                             problem
}

// newTemplate shows an empty form, or with the parameter "from" a copy of a template.
func (d *Dashboard) newTemplate(p *page) error {
	f := templateForm{Once: d.newOnce()}
	if id := p.r.URL.Query().Get("from"); id != "" {
		t, err := d.api.GetTemplate(p.ctx(), gen.GetTemplateParams{ID: id})
		if err != nil {
			return err
		}
		f.Name, f.Subject, f.HTML, f.Text = "Copy of "+t.Name, t.Subject, t.HTML.Value, t.Text.Value
	}
	return p.show("template-edit", f)
}

func (d *Dashboard) editTemplate(p *page) error {
	t, err := d.api.GetTemplate(p.ctx(), gen.GetTemplateParams{ID: p.r.PathValue("id")})
	if err != nil {
		return err
	}
	return p.show("template-edit", templateForm{ID: t.ID, Name: t.Name, Subject: t.Subject, HTML: t.HTML.Value, Text: t.Text.Value})
}

func (p *page) templateForm() (f templateForm, html, text gen.OptNilString) {
	f = templateForm{
		ID: p.r.PathValue("id"), Name: p.field("name"), Subject: p.field("subject"),
		HTML: unixLines(p.form.Get("html")), Text: unixLines(p.form.Get("text")), Once: p.form.Get("once"),
	}
	part := func(s string) gen.OptNilString {
		return gen.OptNilString{Value: s, Set: true, Null: strings.TrimSpace(s) == ""}
	}
	return f, part(f.HTML), part(f.Text)
}

func (d *Dashboard) createTemplate(p *page) error {
	f, html, text := p.templateForm()
	t, err := d.api.CreateTemplate(p.ctx(), &gen.TemplateCreate{Name: f.Name, Subject: f.Subject, HTML: html, Text: text},
		gen.CreateTemplateParams{IdempotencyKey: optional(f.Once)})
	if err != nil {
		return d.templateFault(p, f, err)
	}
	return p.done("/templates/"+t.ID, "Template created.")
}

// templateFault shows the form of a template again, with the problem.
func (d *Dashboard) templateFault(p *page, f templateForm, err error) error {
	return again(err, func(pr problem) error {
		f.Problem, f.Once = pr, d.onceAfter(pr, f.Once)
		return p.showStatus(pr.status, "template-edit", f)
	})
}

func (d *Dashboard) saveTemplate(p *page) error {
	f, html, text := p.templateForm()
	_, err := d.api.UpdateTemplate(p.ctx(), &gen.TemplateUpdate{
		Name: gen.NewOptString(f.Name), Subject: gen.NewOptString(f.Subject), HTML: html, Text: text,
	}, gen.UpdateTemplateParams{ID: f.ID})
	if err != nil {
		return d.templateFault(p, f, err)
	}
	return p.done("/templates/"+f.ID, "Template saved.")
}

func (d *Dashboard) deleteTemplate(p *page) error {
	_, err := d.api.DeleteTemplate(p.ctx(), gen.DeleteTemplateParams{ID: p.r.PathValue("id")})
	return p.result(err, "/templates", "/templates", "Template deleted.")
}

// templateView is a template with a preview of it.
type templateView struct {
	*gen.Template
	Variables []templateVariable
	Preview   *gen.TemplatePreview // nil if Fault is set
	Fault     string
	Frame     *frame
	Images    string // URL of the preview with remote images; empty if there are none to show
	Tabs      []messageTab
	Tab       string
	// From, To and Once belong to the form of a test email.
	From, To, Once string
	Problem        problem
}

// templateVariable is a variable of a template and its value in the preview.
type templateVariable struct{ Name, Value string }

// variablePrefix begins the names of form fields that hold variables.
const variablePrefix = "v."

// templateData returns the variables of a form as the API takes them: order.number is
// the member number of the object order.
func templateData(values url.Values) (gen.FreeObject, error) {
	data := map[string]any{}
	for _, field := range slices.Sorted(maps.Keys(values)) {
		name, ok := strings.CutPrefix(field, variablePrefix)
		if !ok {
			continue
		}
		at, parts := data, strings.Split(name, ".")
		for _, part := range parts[:len(parts)-1] {
			inner, ok := at[part].(map[string]any)
			if !ok {
				inner = map[string]any{}
				at[part] = inner
			}
			at = inner
		}
		at[parts[len(parts)-1]] = values.Get(field)
	}
	out := gen.FreeObject{}
	for name, value := range data {
		raw, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		out[name] = jx.Raw(raw)
	}
	return out, nil
}

func (d *Dashboard) previewOf(p *page, id string, values url.Values) (*gen.TemplatePreview, error) {
	data, err := templateData(values)
	if err != nil {
		return nil, err
	}
	return d.api.PreviewTemplate(p.ctx(), &gen.TemplatePreviewRequest{Data: gen.NewOptFreeObject(data)}, gen.PreviewTemplateParams{ID: id})
}

func templateDocument(id string, preview *gen.TemplatePreview) mailSource {
	return mailSource{ID: id, Title: preview.Subject, Text: preview.Text.Value, HTML: preview.HTML.Value}
}

func (d *Dashboard) showTemplate(p *page) error {
	v, err := d.templateView(p, p.r.URL.Query())
	if err != nil {
		return err
	}
	in, err := d.api.ListInboxes(p.ctx(), gen.ListInboxesParams{Limit: gen.NewOptInt(1)})
	if err != nil {
		return err
	}
	if len(in.Data) > 0 {
		v.From = in.Data[0].Address
	}
	if strings.Contains(p.user.Name, "@") {
		v.To = p.user.Name
	}
	return p.show("template", v)
}

// templateView returns a template and its preview with the variables of a form.
func (d *Dashboard) templateView(p *page, values url.Values) (templateView, error) {
	t, err := d.api.GetTemplate(p.ctx(), gen.GetTemplateParams{ID: p.r.PathValue("id")})
	if err != nil {
		return templateView{}, err
	}
	v := templateView{Template: t, Once: d.newOnce(), Tab: values.Get("tab")}
	empty, err := d.previewOf(p, t.ID, nil) // every variable is missing
	if err != nil {
		return v, err
	}
	used := url.Values{}
	for _, name := range empty.MissingVariables {
		value := values.Get(variablePrefix + name)
		v.Variables = append(v.Variables, templateVariable{name, value})
		if value != "" {
			used.Set(variablePrefix+name, value)
		}
	}
	here := "/templates/" + t.ID
	at := func(name, value string) string {
		q := maps.Clone(used)
		q.Set(name, value)
		return here + "?" + q.Encode()
	}
	for _, tab := range []messageTab{{"", "HTML"}, {"phone", "Phone"}, {"text", "Text"}, {"source", "Source"}} {
		v.Tabs = append(v.Tabs, messageTab{at("tab", tab.Name), tab.Title})
	}
	v.Preview, err = d.previewOf(p, t.ID, used)
	if pr, ok := problemOf(err); ok {
		v.Fault = pr.Message
		return v, nil
	}
	if err != nil {
		return v, err
	}
	source := templateDocument(t.ID, v.Preview)
	if v.Frame = p.frameOf(source, p.asksRemote(source)); v.Frame != nil {
		if v.Frame.Ask != "" && !v.Frame.Shown {
			v.Images = at("remote", v.Frame.Ask) + "&tab=" + url.QueryEscape(v.Tab)
		}
		v.Frame.Ask = "" // the link above keeps the variables
		q := maps.Clone(used)
		if v.Frame.Shown {
			q.Set("remote", values.Get("remote"))
		}
		v.Frame.Src = source.path() + "/view?" + q.Encode()
	}
	return v, nil
}

// On reports whether the tab with this title is shown.
func (v templateView) On(title string) bool {
	switch v.Tab {
	case "phone", "text", "source":
		return strings.EqualFold(v.Tab, title)
	}
	return title == "HTML"
}

func (d *Dashboard) templateFrame(p *page) error {
	id := p.r.PathValue("id")
	preview, err := d.previewOf(p, id, p.r.URL.Query())
	if err != nil {
		return err
	}
	return p.showFrame(templateDocument(id, preview))
}

// testTemplate sends the template as its preview shows it: a variable without a value
// is empty.
func (d *Dashboard) testTemplate(p *page) error {
	data, err := templateData(p.form)
	if err != nil {
		return err
	}
	t, err := d.api.GetTemplate(p.ctx(), gen.GetTemplateParams{ID: p.r.PathValue("id")})
	if err != nil {
		return err
	}
	from, to, once := p.field("from"), p.field("to"), p.form.Get("once")
	response, err := d.api.SendEmail(p.ctx(), &gen.EmailSend{
		From: gen.NewMailboxAddress(gen.Mailbox(from)), To: gen.NewAddressArrayRecipients(addressesOf(to)), Subject: gen.NewOptString(t.Subject),
		Template: gen.NewOptNilString(t.ID), Data: gen.NewOptFreeObject(data),
	}, gen.SendEmailParams{IdempotencyKey: optional(once)})
	if err != nil {
		return showFault(p, "template", err, func(p *page) (templateView, error) { return d.templateView(p, p.form) }, func(v *templateView, pr problem) {
			v.From, v.To, v.Problem, v.Once = from, to, pr, d.onceAfter(pr, once)
		})
	}
	if dr, held := response.(*gen.Draft); held {
		return p.done("/approvals/"+dr.ID, "Submitted for approval.")
	}
	e, ok := response.(*gen.EmailCreated)
	if !ok {
		return errFailed
	}
	return p.done("/emails/"+e.ID, "Test email queued.")
}
