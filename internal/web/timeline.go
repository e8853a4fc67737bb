package web

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/store"
)

// mostSteps is how many events of an email a page shows.
const mostSteps = 200

// step is an entry of the timeline of an email or a sent message.
type step struct {
	At    time.Time
	Title string
	Tone  string // as tone returns it
	Who   string // the recipient; empty for all
	Reply string // the remote server's reply, or why it was not sent
	Link  string // the clicked link
	Next  bool   // it is still to come
}

// stepTitles are the names of events in a timeline, by the end of their type.
var stepTitles = map[string]string{
	"scheduled": "Scheduled", "sent": "Accepted by the remote server", "delivered": "Delivered", "opened": "Opened", "clicked": "Link clicked",
	"bounced": "Bounced", "complained": "Reported as spam", "failed": "Failed", "cancelled": "Cancelled",
	"delivery_delayed": "Deferred", "suppressed": "Not sent: the address is suppressed",
}

// delivery returns what happened to an email or a sent message, and what comes
// next. Events are deleted after a time; the recipients keep how it ended.
func (d *Dashboard) delivery(p *page, m store.Message, scheduled *store.Time) (v delivery, err error) {
	events, err := d.store.ListMessageEvents(p.ctx(), m.AccountID, m.Seq, store.Page{Limit: mostSteps})
	if err != nil {
		return v, err
	}
	steps := []step{{At: m.CreatedAt.Time, Title: "Accepted by Postroom"}}
	for _, e := range events.Rows {
		s, err := stepOf(e)
		if err != nil {
			return v, err
		}
		if s.Title != "" {
			steps = append(steps, s)
		}
	}
	var next []step
	for _, r := range m.Recipients {
		if n, ok := nextStep(r); ok {
			next, v.Deferred = append(next, n), v.Deferred || n.Tone == "warn" && n.At.After(d.now())
		}
	}
	if m.Status == store.EmailScheduled && scheduled != nil {
		next = []step{{At: scheduled.Time, Title: "Will be sent", Next: true}}
	}
	byTime := func(a, b step) int { return a.At.Compare(b.At) }
	slices.SortStableFunc(steps, byTime)
	slices.SortStableFunc(next, byTime)
	v.Steps = append(steps, next...)
	return v, nil
}

// stepOf returns the step of an event, without a title if the timeline leaves it out.
func stepOf(e store.Event) (step, error) {
	var data store.EventData
	if err := json.Unmarshal([]byte(e.Data), &data); err != nil {
		return step{}, fmt.Errorf("data of event %s: %w", e.ID, err)
	}
	_, kind, _ := strings.Cut(string(e.Type), ".")
	s := step{At: e.CreatedAt.Time, Title: stepTitles[kind], Tone: tone(kind), Who: data.Recipient, Reply: data.Response, Link: data.Link}
	switch {
	case kind == "bounced" && data.Soft:
		s.Title = "Bounced after the last retry"
	case data.Bot:
		s.Title += " by a scanner, not a person"
		s.Tone = ""
	}
	if data.Reason != "" {
		s.Reply = data.Reason
	}
	return s, nil
}

// nextStep returns the next attempt for a recipient, if there is one.
func nextStep(r store.Recipient) (step, bool) {
	waits := r.Status == store.RecipientQueued || r.Status == store.RecipientSending
	if !waits || r.NextAttemptAt == nil {
		return step{}, false
	}
	s := step{At: r.NextAttemptAt.Time, Title: "First attempt", Who: r.Email, Next: true}
	if r.Attempts > 0 {
		s.Title, s.Tone = "Deferred, next attempt", "warn"
		if r.LastResponse != nil {
			s.Reply = *r.LastResponse
		}
	}
	return s, true
}
