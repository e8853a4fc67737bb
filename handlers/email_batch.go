package handlers

import (
	"context"
	"maps"
	"net/http"
	"strings"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/store"
)

// maxBatchBytes is what the texts of a batch may have together, in bytes, with
// their variables filled in: a small request makes large ones.
const maxBatchBytes = 16 << 20

// SendEmailBatch implements POST /v1/emails/batch.
func (a *API) SendEmailBatch(ctx context.Context, req *gen.EmailBatchSend, _ gen.SendEmailBatchParams) (*gen.EmailBatch, error) {
	var shared emailSubmission
	shared.category = store.Category(req.Category.Or(gen.EmailBatchSendCategoryTransactional))
	if err := a.from(ctx, &shared, string(req.From)); err != nil {
		return nil, err
	}
	said, err := a.scriptOf(ctx, parts{subject: req.Subject, html: req.HTML, text: req.Text, template: req.Template, render: true})
	if err != nil {
		return nil, err
	}
	values, err := variablesFromAPI("templateData", req.TemplateData.Value)
	if err != nil {
		return nil, err
	}
	all := make([]*emailSubmission, 0, len(req.Recipients))
	total := 0
	for i, r := range req.Recipients { // what is wrong is found before anything is made
		s := shared
		if err := s.address(placeOf("recipients", i, ""), r, said, values); err != nil {
			return nil, err
		}
		if total += len(s.html) + len(s.text); total > maxBatchBytes {
			return nil, errInvalid("recipients", "make texts of more than 16 MB together")
		}
		all = append(all, &s)
	}
	ns, err := a.newEmails(ctx, all...)
	if err != nil {
		return nil, err
	}
	b, err := a.store.EnqueueBatch(ctx, ns, once(ctx, http.StatusCreated, "EmailBatch", func(b store.Batch) (any, error) {
		return batchToAPI(b), nil
	}))
	if err != nil {
		return nil, err
	}
	return batchToAPI(b), nil
}

// address makes the email of a batch one to a recipient, which stands at place in
// the request and whose variables win over those that all share.
func (s *emailSubmission) address(place string, r gen.EmailBatchRecipient, said script, shared map[string]any) (err error) {
	if s.to, err = mailboxesFromAPI(place+"to", r.To); err != nil {
		return err
	}
	if err := s.label(place, r.Tags, r.Metadata); err != nil {
		return err
	}
	own, err := variablesFromAPI(place+"variables", r.Variables.Value)
	if err != nil {
		return err
	}
	values := make(map[string]any, len(shared)+len(own))
	maps.Copy(values, shared)
	maps.Copy(values, own)
	return said.fill(s, values, func(variable string) string {
		name, _, _ := strings.Cut(variable, ".")
		if _, isOwn := own[name]; isOwn {
			return place + "variables"
		}
		if _, isShared := shared[name]; isShared {
			return "templateData"
		}
		return place + "variables"
	})
}
