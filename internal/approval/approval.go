// Package approval acts on drafts that wait for approval: it tells approvers about
// them by email, and ends the wait of those whose time has come.
package approval

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/work"
	"github.com/postroom/postroom/store"
)

const (
	// every is the interval of rounds.
	every = 20 * time.Second
	// batch is how many drafts are read at a time.
	batch = 100
)

// Config configures the work on drafts. All fields but Notices are required.
type Config struct {
	Store *store.Store
	// API sends drafts. It is called within this process.
	API http.Handler
	// Notices are the emails to approvers; without approvers there are none.
	Notices Notices
	// Now is the clock.
	Now func() time.Time
	Log *slog.Logger
}

// Worker acts on drafts. Any number of nodes may run one: what it does to a draft
// depends on the version that it has read.
type Worker struct {
	cfg Config
	api *gen.Client
}

// New returns a Worker.
func New(cfg Config) (*Worker, error) {
	api, err := httpapi.NewLocalClient(cfg.API)
	return &Worker{cfg, api}, err
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
	work.Every(ctx, every, func(ctx context.Context) {
		if _, err := w.Expire(ctx); err != nil && ctx.Err() == nil {
			w.cfg.Log.WarnContext(ctx, "drafts could not expire", "error", err)
		}
	})
	running.Wait()
	return nil
}

// Expire sends or rejects all drafts whose time has come, and returns how many it has
// decided. What fails by a fault stays for the next round.
func (w *Worker) Expire(ctx context.Context) (decided int, err error) {
	var last store.Draft
	var faults []error
	for {
		due, err := w.cfg.Store.DueDrafts(ctx, last, batch)
		if err != nil || len(due) == 0 {
			return decided, errors.Join(append(faults, err)...)
		}
		for _, d := range due {
			err := w.expire(ctx, d)
			switch {
			case err == nil:
				decided++
				w.cfg.Log.InfoContext(ctx, "draft expired", "draft_id", d.ID, "on_expiry", d.OnExpiry)
			case errors.Is(err, errStopped): // waits until sending resumes
			case !errors.Is(err, store.ErrState) && !errors.Is(err, store.ErrNotFound):
				faults = append(faults, fmt.Errorf("draft %s: %w", d.ID, err))
			}
		}
		last = due[len(due)-1]
	}
}

// errStopped means that a person stopped sending.
var errStopped = errors.New("sending is stopped")

// expire sends or rejects a draft. Its error is store.ErrState if the draft has been
// decided or edited meanwhile, and errStopped if it is to be sent when sending resumes.
func (w *Worker) expire(ctx context.Context, d store.Draft) error {
	if d.OnExpiry != store.ExpirySends || d.ExpiryBy == nil {
		return w.cfg.Store.ExpireDraft(ctx, d, "expired")
	}
	as, err := w.decider(ctx, d)
	if errors.Is(err, store.ErrNotFound) {
		return w.cfg.Store.ExpireDraft(ctx, d, "expired: who chose to send it no longer has access")
	}
	if err != nil {
		return err
	}
	_, err = w.api.SendDraft(as, gen.NewOptDraftSend(gen.DraftSend{Version: gen.NewOptInt(d.Version)}), gen.SendDraftParams{DraftID: d.ID})
	refused, ok := errors.AsType[*gen.ErrorStatusCodeWithHeaders](err)
	if !ok {
		return err
	}
	e := refused.Response.Error
	switch {
	case refused.StatusCode >= http.StatusInternalServerError, e.Code == string(gen.ErrorCodeRateLimited):
		return err
	case e.Code == string(gen.ErrorCodeSendingStopped):
		return fmt.Errorf("draft %s: %w", d.ID, errStopped)
	case e.Code == string(gen.ErrorCodeDraftChanged), e.Code == string(gen.ErrorCodeDraftNotPending):
		return fmt.Errorf("draft %s: %w", d.ID, store.ErrState)
	}
	return w.cfg.Store.ExpireDraft(ctx, d, "expired, and not sent: "+e.Message)
}

// decider returns the context of a call as the person or key that chose to send the
// draft. It returns store.ErrNotFound if it no longer may.
func (w *Worker) decider(ctx context.Context, d store.Draft) (context.Context, error) {
	if strings.HasPrefix(*d.ExpiryBy, "usr_") {
		u, err := w.cfg.Store.User(ctx, d.AccountID, *d.ExpiryBy)
		return httpapi.AsPerson(ctx, httpapi.Person{Seq: u.Seq, AccountID: u.AccountID, ID: u.ID, Role: u.Role}), err
	}
	k, err := w.cfg.Store.Key(ctx, d.AccountID, *d.ExpiryBy)
	if err == nil && k.ExpiresAt != nil && !k.ExpiresAt.After(w.cfg.Now()) {
		err = fmt.Errorf("key %s has expired: %w", k.ID, store.ErrNotFound)
	}
	return httpapi.AsKey(ctx, k), err
}
