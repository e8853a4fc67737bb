package inbound

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/bounce"
	"github.com/postroom/postroom/internal/mailauth"
	"github.com/postroom/postroom/internal/spool"
	"github.com/postroom/postroom/smtp"
	"github.com/postroom/postroom/smtp/report"
	"github.com/postroom/postroom/store"
)

// reported reads a message as a report. It returns the results and the inboxes
// for the message: a report to a reverse-path goes to the inbox that sent the
// reported message, unless it is full. A message without results and inboxes is refused.
func (r *Receiver) reported(ctx context.Context, env smtp.Envelope, to []target, raw *spool.Spool, auth *mailauth.Check, lim mail.Limits) (report.Results, []target, error) {
	var all report.Results
	if r.cfg.Feedback == nil || !asReport(env, to, raw) {
		return all, to, nil
	}
	var rep bounce.Report
	err := r.withRaw(ctx, raw, lim, func(whole io.ReadSeeker) (err error) {
		rep, err = bounce.Read(whole, env.MailFrom == "", lim)
		return err
	})
	if err != nil {
		return all, nil, err
	}
	if len(rep.Recipients) > 0 {
		all.From = mail.CanonicalAddress(rep.From)
		if v := auth.Wait(); v.DMARC.Result == mailauth.Pass {
			all.Author = v.DMARC.Domain
		}
	}
	var inboxes []target
	for _, t := range to {
		if t.sent == nil {
			if err := r.reports.AddFromInbox(ctx, &all, rep, t.inbox); err != nil {
				return all, nil, err
			}
			inboxes = addTarget(inboxes, t)
			continue
		}
		r.reports.Add(&all, rep, *t.sent)
		if in := t.sent.Inbox; in.Takes(store.NewTime(r.cfg.Now())) && !r.cfg.Store.Full(in) {
			inboxes = addTarget(inboxes, target{rcpt: t.rcpt, inbox: in, sent: t.sent})
		}
	}
	if len(inboxes) == 0 && len(rep.Recipients) == 0 {
		return all, nil, replyNoReport
	}
	return all, inboxes, nil
}

// asReport reports whether a message should be read as a report: it was sent to a
// reverse-path, has a null reverse-path, or has the content type of a report.
func asReport(env smtp.Envelope, to []target, raw *spool.Spool) bool {
	if env.MailFrom == "" || slices.ContainsFunc(to, func(t target) bool { return t.sent != nil }) {
		return true
	}
	head, ok := raw.Bytes()
	return ok && bytes.Contains(bytes.ToLower(head[:min(len(head), 16<<10)]), []byte("multipart/report"))
}

// returnTarget returns the target for a reverse-path. ok is false if rcpt is not one.
func (r *Receiver) returnTarget(ctx context.Context, rcpt string) (t target, ok bool, err error) {
	sent, ok, err := r.reports.SentTo(ctx, rcpt)
	if errors.Is(err, store.ErrNotFound) {
		err = replyNoInbox
	} else if err != nil {
		err = fmt.Errorf("resolve reverse-path: %w", err)
	}
	return target{rcpt: rcpt, sent: &sent}, ok, err
}
