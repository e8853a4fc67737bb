package main

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/bounce"
)

type bounceRecord struct {
	ID         string           `json:"id"`
	Grade      string           `json:"grade"`
	File       string           `json:"file"`
	Tier       string           `json:"tier"`
	Expected   []expectedReport `json:"expected"`
	OriginalID *string          `json:"original_message_id"`
}

type expectedReport struct {
	Recipient    *string  `json:"recipient"`
	Also         []string `json:"recipient_also"`
	Kind         string   `json:"kind"`
	Type         string   `json:"bounce_type"`
	Status       *string  `json:"status"`
	StatusAlso   []string `json:"status_also"`
	Code         *string  `json:"reply_code"`
	Reason       *string  `json:"reason"`
	FeedbackType *string  `json:"feedback_type"`
}

// bounceTally scores the recipients of reports.
type bounceTally struct {
	precision, recall  share // of bounced recipients
	hard, status       share // of the recipients found
	others             share // complaints, delays, deliveries and automatic replies
	feedback, original share
	alarms, ordinary   int
}

func scoreBounces(_ context.Context, c *corpus) ([]row, error) {
	list, err := records[bounceRecord](c, "bounces.jsonl")
	if err != nil {
		return nil, err
	}
	tallies := byGrade[bounceTally]{}
	for i := range list {
		raw, err := c.mail(list[i].File)
		if err != nil {
			return nil, err
		}
		for _, null := range list[i].paths() {
			got, err := bounce.Read(bytes.NewReader(raw), null, mail.DefaultLimits())
			if err != nil {
				return nil, err
			}
			tallies.of(list[i].Grade).count(c, &list[i], got)
		}
	}
	return tallies.rows((*bounceTally).rows), nil
}

// paths reports whether to read a record with a null reverse-path. Bounces have
// one, complaints do not. Other messages are ordinary with either.
func (r *bounceRecord) paths() []bool {
	switch r.Tier {
	case "none":
		return []bool{true, false}
	case "arf":
		return []bool{false}
	}
	return []bool{true}
}

func (t *bounceTally) rows() []row {
	return []row{
		t.precision.atLeast("bounced recipients precision", 0.99), t.recall.atLeast("bounced recipients recall", 0.95),
		t.hard.atLeast("bounces hard or soft", 0.97), t.status.plain("bounces status"),
		none("false alarms on ordinary mail", t.alarms, t.ordinary),
		t.others.plain("complaints, delays, deliveries, replies"), t.feedback.plain("complaints feedback type"), t.original.plain("original Message-ID"),
	}
}

func (t *bounceTally) count(c *corpus, r *bounceRecord, got bounce.Report) {
	if r.Tier == "none" {
		t.ordinary++
		if slices.ContainsFunc(got.Recipients, func(x bounce.Recipient) bool { return x.Outcome == bounce.Bounced }) {
			t.alarms++
			c.miss(r.ID, "%s false alarm: %+v", r.File, got.Recipients)
		}
		return
	}
	open := slices.Clone(got.Recipients)
	for _, want := range r.Expected {
		i := slices.IndexFunc(open, want.matches)
		if i < 0 {
			t.notFound(c, r, &want)
			continue
		}
		t.found(c, r, &want, open[i], got.FeedbackType)
		open = slices.Delete(open, i, i+1)
	}
	for _, x := range open {
		if x.Outcome == bounce.Bounced {
			t.precision.add(false)
			c.miss(r.ID, "%s false recipient %q", r.File, x.Email)
		}
	}
	if r.OriginalID != nil && len(got.Recipients) > 0 {
		right := strings.Trim(got.OriginalID, "<>") == *r.OriginalID
		if t.original.add(right); !right {
			c.miss(r.ID, "%s original %q, want %q", r.File, got.OriginalID, *r.OriginalID)
		}
	}
}

// outcomes are the labels of the records.
var outcomes = map[string]bounce.Outcome{
	"bounce": bounce.Bounced, "delayed": bounce.Delayed, "delivered": bounce.Delivered, "complaint": bounce.Complained,
	"auto_reply": bounce.AutoReplied,
}

// matches reports whether x is the expected recipient.
func (want *expectedReport) matches(x bounce.Recipient) bool {
	if x.Outcome != outcomes[want.Kind] {
		return false
	}
	if want.Recipient == nil || strings.HasSuffix(*want.Recipient, ".invalid") { // unknown, or a placeholder
		return true
	}
	names := append([]string{*want.Recipient}, want.Also...)
	return slices.ContainsFunc(names, func(s string) bool { return strings.EqualFold(s, x.Email) })
}

func (t *bounceTally) notFound(c *corpus, r *bounceRecord, want *expectedReport) {
	c.miss(r.ID, "%s %s of %s not found", r.File, want.Kind, orUnknown(want.Recipient))
	if want.Kind == "bounce" {
		t.recall.add(false)
		return
	}
	t.others.add(false)
}

// orUnknown returns the label, or "?" if the record has none.
func orUnknown(label *string) string {
	if label == nil {
		return "?"
	}
	return *label
}

func (t *bounceTally) found(c *corpus, r *bounceRecord, want *expectedReport, x bounce.Recipient, feedback string) {
	if want.Kind != "bounce" {
		t.others.add(true)
		if want.FeedbackType != nil {
			t.feedback.add(feedback == *want.FeedbackType)
		}
		return
	}
	t.precision.add(true)
	t.recall.add(true)
	right := x.Hard == (want.Type == "hard")
	if t.hard.add(right); !right {
		c.miss(r.ID, "%s hard %v (%s), want %s (%s): %s %d %q", r.File, x.Hard, x.Reason, want.Type, orUnknown(want.Reason), x.Status, x.Code, x.Diagnostic)
	}
	if want.Status == nil {
		return
	}
	right = x.Status == *want.Status || slices.Contains(want.StatusAlso, x.Status)
	if t.status.add(right); !right {
		c.miss(r.ID, "%s status %q, want %q: %q", r.File, x.Status, *want.Status, x.Diagnostic)
	}
}
