package maintenance

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/postroom/postroom/store"
)

// RetentionEvery is the usual time between two rounds of retention: mail is
// deleted at most so much later than promised, and the time that a round takes.
const RetentionEvery = 10 * time.Minute

// EmailRetention is how long the content of emails is usually kept.
const EmailRetention = store.DefaultEmailRetention

// RetentionConfig is what Retention needs.
type RetentionConfig struct {
	Store *store.Store
	// Emails is how long the content of emails, which belong to no inbox, is kept
	// after they were sent or failed; 0 means EmailRetention.
	Emails time.Duration
	// Every is the time between two rounds; 0 means RetentionEvery.
	Every time.Duration
	// Log takes what a round removed, and why one failed.
	Log *slog.Logger
}

// Retention deletes the content of messages that are older than their inbox
// keeps it, and of emails that are older than RetentionConfig.Emails, the rest of a message store.RecordTTL later, and everything under
// deleted inboxes. Drafts go as messages do. It asks the inbox each time: a
// changed retention_days holds for mail that is there already. What is still to
// be sent keeps its content until its delivery has ended.
type Retention struct{ cfg RetentionConfig }

// NewRetention returns a Retention that has yet to run.
func NewRetention(cfg RetentionConfig) *Retention {
	if cfg.Every == 0 {
		cfg.Every = RetentionEvery
	}
	if cfg.Emails == 0 {
		cfg.Emails = EmailRetention
	}
	return &Retention{cfg}
}

// Run does a round at once and then one every RetentionConfig.Every, until ctx
// ends. A round that fails does not end it.
func (r *Retention) Run(ctx context.Context) error {
	return runEvery(ctx, r.cfg.Store, r.cfg.Every, r.cfg.Log, "delete old mail", func(ctx context.Context) error {
		_, err := r.RunOnce(ctx)
		return err
	})
}

// RunOnce deletes all that is due and returns what it was. What fails in one
// inbox does not keep the others from it.
func (r *Retention) RunOnce(ctx context.Context) (store.Removed, error) {
	var gone store.Removed
	errs := []error{r.expireInboxes(ctx, &gone)}
	_, err := repeat(ctx, func(ctx context.Context) (int, error) {
		n, err := r.cfg.Store.ExpireEmails(ctx, r.cfg.Emails)
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
	drafts, err := repeat(ctx, r.cfg.Store.DeleteDrafts)
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
			_, err := repeat(ctx, func(ctx context.Context) (int, error) {
				n, err := r.cfg.Store.ExpireInbox(ctx, inbox)
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

// merge follows a step that deleted messages, and had err, with some steps of
// merging the full-text index. Deleting never gets far ahead of merging then,
// and no step of a merge has to pass over many deleted messages.
func (r *Retention) merge(ctx context.Context, err error) error {
	if err != nil {
		return err
	}
	_, err = r.cfg.Store.MergeIndexSome(ctx)
	return err
}
