package web

import "github.com/postroom/postroom/gen"

func (d *Dashboard) overviewPages() { d.get("/{$}", d.overview) }

// overview is the first page: how much the account uses.
func (d *Dashboard) overview(p *page) error {
	u, err := d.api.GetUsage(p.ctx())
	if err != nil {
		return err
	}
	return p.show("overview", struct{ Usage *gen.Usage }{u})
}
