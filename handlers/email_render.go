package handlers

import (
	"context"
	"errors"
	"net/http"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/template"
	"github.com/postroom/postroom/store"
)

// parts are the content fields of an email request.
type parts struct {
	subject              string
	html, text, template gen.OptNilString
	render               bool // whether inline content has variables too
}

// script is the content of an email for any number of recipients.
type script struct {
	said template.Source
	mail *template.Template // nil without variables
}

// scriptOf reads the template that a request names, or its own content. The
// subject and text of the request override those of the template.
func (a *API) scriptOf(ctx context.Context, p parts) (script, error) {
	s := script{said: template.Source{Subject: p.subject, HTML: p.html.Or(""), Text: p.text.Or("")}}
	if id, ok := p.template.Get(); ok {
		if _, ok := p.html.Get(); ok {
			return s, &httpapi.Error{
				Status: http.StatusBadRequest, Code: gen.ErrorCodeTemplateConflict, Param: "template", Message: "template and html cannot be combined: send one of them",
			}
		}
		t, err := a.store.Template(ctx, httpapi.Caller(ctx).AccountID, id)
		if errors.Is(err, store.ErrNotFound) {
			return s, httpapi.Invalid("template", "not found in this account")
		}
		if err != nil {
			return s, err
		}
		s.said.HTML = t.HTML
		if _, ok := p.text.Get(); !ok && t.Text != nil {
			s.said.Text = *t.Text
		}
	} else if !p.render {
		return s, nil
	}
	var err error
	s.mail, err = template.Parse(s.said)
	return s, templateError("data", err)
}

// fill sets the content of an email with the variables filled in. field returns
// the request field that a variable comes from.
func (s script) fill(e *emailSubmission, values map[string]any, field func(variable string) string) error {
	said := s.said
	if s.mail != nil {
		var missing []string
		var err error
		said, missing, err = s.mail.Render(values)
		if at, ok := errors.AsType[*template.Error](err); ok {
			return templateError(field(at.Variable), err)
		}
		if len(missing) > 0 {
			param := field(missing[0]) + "." + missing[0]
			return &httpapi.Error{
				Status: http.StatusBadRequest, Code: gen.ErrorCodeTemplateVariableMissing, Param: param,
				Message: param + " is a variable of the email, and has no value",
			}
		}
	}
	e.subject, e.html, e.text = said.Subject, said.HTML, said.Text
	return nil
}
