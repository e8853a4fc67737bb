package maintenance

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/postroom/postroom/store"
)

// RetentionEvery is the default interval between rounds of retention. Mail is
// deleted at most this much late, plus the duration of a round.
const RetentionEvery = 10 * time.Minute

// EmailRetention is the default retention of the content of emails.
const EmailRetention = store.DefaultEmailRetention

// RetentionConfig configures Retention.
type RetentionConfig struct {
	Store *store.Store
	// Emails is the retention of the content of emails, counted from when they
	// were sent or failed; 0 means EmailRetention. Emails do not belong to an
	// inbox.
	Emails time.Duration
	// Every is the interval between rounds; 0 means RetentionEvery.
	Every time.Duration
	// Log receives what a round removed, and errors.
	Log *slog.Logger
}

// Retention deletes the content of messages and drafts past the retention of
// their inbox, of emails past RetentionConfig.Emails, and everything in deleted
// inboxes. It deletes the remaining record of a message store.RecordTTL later.
// A changed retention_days also applies to existing mail. Mail that is still to
// be sent keeps its content until its delivery has ended.
type Retention struct{ cfg RetentionConfig }

// NewRetention returns a Retention. Call Run to start it.
func NewRetention(cfg RetentionConfig) *Retention {
	if cfg.Every == 0 {
		cfg.Every = RetentionEvery
	}
	if cfg.Emails == 0 {
		cfg.Emails = EmailRetention
	}
	return &Retention{cfg}
}

// Run runs a round at once and then every RetentionConfig.Every until ctx ends.
// It continues after a failed round.
func (r *Retention) Run(ctx context.Context) error {
	return runEvery(ctx, r.cfg.Store, r.cfg.Every, r.cfg.Log, "delete old mail", func(ctx context.Context) error {
		_, err := r.RunOnce(ctx)
		return err
	})
}

// RunOnce deletes everything that is due and returns what it removed. An error
// in one inbox does not stop the others.
func (r *Retention) RunOnce(ctx context.Context) (store.Removed, error) {
	var gone store.Removed
	errs := []error{r.expireInboxes(ctx, &gone)}
	var from store.Time
	_, err := repeat(ctx, func(ctx context.Context) (int, error) {
		n, err := r.cfg.Store.ExpireEmails(ctx, r.cfg.Emails, from)
		from = n.Last
		gone.Add(n)
		return n.Contents, r.merge(ctx, err)
	})
	errs = append(errs, err)
	_, err = repeat(ctx, func(ctx context.Context) (int, error) {
		n, err := r.cfg.Store.ExpireRecords(ctx)
		gone.Add(n)
		return n.Records, err
	})
	errs = append(errs, err)
	drafts, err := repeat(ctx, sweep(r.cfg.Store, "drafts"))
	gone.Drafts += drafts
	errs = append(errs, err, r.cfg.Store.Scrub(ctx))
	if !gone.Nothing() {
		r.cfg.Log.InfoContext(ctx, "deleted old mail",
			"contents", gone.Contents, "records", gone.Records, "blobs", gone.Blobs, "drafts", gone.Drafts)
	}
	return gone, errors.Join(errs...)
}

func (r *Retention) expireInboxes(ctx context.Context, gone *store.Removed) error {
	var errs []error
	for after := int64(0); ctx.Err() == nil; {
		due, next, err := r.cfg.Store.InboxesToExpire(ctx, after)
		if err != nil || next == 0 {
			return errors.Join(append(errs, err)...)
		}
		after = next
		for _, inbox := range due {
			var from store.Time
			_, err := repeat(ctx, func(ctx context.Context) (int, error) {
				n, err := r.cfg.Store.ExpireInbox(ctx, inbox, from)
				if n.Contents > 0 {
					from = n.Last
				}
				gone.Add(n)
				return n.Contents + n.Drafts, r.merge(ctx, err)
			})
			if err != nil {
				errs = append(errs, fmt.Errorf("inbox %d: %w", inbox, err))
			}
		}
	}
	return errors.Join(append(errs, ctx.Err())...)
}

// merge merges some of the full-text index after a step that deleted messages,
// unless the step failed with err. So merging keeps up with deletions, and no
// merge has to skip many deleted messages.
func (r *Retention) merge(ctx context.Context, err error) error {
	if err != nil {
		return err
	}
	_, err = r.cfg.Store.MergeIndexSome(ctx)
	return err
}
