// Package approval acts on what waits to be sent: it tells approvers about drafts by
// email, sends drafts and scheduled emails when they are due, and ends the wait of drafts.
package approval

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/work"
	"github.com/postroom/postroom/store"
)

const (
	// pollEvery is how often a worker looks for what is due, at least.
	pollEvery = time.Second
	// againEvery is how often it tries what could not be sent or rejected when it was due.
	againEvery = 20 * time.Second
	// batch is how many drafts are read at a time.
	batch = 100
)

// Config configures the work. All fields but Notices are required.
type Config struct {
	Store *store.Store
	// API reads drafts. It is called within this process.
	API http.Handler
	// Send sends a draft that is due as the caller of ctx.
	Send func(ctx context.Context, due store.Draft) error
	// Rules are those of scheduled emails.
	Rules store.DueRules
	// Notices are the emails to approvers; without approvers there are none.
	Notices Notices
	// Now is the clock.
	Now func() time.Time
	Log *slog.Logger
}

// Worker acts on what is due. Any number of nodes may run one: what it does to a draft
// depends on the version that it has read.
type Worker struct {
	cfg Config
	api *gen.Client

	last  store.Draft // that was due
	began time.Time   // when a round began with the first draft that is due
}

// New returns a Worker.
func New(cfg Config) (*Worker, error) {
	api, err := httpapi.NewLocalClient(cfg.API)
	return &Worker{cfg: cfg, api: api}, err
}

// Run works until ctx ends.
func (w *Worker) Run(ctx context.Context) error {
	var running sync.WaitGroup
	if len(w.cfg.Notices.Approvers) > 0 {
		running.Go(func() {
			work.Every(ctx, noticesEvery, func(ctx context.Context) {
				if _, err := w.Notify(ctx); err != nil && ctx.Err() == nil {
					w.cfg.Log.WarnContext(ctx, "approvers could not be notified of drafts", "error", err)
				}
			})
		})
	}
	work.Due(ctx, w.round, nil, nil)
	running.Wait()
	return nil
}

// round does what is due, and returns when to look again.
func (w *Worker) round(ctx context.Context) time.Duration {
	emails, err := w.cfg.Store.ReleaseScheduled(ctx, w.cfg.Rules)
	if err != nil && ctx.Err() == nil {
		w.cfg.Log.WarnContext(ctx, "scheduled mail cannot be queued", "error", err)
	} else if emails > 0 {
		w.cfg.Log.InfoContext(ctx, "scheduled mail queued", "emails", emails)
	}
	if now := w.cfg.Now(); now.Sub(w.began) >= againEvery || now.Before(w.began) {
		w.last, w.began = store.Draft{}, now
	}
	if _, err := w.decideFrom(ctx, &w.last); err != nil && ctx.Err() == nil {
		w.cfg.Log.WarnContext(ctx, "drafts that are due could not be sent or rejected", "error", err)
	}
	next, err := w.cfg.Store.NextOutgoing(ctx)
	switch {
	case emails > 0:
		return 0
	case err != nil || next == nil:
		return pollEvery
	}
	return max(time.Millisecond, min(pollEvery, next.Sub(w.cfg.Now())))
}

// Decide sends or rejects all drafts whose time has come, and returns how many it has
// decided. What fails by a fault stays for the next round.
func (w *Worker) Decide(ctx context.Context) (decided int, err error) {
	return w.decideFrom(ctx, &store.Draft{})
}

// decideFrom is Decide for those that are due after a draft, which it sets to the last one.
func (w *Worker) decideFrom(ctx context.Context, last *store.Draft) (decided int, err error) {
	var faults []error
	for {
		due, err := w.cfg.Store.DueDrafts(ctx, *last, batch)
		if err != nil || len(due) == 0 {
			return decided, errors.Join(append(faults, err)...)
		}
		for _, d := range due {
			*last = d
			err := w.decide(ctx, d)
			switch {
			case err == nil:
				decided++
				w.cfg.Log.InfoContext(ctx, "draft that was due decided", "draft_id", d.ID, "status", d.Status, "on_expiry", d.OnExpiry)
			case !errors.Is(err, errWaits) && !errors.Is(err, store.ErrState) && !errors.Is(err, store.ErrNotFound):
				faults = append(faults, fmt.Errorf("draft %s: %w", d.ID, err))
			}
		}
	}
}

// errWaits means that a draft waits: for room under a limit, or until sending resumes.
var errWaits = errors.New("the draft waits")

// errNoAccess means that who decided about a draft may no longer.
var errNoAccess = errors.New("who approved it no longer has access")

// decide sends or rejects a draft that is due. Its error is store.ErrState if the draft has
// been decided or edited meanwhile.
func (w *Worker) decide(ctx context.Context, d store.Draft) error {
	by := d.DecidedBy
	if d.Status == store.DraftPending {
		by = d.ExpiryBy
		if d.OnExpiry != store.ExpirySends || by == nil {
			return w.cfg.Store.ExpireDraft(ctx, d, "expired")
		}
	}
	k, err := w.decider(ctx, d.AccountID, *by)
	if err == nil {
		err = w.cfg.Send(httpapi.WithCaller(ctx, k), d)
	}
	refused, byRule := errors.AsType[*store.Refused](err)
	switch {
	case byRule && refused.Rule == store.RuleStop:
		return errWaits
	case byRule && refused.Waits() && d.Status == store.DraftScheduled:
		return errors.Join(errWaits, w.cfg.Store.DelayDraft(ctx, d, store.NewTime(refused.Retry)))
	case err == nil, !byRule && !isFinal(err):
		return err
	case d.Status == store.DraftScheduled && (d.ExpiredAt != nil || errors.Is(err, store.ErrDamaged)):
		return w.cfg.Store.ExpireDraft(ctx, d, err.Error())
	case d.Status == store.DraftScheduled:
		return w.cfg.Store.ReturnDraft(ctx, d, err.Error())
	case errors.Is(err, errNoAccess):
		return w.cfg.Store.ExpireDraft(ctx, d, "expired: who chose to send it no longer has access")
	}
	return w.cfg.Store.ExpireDraft(ctx, d, "expired, and not sent: "+err.Error())
}

// isFinal reports whether an error will be the same at the next try.
func isFinal(err error) bool {
	e, ok := errors.AsType[*httpapi.Error](err)
	return ok && e.Status < http.StatusInternalServerError || errors.Is(err, errNoAccess) || errors.Is(err, store.ErrDamaged)
}

// decider returns the person or key that decided about a draft, or errNoAccess.
func (w *Worker) decider(ctx context.Context, account int64, id string) (k store.Key, err error) {
	switch kind, email, _ := strings.Cut(id, ":"); {
	case kind == "approver":
		k = store.Key{AccountID: account, ID: id, Mode: store.KeyLive}
		if !slices.Contains(w.cfg.Notices.Approvers, email) {
			err = errNoAccess
		}
	case strings.HasPrefix(id, "usr_"):
		var u store.User
		if u, err = w.cfg.Store.User(ctx, account, id); err == nil && !u.Role.Includes(store.RoleApprover) {
			err = errNoAccess
		}
		k = store.Key{AccountID: account, ID: id, Mode: store.KeyLive}
	default:
		k, err = w.cfg.Store.Key(ctx, account, id)
		if err == nil && k.ExpiresAt != nil && !k.ExpiresAt.After(w.cfg.Now()) {
			err = errNoAccess
		}
	}
	if errors.Is(err, store.ErrNotFound) {
		err = errNoAccess
	}
	return k, err
}
