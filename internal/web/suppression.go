package web

import "github.com/postroom/postroom/gen"

func (d *Dashboard) listSuppressions(p *page) error {
	l, err := d.api.ListSuppressions(p.ctx(), gen.ListSuppressionsParams{Limit: limit(), Cursor: p.cursor()})
	if err != nil {
		return err
	}
	return p.show("suppressions", list[gen.Suppression]{l.Data, p.paging(l.Cursor), p.formOf(nil)})
}

func (d *Dashboard) addSuppression(p *page) error {
	req := &gen.SuppressionCreate{Email: gen.EmailAddress(p.field("email"))}
	if category := p.form.Get("category"); category != "" {
		req.Category = gen.NewOptSuppressionCreateCategory(gen.SuppressionCreateCategory(category))
	}
	if _, err := d.api.CreateSuppression(p.ctx(), req, gen.CreateSuppressionParams{}); err != nil {
		return p.again(err, d.listSuppressions)
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
