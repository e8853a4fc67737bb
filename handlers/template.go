package handlers

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/template"
	"github.com/postroom/postroom/store"
)

// CreateTemplate implements POST /v1/templates.
func (a *API) CreateTemplate(ctx context.Context, req *gen.TemplateCreate, _ gen.CreateTemplateParams) (*gen.Template, error) {
	t := store.Template{AccountID: httpapi.Caller(ctx).AccountID}
	if err := cmp.Or(editTemplate(&t, wholeTemplate(req)), checkTemplate(wholeTemplate(req))); err != nil {
		return nil, err
	}
	t, err := a.store.CreateTemplate(ctx, t, once(ctx, http.StatusCreated, "Template", templateToAPI))
	return result(t, err, templateToAPI)
}

// wholeTemplate returns a new template as the change of an empty one.
func wholeTemplate(req *gen.TemplateCreate) *gen.TemplateUpdate {
	html, text := req.HTML, req.Text
	html.Set, text.Set, html.Null, text.Null = true, true, html.Null || !html.Set, text.Null || !text.Set
	return &gen.TemplateUpdate{Name: gen.NewOptString(req.Name), Subject: gen.NewOptString(req.Subject), HTML: html, Text: text}
}

// GetTemplate implements GET /v1/templates/{id}.
func (a *API) GetTemplate(ctx context.Context, p gen.GetTemplateParams) (*gen.Template, error) {
	t, err := a.store.Template(ctx, httpapi.Caller(ctx).AccountID, p.ID)
	return result(t, err, templateToAPI)
}

// ListTemplates implements GET /v1/templates.
func (a *API) ListTemplates(ctx context.Context, p gen.ListTemplatesParams) (*gen.TemplateList, error) {
	l, err := a.store.ListTemplates(ctx, httpapi.Caller(ctx).AccountID, pageOf(p.Limit, p.Cursor))
	return listToAPI[gen.TemplateList](l, err, templateToAPI)
}

// UpdateTemplate implements PATCH /v1/templates/{id}. It parses the changed parts before
// the database transaction, because parsing takes a while; each part is valid or invalid
// on its own.
func (a *API) UpdateTemplate(ctx context.Context, req *gen.TemplateUpdate, p gen.UpdateTemplateParams) (*gen.Template, error) {
	if err := checkTemplate(req); err != nil {
		return nil, err
	}
	t, err := a.store.UpdateTemplate(ctx, httpapi.Caller(ctx).AccountID, p.ID, func(t *store.Template) error { return editTemplate(t, req) })
	return result(t, err, templateToAPI)
}

// editTemplate applies the fields of a request to a template. It refuses one with neither
// HTML nor text.
func editTemplate(t *store.Template, req *gen.TemplateUpdate) error {
	patch(&t.Name, req.Name)
	patch(&t.Subject, req.Subject)
	patchText(&t.HTML, req.HTML)
	if req.Text.Set {
		t.Text = nilOrText(req.Text)
	}
	if t.HTML == "" && (t.Text == nil || *t.Text == "") {
		return errContentRequired
	}
	return nil
}

// ReplaceTemplate implements PUT /v1/templates/{id}.
func (a *API) ReplaceTemplate(ctx context.Context, req *gen.TemplateCreate, p gen.ReplaceTemplateParams) (*gen.Template, error) {
	return a.UpdateTemplate(ctx, wholeTemplate(req), gen.UpdateTemplateParams(p))
}

// DeleteTemplate implements DELETE /v1/templates/{id}.
func (a *API) DeleteTemplate(ctx context.Context, p gen.DeleteTemplateParams) (*gen.DeletedTemplate, error) {
	err := a.store.DeleteTemplate(ctx, httpapi.Caller(ctx).AccountID, p.ID)
	return &gen.DeletedTemplate{Object: "template", ID: p.ID, Deleted: true}, err
}

// PreviewTemplate implements POST /v1/templates/{id}/preview.
func (a *API) PreviewTemplate(ctx context.Context, req *gen.TemplatePreviewRequest, p gen.PreviewTemplateParams) (*gen.TemplatePreview, error) {
	t, err := a.store.Template(ctx, httpapi.Caller(ctx).AccountID, p.ID)
	if err != nil {
		return nil, err
	}
	data, err := variablesFromAPI("data", req.Data.Or(nil))
	if err != nil {
		return nil, err
	}
	mail, err := template.Parse(templateSource(t))
	if err != nil {
		return nil, templateError("data", err)
	}
	shown, missing, err := mail.Render(data)
	if err != nil {
		return nil, templateError("data", err)
	}
	out := &gen.TemplatePreview{Subject: shown.Subject, HTML: htmlToAPI(t.HTML, shown.HTML), Text: gen.NilString{Null: true}, MissingVariables: orEmpty(missing)}
	if t.Text != nil {
		out.Text = gen.NewNilString(shown.Text)
	}
	return out, nil
}

// htmlToAPI returns what is shown of the HTML of a template, or null if it has none.
func htmlToAPI(html, shown string) gen.NilString {
	return gen.NilString{Value: shown, Null: html == ""}
}

// checkTemplate refuses parts of a template that cannot be rendered.
func checkTemplate(req *gen.TemplateUpdate) error {
	_, err := template.Parse(template.Source{Subject: req.Subject.Or(""), HTML: req.HTML.Or(""), Text: req.Text.Or("")})
	return templateError("data", err)
}

func templateSource(t store.Template) template.Source {
	src := template.Source{Subject: t.Subject, HTML: t.HTML}
	if t.Text != nil {
		src.Text = *t.Text
	}
	return src
}

// nilOrText returns nil for absent or null.
func nilOrText(o gen.OptNilString) *string {
	if s, ok := o.Get(); ok {
		return &s
	}
	return nil
}

func templateToAPI(t store.Template) *gen.Template {
	return &gen.Template{
		Object: "template", ID: t.ID, Name: t.Name, Subject: t.Subject, HTML: htmlToAPI(t.HTML, t.HTML), Text: nilString(t.Text),
		CreatedAt: t.CreatedAt.Time, UpdatedAt: t.UpdatedAt.Time,
	}
}

// maxVariables limits the values of a template's variables, in bytes of JSON.
// More would not fit into a message.
const maxVariables = 1 << 20

// variablesFromAPI reads the values of variables from a request field. Numbers
// keep their exact form.
func variablesFromAPI(field string, object gen.FreeObject) (map[string]any, error) {
	bytesTaken := 0
	for name, raw := range object {
		if bytesTaken += len(name) + len(raw); bytesTaken > maxVariables {
			return nil, httpapi.Invalid(field, "must be at most %d bytes", maxVariables)
		}
	}
	out := make(map[string]any, len(object))
	for name, raw := range object {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		var v any
		if err := d.Decode(&v); err != nil {
			return nil, fmt.Errorf("read %s: %w", field, err)
		}
		out[name] = v
	}
	return out, nil
}

// templateError converts an error of the template package to one that names the
// part of the template or the value in field.
func templateError(field string, err error) error {
	e, ok := errors.AsType[*template.Error](err)
	switch {
	case !ok:
		return err
	case e.Variable != "":
		return httpapi.Invalid(field+"."+e.Variable, "%s", e.Reason)
	}
	return httpapi.Invalid(string(e.Part), "%s", e.Reason)
}
