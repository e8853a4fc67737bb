package handlers

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/sync/semaphore"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/store"
)

// SendEmailBatch implements POST /v1/emails/batch.
func (a *API) SendEmailBatch(ctx context.Context, req *gen.EmailBatchSend, _ gen.SendEmailBatchParams) (*gen.EmailBatch, error) {
	room := batchRoom{of: a.batches}
	defer room.leave()
	all, err := a.batchFromAPI(ctx, req, &room)
	if err != nil {
		return nil, err
	}
	ns, err := a.newEmails(ctx, all...)
	if err != nil {
		return nil, err
	}
	once := httpapi.Once(ctx, http.StatusCreated, "EmailBatch", func(b store.Batch) (any, error) { return a.batchToAPI(ctx, b), nil })
	b, err := a.store.EnqueueBatch(ctx, ns, once)
	if err != nil {
		return nil, refusedInBatch(err)
	}
	return a.batchToAPI(ctx, b), nil
}

// refusedInBatch names the recipient of the batch that a rule refuses.
func refusedInBatch(err error) error {
	refused, ok := errors.AsType[*store.Refused](err)
	switch {
	case !ok:
		return err
	case refused.Rule == store.RuleSuppression: // it is about all
		at := *refused
		at.Param = "recipients"
		return &at
	case refused.Rule == store.RuleList || refused.Rule == store.RuleReplyOnly:
		return refused.In(fieldPath("recipients", refused.Email, ""))
	}
	return err
}

// batchFromAPI reads and checks a request before anything is stored.
func (a *API) batchFromAPI(ctx context.Context, req *gen.EmailBatchSend, room *batchRoom) ([]*submission, error) {
	var shared submission
	shared.category = store.Category(req.Category.Or(gen.EmailBatchSendCategoryTransactional))
	if err := a.from(ctx, &shared, req.From); err != nil {
		return nil, err
	}
	if err := shared.extend(req.ReplyTo, req.Headers, req.Attachments); err != nil {
		return nil, err
	}
	if err := checkAttachments(slices.Repeat(shared.attachments, len(req.Recipients))); err != nil {
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
	all := make([]*submission, 0, len(req.Recipients))
	for i, r := range req.Recipients {
		s := shared
		if err := s.address(fieldPath("recipients", i, ""), r, said, values); err != nil {
			return nil, err
		}
		if err := room.take(ctx, len(s.html)+len(s.text)); err != nil {
			return nil, err
		}
		all = append(all, &s)
	}
	return all, nil
}

// batchRoom counts the memory for the texts of a batch.
type batchRoom struct {
	of    *semaphore.Weighted // limits concurrent large batches
	bytes int
	large bool
}

// take reserves n more bytes. A batch that becomes large waits while too many
// other large batches run.
func (r *batchRoom) take(ctx context.Context, n int) error {
	if r.bytes += n; r.bytes > maxBatchBytes {
		return httpapi.Invalid("recipients", "result in more than 16 MB of text")
	}
	if r.bytes <= smallBatch || r.large {
		return nil
	}
	err := r.of.Acquire(ctx, 1)
	r.large = err == nil
	return err
}

func (r *batchRoom) leave() {
	if r.large {
		r.of.Release(1)
	}
}

// address prepares the email of a batch for one recipient. place is the prefix
// of its fields in the request. Its variables override the shared ones.
func (s *submission) address(place string, r gen.EmailBatchRecipient, said script, shared map[string]any) (err error) {
	if s.to, err = addressesFromAPI(place+"to", r.To); err != nil {
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
