package web

import "github.com/postroom/postroom/gen"

// suppressionList is the page of suppressed addresses.
type suppressionList struct {
	Suppressions []gen.Suppression
	paging
	Email, Category string // as submitted
	Problem         problem
}

func (d *Dashboard) listSuppressions(p *page) (suppressionList, error) {
	l, err := d.api.ListSuppressions(p.ctx(), gen.ListSuppressionsParams{Limit: limit(), Cursor: p.cursor()})
	if err != nil {
		return suppressionList{}, err
	}
	return suppressionList{Suppressions: l.Data, paging: p.paging(l.Cursor)}, nil
}

func (d *Dashboard) addSuppression(p *page) error {
	req := &gen.SuppressionCreate{Email: gen.EmailAddress(p.field("email"))}
	category := p.form.Get("category")
	if category != "" {
		req.Category = gen.NewOptSuppressionCreateCategory(gen.SuppressionCreateCategory(category))
	}
	if _, err := d.api.CreateSuppression(p.ctx(), req, gen.CreateSuppressionParams{}); err != nil {
		return showFault(p, "suppressions", err, d.listSuppressions, func(v *suppressionList, pr problem) {
			v.Email, v.Category, v.Problem = string(req.Email), category, pr
		})
	}
	return p.done("/suppressions", string(req.Email)+" is suppressed.")
}

// removeSuppression takes the address from the form, because some addresses are
// hard to escape in a path.
func (d *Dashboard) removeSuppression(p *page) error {
	email := p.form.Get("email")
	_, err := d.api.DeleteSuppression(p.ctx(), gen.DeleteSuppressionParams{Email: email})
	return p.result(err, "/suppressions", "/suppressions", email+" is no longer suppressed.")
}
