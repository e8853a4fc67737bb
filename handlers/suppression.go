package handlers

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/store"
)

var _ gen.SuppressionsHandler = (*API)(nil)

// CreateSuppression implements POST /v1/suppressions.
func (a *API) CreateSuppression(ctx context.Context, req *gen.SuppressionCreate, _ gen.CreateSuppressionParams) (*gen.Suppression, error) {
	email, by := string(req.Email), httpapi.Caller(ctx)
	if err := mail.ValidAddress(email); err != nil {
		return nil, httpapi.Invalid("email", "%s", err)
	}
	sup := store.Suppression{
		AccountID: by.AccountID, Source: &by.ID, Email: email, EmailFold: mail.CanonicalAddress(email), Reason: store.SuppressedManual,
		Category: store.SuppressionCategory(req.Category.Or(gen.SuppressionCreateCategoryAll)),
	}
	sup, err := a.store.Suppress(ctx, sup, once(ctx, http.StatusCreated, "Suppression", sure(suppressionToAPI)))
	return result(sup, err, sure(suppressionToAPI))
}

// ListSuppressions implements GET /v1/suppressions.
func (a *API) ListSuppressions(ctx context.Context, p gen.ListSuppressionsParams) (*gen.SuppressionList, error) {
	l, err := a.store.ListSuppressions(ctx, httpapi.Caller(ctx).AccountID, pageOf(p.Limit, p.Cursor))
	return listToAPI[gen.SuppressionList](l, err, sure(suppressionToAPI))
}

// DeleteSuppression implements DELETE /v1/suppressions/{email}.
func (a *API) DeleteSuppression(ctx context.Context, p gen.DeleteSuppressionParams) (*gen.DeletedSuppression, error) {
	sup, err := a.store.DeleteSuppression(ctx, httpapi.Caller(ctx).AccountID, mail.AddressSpellings(p.Email)...)
	if err != nil {
		return nil, err
	}
	a.log.InfoContext(ctx, "suppression removed", "suppression_id", sup.ID, "reason", sup.Reason,
		"by", httpapi.Caller(ctx).ID, "request_id", httpapi.RequestID(ctx))
	return &gen.DeletedSuppression{Object: "suppression", ID: sup.ID, Email: sup.Email, Deleted: true}, nil
}

// skipSuppressed marks the recipients of one account that are suppressed for
// the category, which is empty for messages of inboxes. It returns an error if
// every recipient of all the messages is suppressed.
func (a *API) skipSuppressed(ctx context.Context, category store.Category, messages ...*submission) error {
	spellings := map[string][]string{} // of each folded address
	var all []string
	for _, s := range messages {
		for _, to := range slices.Concat(s.to, s.cc, s.bcc) {
			if email := mail.FoldAddress(to.Email); spellings[email] == nil {
				spellings[email] = mail.AddressSpellings(email)
				all = append(all, spellings[email]...)
			}
		}
	}
	found, err := a.store.Suppressed(ctx, messages[0].account, all, category)
	if err != nil || len(found) == 0 {
		return err
	}
	listed := make(map[string]bool, len(found))
	for _, email := range found {
		listed[email] = true
	}
	suppressed := map[string]bool{}
	for email, all := range spellings {
		if slices.ContainsFunc(all, func(s string) bool { return listed[s] }) {
			suppressed[email] = true
		}
	}
	if len(suppressed) == len(spellings) {
		return errSuppressed(messages)
	}
	for _, s := range messages {
		s.suppressed = suppressed
	}
	return nil
}

// errSuppressed reports that every recipient is suppressed, names them, and
// says what to do. There must be at least one.
func errSuppressed(messages []*submission) error {
	e := &httpapi.Error{Status: http.StatusUnprocessableEntity, Code: gen.ErrorCodeRecipientSuppressed}
	seen := map[string]bool{}
	var names []string
	for _, s := range messages {
		for param, list := range s.recipients() {
			for _, to := range list {
				email := mail.FoldAddress(to.Email)
				if seen[email] {
					continue
				}
				seen[email] = true
				names = append(names, email)
				if len(e.Details) < httpapi.MaxFaults {
					e.Details = append(e.Details, gen.ErrorDetail{Param: param, Message: email + " is suppressed"})
				}
			}
		}
	}
	e.Param = e.Details[0].Param
	const shown = 3
	who := strings.Join(names[:min(len(names), shown)], ", ")
	if more := len(names) - shown; more > 0 {
		who += fmt.Sprintf(" and %d more", more)
	}
	e.Message = "every recipient is suppressed: " + who + ". To send to an address again, call DELETE /v1/suppressions/{email}"
	return e
}

func suppressionToAPI(sup store.Suppression) *gen.Suppression {
	return &gen.Suppression{
		Object: "suppression", ID: sup.ID, Email: sup.Email, Reason: string(sup.Reason), Category: string(sup.Category),
		Source:    nilString(sup.Source),
		CreatedAt: sup.CreatedAt.Time,
	}
}
