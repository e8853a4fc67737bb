package handlers

import (
	"context"
	"net/http"
	"strings"

	"github.com/postroom/postroom/gen"
)

// parts are what an email says, before variables are filled in.
type parts struct {
	subject              string
	html, text, template gen.OptString
}

// check refuses parts that do not go together, and none.
func (p parts) check() error {
	switch {
	case p.template.Set && p.html.Set:
		return &apiError{
			status: http.StatusBadRequest, code: gen.ErrorCodeTemplateConflict, param: "template", message: "template does not go with html",
		}
	case !p.template.Set && p.html.Value == "" && p.text.Value == "":
		return errContentRequired
	}
	return nil
}

// fill sets what the email says. Variables are filled in when there is data for
// them, or where they always are.
func (a *API) fill(_ context.Context, s *emailSubmission, p parts, render bool, _ gen.FreeObject) error {
	if err := p.check(); err != nil {
		return err
	}
	if p.template.Set {
		return errInvalid("template", "is not a template of this account")
	}
	s.subject, s.html, s.text = p.subject, p.html.Value, p.text.Value
	// Until there are templates, what has none to fill in is all that can be sent.
	if render && strings.Contains(s.subject+s.html+s.text, "{{") {
		return errNotImplemented
	}
	return nil
}
