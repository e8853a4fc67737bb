package web

import (
	"cmp"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/web/chart"
	"github.com/postroom/postroom/store"
)

func (d *Dashboard) stop(p *page) error {
	scope, back := p.stopScope()
	_, err := d.api.StopSending(p.ctx(), scope)
	return p.result(err, back, back, "Sending is stopped.")
}

func (d *Dashboard) resume(p *page) error {
	scope, back := p.stopScope()
	_, err := d.api.ResumeSending(p.ctx(), scope)
	return p.result(err, back, back, "Sending resumed.")
}

// stopScope returns what the form stops or resumes, and the page of that.
func (p *page) stopScope() (*gen.StopScope, string) {
	id := p.form.Get("scope")
	switch {
	case strings.HasPrefix(id, "ibx_"):
		return &gen.StopScope{InboxID: gen.NewOptNilString(id)}, "/inboxes/" + url.PathEscape(id) + "/settings"
	case strings.HasPrefix(id, "key_"):
		return &gen.StopScope{KeyID: gen.NewOptNilString(id)}, "/keys/" + url.PathEscape(id)
	}
	return &gen.StopScope{}, "/"
}

// control is whether an inbox or a key is stopped, and how much of its limits is used.
type control struct {
	Scope   string
	Stopped bool
	Uses    []store.BudgetUse
}

func (d *Dashboard) control(p *page, id string) (c control, err error) {
	stops, err := d.store.Stops(p.ctx(), p.user.AccountID)
	if err != nil {
		return c, err
	}
	uses, err := d.store.BudgetUses(p.ctx(), p.user.AccountID, 0)
	return control{id, slices.Contains(stops, id), slices.DeleteFunc(uses, func(u store.BudgetUse) bool { return u.Scope != id })}, err
}

// periods are the numbers of days that charts can show.
var periods = []int{7, 30, 90}

// usageTile shows how much of a limit is used.
type usageTile struct {
	Name, Value, Limit string // Limit is empty if there is none
	Percent            int
	Means              string // the definition of the number
	Tone               string // warn or bad near the limit
}

// overviewPage is the first page: the account's usage and daily statistics.
type overviewPage struct {
	Usage     *gen.Usage
	Tiles     []usageTile
	Counted   bool // there is something to draw
	Stats     []gen.StatsDay
	Totals    gen.StatsCounts
	Days      int
	Periods   []int
	Charts    []figure
	Groups    []groupTable
	Start     *started
	Attention []attention
	Latest    []gen.Message
	Unread    map[string]bool // of Latest, by ID
	Live      string
}

// figure is a chart with its legend.
type figure struct {
	Title string
	Keys  []figureKey
	chart.Chart
}

// figureKey explains a colour of a chart. N is its number, or -1 for the line of a
// limit.
type figureKey struct {
	N     int
	Value string
	Name  string
}

// meanings define the numbers of the page, each once.
var meanings = map[string]string{
	"Received":         "Messages that arrived by SMTP. Simulated messages do not count.",
	"Sent":             "Recipients whose outcome is known: delivered, bounced or failed.",
	"Delivered":        "Recipients whose mail server accepted the mail.",
	"Bounced":          "Recipients whose mail server refused the mail or returned it.",
	"Failed":           "Recipients that could not be reached until the retries ended.",
	"Complaints":       "Recipients who marked the mail as spam.",
	"Sends today":      "Recipients of all mail accepted for sending since 00:00 UTC, whatever became of it.",
	"Sends this month": "Recipients of all mail accepted for sending in this month, whatever became of it.",
	"Bounced, 30 days": "Bounced of all sent in 30 days. Sending can pause above the limit.", "Complaints, 30 days": "Complaints of all sent in 30 days. Sending can pause above the limit.",
}

// ended is how many recipients have an outcome: the sum of the counts of each.
func ended(counts ...any) (n int64) {
	for _, c := range counts {
		switch c := c.(type) {
		case int:
			n += int64(c)
		case int64:
			n += c
		}
	}
	return n
}

func sentOf(c gen.StatsCounts) int { return c.Delivered + c.Bounced + c.Failed }

// groupTable lists the busiest inboxes or tags.
type groupTable struct {
	Title, Hint string
	Received    bool // the groups receive mail
	Rows        []store.GroupCounts
}

const (
	// mostGroups is how many inboxes and tags the overview lists.
	mostGroups = 8
	// inboxDays bounds over how many days mail is counted by inbox: reading more takes
	// longer than a page should.
	inboxDays = 30
)

// groups returns the counts by inbox and tag, of those that have any.
func (d *Dashboard) groups(p *page, days int) ([]groupTable, error) {
	counted := min(days, inboxDays)
	inboxes, err := d.store.InboxCounts(p.ctx(), p.user.AccountID, counted, mostGroups)
	if err != nil {
		return nil, err
	}
	tags, err := d.store.TagCounts(p.ctx(), p.user.AccountID, days, mostGroups)
	if err != nil {
		return nil, err
	}
	var tables []groupTable
	if len(inboxes) > 0 {
		tables = append(tables, groupTable{"By inbox", fmt.Sprintf("The busiest of the newest 100 inboxes in the last %d days.", counted), true, inboxes})
	}
	if len(tags) > 0 {
		tables = append(tables, groupTable{"By tag", "The most used tags of the latest 1,000 emails.", false, tags})
	}
	return tables, nil
}

// totals sums the counts of days.
func totals(days []gen.StatsDay) (all gen.StatsCounts) {
	for _, d := range days {
		all.Received += d.Received
		all.Sent += d.Sent
		all.Delivered += d.Delivered
		all.Bounced += d.Bounced
		all.Failed += d.Failed
		all.Complained += d.Complained
	}
	return all
}

// chartsOf draws the last days of all: mail received and sent, and the rates of the
// 30 days before each day, by which sending is paused.
func chartsOf(all []gen.StatsDay, days int) []figure {
	shown := all[len(all)-days:]
	dates := make([]time.Time, days)
	for i, d := range shown {
		dates[i] = d.Date
	}
	series := func(name string, of func(gen.StatsDay) int) chart.Series {
		s := chart.Series{Name: name}
		for _, d := range shown {
			s.Values = append(s.Values, float64(of(d)))
		}
		return s
	}
	rate := func(name string, of func(gen.StatsCounts) (part, whole int)) (chart.Series, string) {
		s, last := chart.Series{Name: name}, "–"
		for i := len(all) - days; i < len(all); i++ {
			part, whole := of(totals(all[max(0, i+1-rateDays) : i+1]))
			v := math.NaN()
			if whole > 0 {
				v = percent(part, whole)
				last = fmt.Sprintf("%.1f %%", v)
			}
			s.Values = append(s.Values, v)
		}
		return s, last
	}
	t := totals(shown)
	delivered, deliveredNow := rate("delivered", func(c gen.StatsCounts) (int, int) { return c.Delivered, sentOf(c) })
	bounced, bouncedNow := rate("bounced", func(c gen.StatsCounts) (int, int) { return c.Bounced, sentOf(c) })
	complained, complainedNow := rate("complaints", func(c gen.StatsCounts) (int, int) { return c.Complained, sentOf(c) })
	return []figure{
		{"Received", []figureKey{{0, count(t.Received), "received"}}, chart.Bars(dates, series("received", func(d gen.StatsDay) int { return d.Received }))},
		{"Sent", []figureKey{{0, count(t.Delivered), "delivered"}, {1, count(t.Bounced + t.Failed), "bounced or failed"}, {2, count(t.Complained), "complaints"}}, chart.Bars(dates,
			series("delivered", func(d gen.StatsDay) int { return d.Delivered }),
			series("bounced or failed", func(d gen.StatsDay) int { return d.Bounced + d.Failed }),
			series("complaints", func(d gen.StatsDay) int { return d.Complained }))},
		{"Delivery rate, 30 days", []figureKey{{0, deliveredNow, "delivered"}}, chart.Rate(dates, delivered, 0)},
		{"Bounce rate, 30 days", []figureKey{{0, bouncedNow, "bounced"}, {-1, fmt.Sprintf("%g %%", mostBounced), "limit"}}, chart.Rate(dates, bounced, mostBounced)},
		{"Complaint rate, 30 days", []figureKey{{0, complainedNow, "complaints"}, {-1, fmt.Sprintf("%g %%", mostComplained), "limit"}}, chart.Rate(dates, complained, mostComplained)},
	}
}

// attention is something that a person should check. Bad marks what is broken.
type attention struct {
	Text, Path, Action, Icon string
	Bad                      bool
}

// Sending of an account is paused at these rates of the last 30 days, in percent,
// unless the operator turned that off.
const (
	mostBounced    = 5.0
	mostComplained = 0.3
	rateDays       = 30
)

// latestShown is how many messages the overview shows.
const latestShown = 5

// manyRecipients is from how many recipients the rates of bounces and complaints
// mean something.
const manyRecipients = 50

// manyQuarantined is up to how many messages in quarantine the overview counts.
const manyQuarantined = 100

// budgetNearEnd is how much of a limit is used, in percent, when the overview says
// so.
const budgetNearEnd = 80

// attention returns what a person should check, what is broken first.
func (d *Dashboard) attention(p *page, u *gen.Usage, month gen.StatsCounts) (all []attention, err error) {
	var hooks []store.Webhook
	if p.user.Role == store.RoleAdmin {
		if hooks, err = d.store.Webhooks(p.ctx(), p.user.AccountID); err != nil {
			return nil, err
		}
	}
	for _, w := range hooks {
		switch at := "/webhooks/" + w.ID; {
		case w.DisabledReason != nil:
			all = append(all, attention{"Webhook " + w.URL + " was turned off: " + *w.DisabledReason, at, "Open webhook", "zap", true})
		case w.Active && w.FailingSince != nil:
			all = append(all, attention{"Webhook " + w.URL + " has been failing for " + lasting(d.now().Sub(w.FailingSince.Time)), at, "Open webhook", "zap", true})
		}
	}
	for _, r := range []struct {
		n       int
		most    float64
		text    string
		to, see string
	}{
		{month.Bounced, mostBounced, "bounced", "/emails?status=bounced", "See bounces"},
		{month.Complained, mostComplained, "was reported as spam", "/emails?status=complained", "See complaints"},
	} {
		if rate := percent(r.n, sentOf(month)); sentOf(month) >= manyRecipients && rate >= r.most/2 {
			all = append(all, attention{fmt.Sprintf("%.2f %% of the mail of 30 days %s. Sending can pause above %g %%.", rate, r.text, r.most), r.to, r.see, "send", rate >= r.most})
		}
	}
	domains, err := d.api.ListDomains(p.ctx(), gen.ListDomainsParams{Limit: gen.NewOptInt(100)})
	if err != nil {
		return nil, err
	}
	for _, o := range domains.Data {
		if o.Status != string(gen.DomainStatusVerified) {
			all = append(all, attention{"Domain " + o.Domain + " is not verified", "/domains/" + o.ID, "See records", "globe", o.Status == string(gen.DomainStatusFailed)})
		}
	}
	if n := u.PendingDrafts; n > 0 {
		all = append(all, attention{plural(n, "draft waits for approval", "drafts wait for approval"), approvalsPath, "Review", "check", false})
	}
	held := 0
	if p.user.Role == store.RoleAdmin {
		if held, err = d.store.CountQuarantined(p.ctx(), p.user.AccountID, manyQuarantined); err != nil {
			return nil, err
		}
	}
	if held > 0 {
		text := plural(held, "message is in quarantine", "messages are in quarantine")
		if held == manyQuarantined {
			text += ", or more"
		}
		all = append(all, attention{text, "/quarantine", "Review", "shield", false})
	}
	budgets, err := d.store.BudgetUses(p.ctx(), p.user.AccountID, budgetNearEnd)
	if err != nil {
		return nil, err
	}
	for _, b := range budgets {
		all = append(all, budgetAttention(b))
	}
	order := map[bool]int{true: -1}
	slices.SortStableFunc(all, func(a, b attention) int { return order[a.Bad] - order[b.Bad] })
	return all, nil
}

// budgetAttention says that a limit is nearly used, or used.
func budgetAttention(b store.BudgetUse) attention {
	a := attention{Text: cmp.Or(b.Name, "Account") + ": " + usedText(b), Icon: "key", Path: "/emails", Action: "See sent mail"}
	switch {
	case strings.HasPrefix(b.Scope, "ibx_"):
		a.Path, a.Action, a.Icon = "/inboxes/"+b.Scope+"/settings", "Change limits", "inbox"
	case b.Scope != store.AccountScope:
		a.Path, a.Action = "/keys/"+b.Scope, "Change limits"
	}
	return a
}

// usedText says how much of a limit is used.
func usedText(b store.BudgetUse) string {
	i := slices.IndexFunc(limitFields, func(l limitField) bool { return l.Name == b.Limit })
	return fmt.Sprintf("%d of %d %s used", b.Used, b.Max, strings.ToLower(limitFields[i].Label))
}

func percent(part, whole int) float64 { return float64(part) * 100 / float64(max(1, whole)) }

// plural returns a number with the text for one or for several.
func plural(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, several)
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
	kept, err := d.api.GetStats(p.ctx(), gen.GetStatsParams{Days: gen.NewOptInt(store.MaxStatsDays)})
	if err != nil {
		return err
	}
	var start *started // only admins can take the first steps
	if _, err := p.r.Cookie(startCookie); err != nil && p.user.Role == store.RoleAdmin {
		if start, err = d.started(p); err != nil {
			return err
		}
	}
	shown, month := kept.Days[len(kept.Days)-days:], totals(kept.Days[len(kept.Days)-rateDays:])
	needed, err := d.attention(p, u, month)
	if err != nil {
		return err
	}
	latest, err := d.api.ListMessages(p.ctx(), gen.ListMessagesParams{Limit: gen.NewOptInt(latestShown)})
	if err != nil {
		return err
	}
	unread, err := p.unread(latest.Data)
	if err != nil {
		return err
	}
	groups, err := d.groups(p, days)
	if err != nil {
		return err
	}
	return p.show("overview", overviewPage{
		Start: start,
		Usage: u,
		Tiles: []usageTile{
			newTile("Inboxes", u.Inboxes.Used, u.Inboxes.Limit),
			newTile("Sends today", u.SendsToday.Used, u.SendsToday.Limit),
			newTile("Sends this month", u.EmailsThisMonth.Used, u.EmailsThisMonth.Limit),
			rateTile("Bounced, 30 days", percent(month.Bounced, sentOf(month)), mostBounced),
			rateTile("Complaints, 30 days", percent(month.Complained, sentOf(month)), mostComplained),
		},
		Counted: totals(kept.Days) != gen.StatsCounts{}, Stats: shown, Totals: totals(shown), Days: days, Periods: periods, Charts: chartsOf(kept.Days, days), Groups: groups,
		Attention: needed, Latest: latest.Data, Unread: unread,
		Live: livePath("", gen.EventTypeMessageReceived, gen.EventTypeMessageQuarantined, gen.EventTypeDraftPending, gen.EventTypeDraftSent, gen.EventTypeDraftRejected),
	})
}

func newTile(name string, used int, limit gen.NilInt) usageTile {
	if limit.Null || limit.Value <= 0 {
		return usageTile{Name: name, Value: count(used), Means: meanings[name]}
	}
	return limitedTile(name, count(used), count(limit.Value), used*100/limit.Value)
}

// rateTile shows a rate beside the one at which sending pauses.
func rateTile(name string, rate, most float64) usageTile {
	return limitedTile(name, fmt.Sprintf("%.1f %%", rate), fmt.Sprintf("%g %%", most), int(rate*100/most))
}

// limitedTile has a colour if its limit is reached, or nearly.
func limitedTile(name, value, limit string, percent int) usageTile {
	t := usageTile{Name: name, Value: value, Limit: limit, Percent: min(100, percent), Means: meanings[name]}
	switch {
	case percent >= 100:
		t.Tone = "bad"
	case percent >= budgetNearEnd:
		t.Tone = "warn"
	}
	return t
}
