package web

import (
	"slices"
	"strconv"

	"github.com/postroom/postroom/gen"
)

func (d *Dashboard) overviewPages() {
	d.get("/{$}", d.overview)
	d.post("/stop", d.stop)
	d.post("/resume", d.resume)
}

func (d *Dashboard) stop(p *page) error {
	if _, err := d.api.StopSending(p.ctx(), &gen.StopScope{}); err != nil {
		return p.refused("/", err)
	}
	return p.done("/", "Sending is stopped.")
}

func (d *Dashboard) resume(p *page) error {
	if _, err := d.api.ResumeSending(p.ctx(), &gen.StopScope{}); err != nil {
		return p.refused("/", err)
	}
	return p.done("/", "Sending resumed.")
}

// periods are the numbers of days that charts can show.
var periods = []int{7, 30, 90}

// usageTile shows how much of a limit is used.
type usageTile struct {
	Name        string
	Used, Limit int // Limit 0: unlimited
	Percent     int
}

// overviewPage is the first page: the account's usage and daily statistics.
type overviewPage struct {
	Usage          *gen.Usage
	Tiles          []usageTile
	Stats          *gen.Stats
	Days           int
	Periods        []int
	Received, Sent chart
	Start          started
}

func (d *Dashboard) overview(p *page) error {
	days := 30
	if n, err := strconv.Atoi(p.r.URL.Query().Get("days")); err == nil && slices.Contains(periods, n) {
		days = n
	}
	u, err := d.api.GetUsage(p.ctx())
	if err != nil {
		return err
	}
	s, err := d.api.GetStats(p.ctx(), gen.GetStatsParams{Days: gen.NewOptInt(days)})
	if err != nil {
		return err
	}
	start, err := d.started(p)
	if err != nil {
		return err
	}
	return p.show("overview", overviewPage{
		Start: start,
		Usage: u,
		Tiles: []usageTile{
			newTile("Inboxes", u.Inboxes.Used, u.Inboxes.Limit),
			newTile("Sent today", u.SendsToday.Used, u.SendsToday.Limit),
			newTile("Sent this month", u.EmailsThisMonth.Used, u.EmailsThisMonth.Limit),
		},
		Stats: s, Days: days, Periods: periods,
		Received: newChart(s.Days, func(d gen.StatsDay) []int { return []int{d.Received} }),
		Sent:     newChart(s.Days, func(d gen.StatsDay) []int { return []int{d.Delivered, d.Bounced + d.Failed, d.Complained} }),
	})
}

func newTile(name string, used int, limit gen.NilInt) usageTile {
	t := usageTile{Name: name, Used: used}
	if !limit.Null && limit.Value > 0 {
		t.Limit, t.Percent = limit.Value, min(100, used*100/limit.Value)
	}
	return t
}
