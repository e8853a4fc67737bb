package inbound

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/net/publicsuffix"

	"github.com/postroom/postroom/internal/feedback"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/bounce"
	"github.com/postroom/postroom/smtp"
	"github.com/postroom/postroom/store"
)

// A report describes the delivery of a message that we sent: a bounce or success
// (RFC 3464), or a complaint (RFC 5965). Reports can be forged, so one is used
// only for the recipient that it identifies, and only with a proof:
//
//   - it arrives at the reverse-path of one recipient, or contains that
//     reverse-path: its author has handled the message;
//   - or it arrives at the sending inbox, names the Message-ID and the recipient,
//     the message had no other recipient, and its author speaks for that recipient.
//     The readers of a forwarded message know its Message-ID too.
//
// Sending of an account is paused only by complaints whose author speaks for the
// recipient, because each recipient could forge others. An author speaks for a
// recipient if DMARC passes and its domain is of the same organization, or if it is
// a feedback loop.

// feedbackLoops are the authors of the reports of well-known feedback loops and
// sending services. A domain includes those below it. Where everybody can have an
// address, it is one address.
var feedbackLoops = []string{
	"arf.mail.yahoo.com", // Yahoo and AOL
	"scomp@aol.net",
	"staff@hotmail.com", // Outlook.com
	"senderscore.net",   // Validity, for many providers
	"feedback.bluetie.com", "feedback.comcast.net", "fbl.apps.rackspace.com", "fbl.cox.net", "fbl.fastmail.com", "fbl.hostedemail.com",
	"fbl.synacor.com", "fbl.zoho.com", "feedback.terra.com", "fbl@corp.mail.ru",
	"amazonses.com", "mailgun.com", "mailgun.net", "postmarkapp.com", "sendgrid.com",
}

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
	// author is the domain of the From address if DMARC passes, else "". email is
	// that address, or "" if From has several.
	author, email string
}

// reported reads a message as a report. It returns the results and the inboxes
// for the message: a report to a reverse-path goes to the inbox that sent the
// reported message, unless it is full. A message without results and inboxes is refused.
func (r *Receiver) reported(ctx context.Context, env smtp.Envelope, to []target, raw *Spool, auth *authCheck, lim mail.Limits) (reportResults, []target, error) {
	var all reportResults
	if r.cfg.Feedback == nil || !asReport(env, to, raw) {
		return all, to, nil
	}
	rep, err := r.readReport(ctx, raw, env.MailFrom == "", auth, lim)
	if err != nil {
		return all, nil, err
	}
	if len(rep.Recipients) > 0 {
		all.author, all.email = auth.author(), mail.CanonicalAddress(rep.From)
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
		r.add(&all, rep, *t.sent)
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
// a time. Of a report it also starts the authentication.
func (r *Receiver) readReport(ctx context.Context, raw *Spool, nullPath bool, auth *authCheck, lim mail.Limits) (rep bounce.Report, err error) {
	leave, err := enter(ctx, r.reading)
	if err != nil {
		return bounce.Report{}, err
	}
	defer leave()
	whole, err := raw.Reader()
	if err != nil {
		return bounce.Report{}, err
	}
	lim.Budget.Run(func() {
		if rep, err = bounce.Read(whole, nullPath, lim); err == nil && len(rep.Recipients) > 0 {
			err = auth.read(whole, lim)
		}
	})
	return rep, errorIn("read the report", err)
}

// addFromInbox processes a report that arrived at an inbox. It concerns the
// message whose reverse-path it contains, or else a message of that inbox to a
// single recipient, if its author speaks for that recipient.
func (r *Receiver) addFromInbox(ctx context.Context, all *reportResults, rep bounce.Report, in store.Mailbox) error {
	if len(rep.Recipients) == 0 {
		return nil
	}
	if to, ok := r.cfg.Feedback.FindReturnPath(rep.ReturnPath); ok {
		sent, err := r.cfg.Store.SentTo(ctx, to.Account, to.Message, to.Recipient)
		if err == nil {
			r.add(all, rep, sent)
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
	named := slices.ContainsFunc(rep.Recipients, func(about bounce.Recipient) bool { return names(about, mine[0].Email) })
	if named && r.speaksFor(all, mine[0].Email) {
		r.add(all, rep, mine[0])
	}
	return nil
}

// speaksFor reports whether the author of a report speaks for a recipient.
func (r *Receiver) speaksFor(rep *reportResults, email string) bool {
	if rep.author == "" {
		return false
	}
	loop := func(of string) bool {
		if strings.Contains(of, "@") {
			return rep.email == of
		}
		return rep.author == of || strings.HasSuffix(rep.author, "."+of)
	}
	return organization(rep.author) == organizationOf(email) ||
		slices.ContainsFunc(feedbackLoops, loop) || slices.ContainsFunc(r.cfg.FeedbackLoops, loop)
}

// organizationOf returns the registrable domain of an address, or the domain if it
// has none.
func organizationOf(email string) string {
	_, _, domain := smtp.SplitAddress(email)
	return organization(domain)
}

func organization(domain string) string {
	if registered, err := publicsuffix.EffectiveTLDPlusOne(domain); err == nil {
		return registered
	}
	return domain
}

// names reports whether a report names an address.
func names(about bounce.Recipient, email string) bool {
	email = mail.CanonicalAddress(email)
	return about.Email != "" && mail.CanonicalAddress(about.Email) == email ||
		about.Original != "" && mail.CanonicalAddress(about.Original) == email
}

// add adds the report's result for a recipient.
func (r *Receiver) add(t *reportResults, rep bounce.Report, sent store.SentTo) {
	about, ok := of(rep, sent.Email)
	if !ok {
		return
	}
	res := store.Report{RecipientSeq: sent.RecipientSeq, MessageSeq: sent.MessageSeq, EmailFold: mail.CanonicalAddress(sent.Email)}
	switch about.Outcome {
	case bounce.Bounced:
		res.Status, res.Soft = store.RecipientBounced, !about.Hard
		res.Response, res.Code, res.Enhanced, res.Reason = about.Diagnostic, about.Code, about.Status, string(about.Reason)
		if about.Hard {
			res.Suppress, res.SuppressFor = store.SuppressedHardBounce, smtp.SuppressedMail(about.Status)
		}
	case bounce.Delivered:
		res.Status, res.Response = store.RecipientDelivered, about.Diagnostic
	case bounce.Complained:
		switch {
		case strings.HasPrefix(rep.FeedbackType, "opt-out"):
			t.optOuts = append(t.optOuts, sent)
			return
		case strings.HasPrefix(rep.FeedbackType, "auth"), rep.FeedbackType == "dmarc": // an authentication report, not a complaint
			return
		}
		res.Status, res.Response, res.Suppress = store.RecipientComplained, "Feedback: "+rep.FeedbackType, store.SuppressedComplaint
		if r.speaksFor(t, sent.Email) {
			res.ComplaintOf = organizationOf(sent.Email)
		}
	default: // delayed, or delivered
		return
	}
	t.reports = append(t.reports, &res)
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
