// Package report decides what reports on sent mail change. A report describes the
// delivery of a message that we sent: a bounce or success (RFC 3464), or a complaint (RFC
// 5965). Reports can be forged, so one is used only for the recipient that it identifies,
// and only with a proof:
//
//   - it arrives at the reverse-path of one recipient, or contains that reverse-path: its
//     author has handled the message;
//   - or it arrives at the sending inbox, names the Message-ID and the recipient, the
//     message had no other recipient, and its author speaks for that recipient. The
//     readers of a forwarded message know its Message-ID too.
//
// Sending of an account is paused only by complaints whose author speaks for the
// recipient, because each recipient could forge others. An author speaks for a recipient
// if DMARC passes and its domain is of the same organization, or if it is a feedback loop.
package report

import (
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

// Matcher finds which sent messages a report is about. A Matcher without a signer knows no
// reports.
type Matcher struct {
	Store    *store.Store
	Feedback *feedback.Signer
	// Loops are domains and addresses that count like the well-known feedback loops.
	Loops []string
}

// SentTo returns the recipient that a reverse-path identifies. ok is false if the address
// is not a reverse-path. The error is store.ErrNotFound if the reverse-path is forged,
// which takes no query, or if the message is deleted.
func (j *Matcher) SentTo(ctx context.Context, rcpt string) (sent store.SentTo, ok bool, err error) {
	local, tag, _ := smtp.SplitAddress(rcpt)
	if j.Feedback == nil || local != feedback.ReturnName || tag == nil {
		return store.SentTo{}, false, nil
	}
	to, isToken, valid := j.Feedback.ReadReturnTag(*tag)
	switch {
	case !isToken:
		return store.SentTo{}, false, nil
	case !valid:
		return store.SentTo{}, true, fmt.Errorf("reverse-path %s: %w", rcpt, store.ErrNotFound)
	}
	sent, err = j.Store.SentTo(ctx, to.Account, to.Message, to.Recipient)
	return sent, true, err
}

// Results are what a report changes.
type Results struct {
	// Reports are the new states of recipients.
	Reports []*store.Report
	// Author is the domain of the From address if DMARC passes, else "". From is that
	// address, or "" if there are several.
	Author, From string

	optOuts []store.SentTo
}

// Empty reports whether the report changes nothing.
func (r Results) Empty() bool { return len(r.Reports)+len(r.optOuts) == 0 }

// AddFromInbox processes a report that arrived at an inbox. It concerns the
// message whose reverse-path it contains, or else a message of that inbox to a
// single recipient, if its author speaks for that recipient.
func (j *Matcher) AddFromInbox(ctx context.Context, all *Results, rep bounce.Report, in store.Mailbox) error {
	if len(rep.Recipients) == 0 {
		return nil
	}
	if to, ok := j.Feedback.FindReturnPath(rep.ReturnPath); ok {
		sent, err := j.Store.SentTo(ctx, to.Account, to.Message, to.Recipient)
		if err == nil {
			j.Add(all, rep, sent)
		}
		if !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	if rep.OriginalID == "" {
		return nil
	}
	mine, err := j.Store.SentByHeader(ctx, in, rep.OriginalID)
	if err != nil {
		return fmt.Errorf("look for the reported mail: %w", err)
	}
	if len(mine) != 1 {
		return nil
	}
	named := slices.ContainsFunc(rep.Recipients, func(about bounce.Recipient) bool { return names(about, mine[0].Email) })
	if named && j.speaksFor(all, mine[0].Email) {
		j.Add(all, rep, mine[0])
	}
	return nil
}

// speaksFor reports whether the author of a report speaks for a recipient.
func (j *Matcher) speaksFor(rep *Results, email string) bool {
	if rep.Author == "" {
		return false
	}
	loop := func(of string) bool {
		if strings.Contains(of, "@") {
			return rep.From == of
		}
		return rep.Author == of || strings.HasSuffix(rep.Author, "."+of)
	}
	return organization(rep.Author) == organizationOf(email) ||
		slices.ContainsFunc(feedbackLoops, loop) || slices.ContainsFunc(j.Loops, loop)
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

// Add adds the report's result for a recipient.
func (j *Matcher) Add(t *Results, rep bounce.Report, sent store.SentTo) {
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
		if j.speaksFor(t, sent.Email) {
			res.ComplaintOf = organizationOf(sent.Email)
		}
	default: // delayed, or delivered
		return
	}
	t.Reports = append(t.Reports, &res)
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

// Keep stores the results of a message that is not delivered to an inbox, and
// unsubscribes recipients who asked for it.
func (j *Matcher) Keep(ctx context.Context, all Results, stored bool) error {
	if !stored {
		for _, report := range all.Reports {
			if err := j.Store.RecordReport(ctx, *report); err != nil {
				return err
			}
		}
	}
	for _, sent := range all.optOuts {
		if err := j.Store.Unsubscribe(ctx, sent.AccountID, sent.MessageSeq, sent.Email, mail.CanonicalAddress(sent.Email)); err != nil {
			return err
		}
	}
	return nil
}
