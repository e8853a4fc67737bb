package web

import (
	"strings"

	"github.com/postroom/postroom/gen"
)

func (d *Dashboard) suppressionPages() {
	d.get("/suppressions", pageOf("suppressions", d.listSuppressions))
	d.post("/suppressions", d.addSuppression)
	d.post("/suppressions/remove", d.removeSuppression)
}

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
	form, err := p.form()
	if err != nil {
		return err
	}
	req := &gen.SuppressionCreate{Email: gen.EmailAddress(strings.TrimSpace(form.Get("email")))}
	if c := form.Get("category"); c != "" {
		req.Category = gen.NewOptSuppressionCreateCategory(gen.SuppressionCreateCategory(c))
	}
	_, err = d.api.CreateSuppression(p.ctx(), req, gen.CreateSuppressionParams{})
	if err != nil {
		return showFault(p, "suppressions", err, d.listSuppressions, func(v *suppressionList, pr problem) {
			v.Email, v.Category, v.Problem = string(req.Email), form.Get("category"), pr
		})
	}
	return p.done("/suppressions", string(req.Email)+" is suppressed.")
}

// removeSuppression takes the address from the form, because some addresses are
// hard to escape in a path.
func (d *Dashboard) removeSuppression(p *page) error {
	form, err := p.form()
	if err != nil {
		return err
	}
	email := form.Get("email")
	if _, err := d.api.DeleteSuppression(p.ctx(), gen.DeleteSuppressionParams{Email: email}); err != nil {
		return p.refused("/suppressions", err)
	}
	return p.done("/suppressions", email+" is no longer suppressed.")
}
