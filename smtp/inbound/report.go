package inbound

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/postroom/postroom/internal/feedback"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/bounce"
	"github.com/postroom/postroom/smtp"
	"github.com/postroom/postroom/store"
)

// A report describes the delivery of a message that we sent: a bounce or success
// (RFC 3464), or a complaint (RFC 5965). Reports can be forged, so one counts
// only if its author has handled the message, and only for the recipient that it
// identifies:
//
//   - it arrives at the reverse-path of one recipient, or contains that
//     reverse-path;
//   - or it arrives at the sending inbox, names the Message-ID and the recipient,
//     and the message had no other recipient. With several, each of them would
//     know the Message-ID and the others.

// returnTarget returns the recipient that a reverse-path identifies. ok is false
// if rcpt is not a reverse-path. Forged addresses are refused without a database
// query.
func (r *Receiver) returnTarget(ctx context.Context, rcpt string) (t target, ok bool, err error) {
	local, tag, _ := smtp.SplitAddress(rcpt)
	if r.cfg.Feedback == nil || local != feedback.ReturnName || tag == nil {
		return target{}, false, nil
	}
	to, isToken, valid := r.cfg.Feedback.ReadReturnTag(*tag)
	switch {
	case !isToken:
		return target{}, false, nil
	case !valid:
		return target{}, true, replyNoInbox
	}
	sent, err := r.cfg.Store.SentTo(ctx, to.Account, to.Message, to.Recipient)
	if errors.Is(err, store.ErrNotFound) { // the message is deleted
		return target{}, true, replyNoInbox
	}
	return target{rcpt: rcpt, sent: &sent}, true, err
}

// reportResults are the results of a report.
type reportResults struct {
	reports []*store.Report
	optOuts []store.SentTo
}

// reported reads a message as a report. It returns the results and the inboxes
// for the message: a report to a reverse-path goes to the inbox that sent the
// reported message, unless it is full. A message without results and inboxes is refused.
func (r *Receiver) reported(ctx context.Context, env smtp.Envelope, to []target, raw *Spool, lim mail.Limits) (reportResults, []target, error) {
	var all reportResults
	if r.cfg.Feedback == nil || !asReport(env, to, raw) {
		return all, to, nil
	}
	rep, err := r.readReport(ctx, raw, env.MailFrom == "", lim)
	if err != nil {
		return all, nil, err
	}
	var inboxes []target
	for _, t := range to {
		if t.sent == nil {
			if err := r.addFromInbox(ctx, &all, rep, t.inbox); err != nil {
				return all, nil, err
			}
			inboxes = addTarget(inboxes, t)
			continue
		}
		all.add(rep, *t.sent)
		if in := t.sent.Inbox; in != nil && in.Takes(store.NewTime(r.cfg.Now())) && !r.cfg.Store.Full(*in) {
			inboxes = addTarget(inboxes, target{rcpt: t.rcpt, inbox: *in, sent: t.sent})
		}
	}
	if len(inboxes) == 0 && len(rep.Recipients) == 0 {
		return all, nil, replyNoReport
	}
	return all, inboxes, nil
}

// asReport reports whether a message should be read as a report: it was sent to a
// reverse-path, has a null reverse-path, or has the content type of a report.
func asReport(env smtp.Envelope, to []target, raw *Spool) bool {
	if env.MailFrom == "" {
		return true
	}
	for _, t := range to {
		if t.sent != nil {
			return true
		}
	}
	head, ok := raw.Bytes()
	return ok && bytes.Contains(bytes.ToLower(head[:min(len(head), 16<<10)]), []byte("multipart/report"))
}

// readReport parses a report. Like all parsing it is limited to a few messages at
// a time.
func (r *Receiver) readReport(ctx context.Context, raw *Spool, nullPath bool, lim mail.Limits) (rep bounce.Report, err error) {
	leave, err := enter(ctx, r.reading)
	if err != nil {
		return bounce.Report{}, err
	}
	defer leave()
	whole, err := raw.Reader()
	if err != nil {
		return bounce.Report{}, err
	}
	lim.Budget.Run(func() { rep, err = bounce.Read(whole, nullPath, lim) })
	return rep, errorIn("read the report", err)
}

// addFromInbox processes a report that arrived at an inbox. It concerns the
// message whose reverse-path it contains, or else a message of that inbox to a
// single recipient.
func (r *Receiver) addFromInbox(ctx context.Context, all *reportResults, rep bounce.Report, in store.Mailbox) error {
	if len(rep.Recipients) == 0 {
		return nil
	}
	if to, ok := r.cfg.Feedback.FindReturnPath(rep.ReturnPath); ok {
		sent, err := r.cfg.Store.SentTo(ctx, to.Account, to.Message, to.Recipient)
		if err == nil {
			all.add(rep, sent)
		}
		if !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	if rep.OriginalID == "" {
		return nil
	}
	mine, err := r.cfg.Store.SentByHeader(ctx, in, rep.OriginalID)
	if err != nil {
		return fmt.Errorf("look for the reported mail: %w", err)
	}
	if len(mine) != 1 {
		return nil
	}
	if slices.ContainsFunc(rep.Recipients, func(about bounce.Recipient) bool { return names(about, mine[0].Email) }) {
		all.add(rep, mine[0])
	}
	return nil
}

// names reports whether a report names an address.
func names(about bounce.Recipient, email string) bool {
	email = mail.CanonicalAddress(email)
	return about.Email != "" && mail.CanonicalAddress(about.Email) == email ||
		about.Original != "" && mail.CanonicalAddress(about.Original) == email
}

// add adds the report's result for a recipient.
func (t *reportResults) add(rep bounce.Report, sent store.SentTo) {
	about, ok := of(rep, sent.Email)
	if !ok {
		return
	}
	r := store.Report{RecipientSeq: sent.RecipientSeq, MessageSeq: sent.MessageSeq, EmailFold: mail.CanonicalAddress(sent.Email)}
	switch about.Outcome {
	case bounce.Bounced:
		r.Status, r.Soft = store.RecipientBounced, !about.Hard
		r.Response, r.Code, r.Enhanced, r.Reason = about.Diagnostic, about.Code, about.Status, string(about.Reason)
		if about.Hard {
			r.Suppress, r.SuppressFor = store.SuppressedHardBounce, smtp.SuppressedMail(about.Status)
		}
	case bounce.Delivered:
		r.Status, r.Response = store.RecipientDelivered, about.Diagnostic
	case bounce.Complained:
		switch {
		case strings.HasPrefix(rep.FeedbackType, "opt-out"):
			t.optOuts = append(t.optOuts, sent)
			return
		case strings.HasPrefix(rep.FeedbackType, "auth"), rep.FeedbackType == "dmarc": // an authentication report, not a complaint
			return
		}
		r.Status, r.Response, r.Suppress = store.RecipientComplained, "Feedback: "+rep.FeedbackType, store.SuppressedComplaint
	default: // delayed, or delivered
		return
	}
	t.reports = append(t.reports, &r)
}

// of returns the report's entry for the known recipient. If no entry has the
// address, the mail was forwarded: of returns the common result of all entries,
// and false if they differ.
func of(rep bounce.Report, email string) (bounce.Recipient, bool) {
	if len(rep.Recipients) == 0 {
		return bounce.Recipient{}, false
	}
	for _, about := range rep.Recipients {
		if names(about, email) {
			return about, true
		}
		if about.Outcome != rep.Recipients[0].Outcome {
			return bounce.Recipient{}, false
		}
	}
	return rep.Recipients[0], true
}

// keep stores the results of a message that is not delivered to an inbox, and
// unsubscribes recipients who asked for it.
func (r *Receiver) keep(ctx context.Context, all reportResults, stored bool) error {
	if !stored {
		for _, report := range all.reports {
			if err := r.cfg.Store.RecordReport(ctx, *report); err != nil {
				return err
			}
		}
	}
	for _, sent := range all.optOuts {
		if err := r.cfg.Store.Unsubscribe(ctx, sent.AccountID, sent.MessageSeq, sent.Email, mail.CanonicalAddress(sent.Email)); err != nil {
			return err
		}
	}
	return nil
}

func errorIn(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
