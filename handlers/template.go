package handlers

import (
	"bytes"
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

var _ gen.TemplatesHandler = (*API)(nil)

// CreateTemplate implements POST /v1/templates.
func (a *API) CreateTemplate(ctx context.Context, req *gen.TemplateCreate, _ gen.CreateTemplateParams) (*gen.Template, error) {
	t := store.Template{AccountID: httpapi.Caller(ctx).AccountID, Name: req.Name, Subject: req.Subject, HTML: req.HTML.Or(""), Text: nilOrText(req.Text)}
	if err := hasContent(&t); err != nil {
		return nil, err
	}
	if err := checkTemplate(templateSource(t)); err != nil {
		return nil, err
	}
	t, err := a.store.CreateTemplate(ctx, t, once(ctx, http.StatusCreated, "Template", sure(templateToAPI)))
	return result(t, err, sure(templateToAPI))
}

// GetTemplate implements GET /v1/templates/{id}.
func (a *API) GetTemplate(ctx context.Context, p gen.GetTemplateParams) (*gen.Template, error) {
	t, err := a.store.Template(ctx, httpapi.Caller(ctx).AccountID, p.ID)
	return result(t, err, sure(templateToAPI))
}

// ListTemplates implements GET /v1/templates.
func (a *API) ListTemplates(ctx context.Context, p gen.ListTemplatesParams) (*gen.TemplateList, error) {
	l, err := a.store.ListTemplates(ctx, httpapi.Caller(ctx).AccountID, pageOf(p.Limit, p.Cursor))
	return listToAPI[gen.TemplateList](l, err, sure(templateToAPI))
}

// UpdateTemplate implements PATCH /v1/templates/{id}.
func (a *API) UpdateTemplate(ctx context.Context, req *gen.TemplateUpdate, p gen.UpdateTemplateParams) (*gen.Template, error) {
	given := template.Source{Subject: req.Subject.Or(""), HTML: req.HTML.Or(""), Text: req.Text.Or("")}
	return a.editTemplate(ctx, p.ID, given, func(t *store.Template) error {
		patch(&t.Name, req.Name)
		patch(&t.Subject, req.Subject)
		if req.HTML.Set {
			t.HTML = req.HTML.Or("")
		}
		if req.Text.Set {
			t.Text = nilOrText(req.Text)
		}
		return hasContent(t)
	})
}

// ReplaceTemplate implements PUT /v1/templates/{id}.
func (a *API) ReplaceTemplate(ctx context.Context, req *gen.TemplateCreate, p gen.ReplaceTemplateParams) (*gen.Template, error) {
	given := template.Source{Subject: req.Subject, HTML: req.HTML.Or(""), Text: req.Text.Or("")}
	return a.editTemplate(ctx, p.ID, given, func(t *store.Template) error {
		t.Name, t.Subject, t.HTML, t.Text = req.Name, req.Subject, req.HTML.Or(""), nilOrText(req.Text)
		return hasContent(t)
	})
}

// editTemplate changes a template. It parses the changed parts before the
// database transaction, because parsing takes a while; each part is valid or
// invalid on its own.
func (a *API) editTemplate(ctx context.Context, id string, given template.Source, edit func(*store.Template) error) (*gen.Template, error) {
	if err := checkTemplate(given); err != nil {
		return nil, err
	}
	t, err := a.store.UpdateTemplate(ctx, httpapi.Caller(ctx).AccountID, id, edit)
	return result(t, err, sure(templateToAPI))
}

// DeleteTemplate implements DELETE /v1/templates/{id}.
func (a *API) DeleteTemplate(ctx context.Context, p gen.DeleteTemplateParams) (*gen.DeletedTemplate, error) {
	if err := a.store.DeleteTemplate(ctx, httpapi.Caller(ctx).AccountID, p.ID); err != nil {
		return nil, err
	}
	return &gen.DeletedTemplate{Object: "template", ID: p.ID, Deleted: true}, nil
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

// hasContent refuses a template with neither HTML nor text.
func hasContent(t *store.Template) error {
	if t.HTML == "" && (t.Text == nil || *t.Text == "") {
		return errContentRequired
	}
	return nil
}

// htmlToAPI returns what is shown of the HTML of a template, or null if it has none.
func htmlToAPI(html, shown string) gen.NilString {
	return gen.NilString{Value: shown, Null: html == ""}
}

// checkTemplate refuses a template that cannot be rendered.
func checkTemplate(src template.Source) error {
	_, err := template.Parse(src)
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
