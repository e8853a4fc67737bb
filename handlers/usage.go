package handlers

import (
	"context"
	"net/http"
	"slices"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/store"
)

// statsDays is the default number of days.
const statsDays = 14

// GetUsage implements GET /v1/usage.
func (a *API) GetUsage(ctx context.Context) (*gen.Usage, error) {
	k := httpapi.Caller(ctx)
	u, err := a.store.Usage(ctx, k.AccountID)
	if err != nil {
		return nil, err
	}
	pending, err := a.store.PendingDrafts(ctx, k.AccountID, httpapi.Visible(k))
	if err != nil {
		return nil, err
	}
	stops, err := a.store.Stops(ctx, k.AccountID)
	if err != nil {
		return nil, err
	}
	return &gen.Usage{
		Object:          "usage",
		Plan:            u.Plan.Name,
		Inboxes:         gen.UsageCount{Used: int(u.Account.Inboxes), Limit: nilLimit(u.Plan.Inboxes)},
		SendsToday:      gen.UsagePeriod{Used: int(u.Today), Limit: nilLimit(u.Plan.Daily), ResetsAt: u.DayEnds},
		EmailsThisMonth: gen.UsagePeriod{Used: int(u.Month), Limit: nilLimit(u.Plan.Monthly), ResetsAt: u.MonthEnds},
		PendingDrafts:   pending,
		Stopped:         slices.Contains(stops, store.StopAccount),
		Sending: gen.SendingState{
			Paused: u.Account.PausedAt != nil, Reason: nilString(u.Account.PauseReason), PausedAt: nilTime(u.Account.PausedAt),
		},
	}, nil
}

func nilLimit(n int64) gen.NilInt {
	if n == 0 {
		return gen.NilInt{Null: true}
	}
	return gen.NewNilInt(int(n))
}

// GetStats implements GET /v1/stats.
func (a *API) GetStats(ctx context.Context, p gen.GetStatsParams) (*gen.Stats, error) {
	inboxes, err := a.countedInboxes(ctx, p.InboxID)
	if err != nil {
		return nil, err
	}
	days, err := a.store.Stats(ctx, httpapi.Caller(ctx).AccountID, inboxes, p.Days.Or(statsDays))
	if err != nil {
		return nil, err
	}
	out := &gen.Stats{Object: "stats", From: days[0].Date, To: days[len(days)-1].Date, Days: make([]gen.StatsDay, len(days))}
	var totals store.Counts
	for i, d := range days {
		c := countsToAPI(d.Counts)
		out.Days[i] = gen.StatsDay{
			Date: d.Date, Received: c.Received, Sent: c.Sent, Delivered: c.Delivered,
			Bounced: c.Bounced, Failed: c.Failed, Complained: c.Complained,
		}
		totals.Add(d.Counts)
	}
	out.Totals = countsToAPI(totals)
	return out, nil
}

// countedInboxes returns the inbox in the parameter, or nil for the whole
// account.
func (a *API) countedInboxes(ctx context.Context, id gen.OptString) ([]int64, error) {
	if id, ok := id.Get(); ok {
		in, err := a.filteredInbox(ctx, id)
		return []int64{in.Seq}, err
	}
	if httpapi.Visible(httpapi.Caller(ctx)) != nil {
		return nil, &httpapi.Error{
			Status: http.StatusForbidden, Code: gen.ErrorCodeInsufficientScope, Param: "inbox_id",
			Message: "a key with inbox_ids has no access to the counts of the account: set inbox_id to one of its inboxes",
		}
	}
	return nil, nil //nolint:nilnil // nil is all
}

func countsToAPI(c store.Counts) gen.StatsCounts {
	return gen.StatsCounts{
		Received: int(c.Received), Sent: int(c.Sent), Delivered: int(c.Delivered),
		Bounced: int(c.Bounced), Failed: int(c.Failed), Complained: int(c.Complained),
	}
}
