package web

import "github.com/postroom/postroom/gen"

func (d *Dashboard) templatePages() {
	d.get("/templates", d.listTemplates)
	d.get("/templates/{id}", d.showTemplate)
}

func (d *Dashboard) listTemplates(p *page) error {
	l, err := d.api.ListTemplates(p.ctx(), gen.ListTemplatesParams{Limit: limit(), Cursor: p.cursor()})
	if err != nil {
		return err
	}
	return p.show("templates", struct {
		Templates []gen.Template
		paging
	}{l.Data, p.paging(l.Cursor)})
}

func (d *Dashboard) showTemplate(p *page) error {
	t, err := d.api.GetTemplate(p.ctx(), gen.GetTemplateParams{ID: p.r.PathValue("id")})
	if err != nil {
		return err
	}
	return p.show("template", t)
}
