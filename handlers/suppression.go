package handlers

import (
	"context"
	"net/http"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/store"
)

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
	sup, err := a.store.Suppress(ctx, sup, once(ctx, http.StatusCreated, "Suppression", suppressionToAPI))
	return result(sup, err, suppressionToAPI)
}

// ListSuppressions implements GET /v1/suppressions.
func (a *API) ListSuppressions(ctx context.Context, p gen.ListSuppressionsParams) (*gen.SuppressionList, error) {
	var spellings []string
	if email, ok := p.Email.Get(); ok {
		spellings = mail.AddressSpellings(email)
	}
	l, err := a.store.ListSuppressions(ctx, httpapi.Caller(ctx).AccountID, spellings, pageOf(p.Limit, p.Cursor))
	return listToAPI[gen.SuppressionList](l, err, suppressionToAPI)
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

func suppressionToAPI(sup store.Suppression) *gen.Suppression {
	return &gen.Suppression{
		Object: "suppression", ID: sup.ID, Email: sup.Email, Reason: string(sup.Reason), Category: string(sup.Category),
		Source:    nilString(sup.Source),
		CreatedAt: sup.CreatedAt.Time,
	}
}
