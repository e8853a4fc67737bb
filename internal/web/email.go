package web

import (
	"cmp"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/store"
)

// sentRow is an email or a message of an inbox in the list of sent mail.
type sentRow struct {
	ID, Path, Subject, Status string
	To                        []string
	Words                     string // reply of the remote server for a failed recipient
	TestMode                  bool
	CreatedAt                 time.Time
	Deferred                  bool // an attempt failed, and another one follows
}

// sentLog is the page of sent mail. The fields of its form are filters.
type sentLog struct {
	list[sentRow]
	Status   string
	Statuses []statusChip
	// Latest reports whether the counts leave out older mail.
	Latest bool
	Live   string
	All    string // the page with every status
}

// statusMeanings explain the statuses of sent mail.
var statusMeanings = map[string]string{
	"scheduled": "Waits for its time", "queued": "Waits for the first attempt", "sending": "An attempt failed; more follow", "sent": "A relay accepted it; the rest is up to the relay",
	"delivered": "The recipient's server accepted it", "opened": "The recipient opened it", "clicked": "The recipient clicked a link",
	"bounced": "The recipient's server rejected it, or the last retry failed", "complained": "The recipient reported it as spam",
	"failed": "It could not be sent", "cancelled": "Cancelled before its time",
}

// statusChip is a filter by status.
type statusChip struct {
	Status, Path string
	Count        int
}

// Filtered reports whether the list is filtered.
func (v sentLog) Filtered() bool { return v.Status != "" || v.Searched() }

// Searched reports whether it is filtered by more than the status and where the mail is
// from. The counts by status do not know about that.
func (v sentLog) Searched() bool {
	return slices.ContainsFunc([]string{"tag", "q", "to", "from", "until"}, func(name string) bool { return v.Form.Get(name) != "" })
}

// day returns a day of the filters, which is UTC, moved by some days. It ignores one that is
// malformed.
func (p *page) day(name string, later int) gen.OptDateTime {
	at, err := time.Parse(time.DateOnly, p.asked(name).Value)
	return gen.OptDateTime{Value: at.AddDate(0, 0, later), Set: err == nil}
}

// changesOfEmails are the events that change a list of sent emails.
var changesOfEmails = []gen.EventType{
	gen.EventTypeEmailQueued, gen.EventTypeEmailScheduled, gen.EventTypeEmailSent, gen.EventTypeEmailDelivered, gen.EventTypeEmailOpened,
	gen.EventTypeEmailClicked, gen.EventTypeEmailBounced, gen.EventTypeEmailComplained, gen.EventTypeEmailFailed, gen.EventTypeEmailCancelled,
}

// changesOfMessages are the events that change a list of sent messages.
var changesOfMessages = []gen.EventType{
	gen.EventTypeMessageQueued, gen.EventTypeMessageSent, gen.EventTypeMessageDelivered, gen.EventTypeMessageBounced,
	gen.EventTypeMessageComplained, gen.EventTypeMessageFailed,
}

// listSent merges the emails of programs and the messages that inboxes sent, newest first.
func (d *Dashboard) listSent(p *page) error {
	q := p.r.URL.Query()
	v := sentLog{Status: q.Get("status")}
	v.Form.Values = q
	rows, next, err := d.sentPage(p, q, listSize, listSize)
	if pr, ok := refusal(err); ok && pr.Rest("tag", "to") == "" {
		p.problem, v.Form.problem = pr, pr
	} else if err != nil {
		return err
	}
	slices.SortStableFunc(rows, func(a, b sentRow) int { return b.CreatedAt.Compare(a.CreatedAt) })
	if len(rows) > listSize { // the next page follows the last row of each kind
		rows, emails := rows[:listSize], 0
		for _, r := range rows {
			if r.isEmail() {
				emails++
			}
		}
		if _, next, err = d.sentPage(p, q, emails, listSize-emails); err != nil {
			return err
		}
	}
	v.Rows, v.paging = rows[:min(len(rows), listSize)], p.pagingOf(next)
	if err := d.countSent(p, &v); err != nil {
		return err
	}
	v.Live = v.live("", slices.Concat(changesOfEmails, changesOfMessages)...)
	return p.show("emails", v)
}

func (r sentRow) isEmail() bool { return strings.HasPrefix(r.ID, "em_") }

// allShown is the cursor of a kind of mail that the earlier pages have shown completely.
const allShown = "-"

// sentPage returns the next emails and messages that match the filters, at most so many of
// each kind, and the cursor of the page that follows them: one for each kind.
func (d *Dashboard) sentPage(p *page, q url.Values, emails, messages int) (rows []sentRow, next string, err error) {
	ofEmails, ofMessages, _ := strings.Cut(q.Get("cursor"), "~")
	if q.Get("kind") == "messages" || q.Get("q") != "" {
		ofEmails = allShown
	}
	status := gen.MessageStatus(q.Get("status"))
	if q.Get("kind") == "emails" || q.Get("tag") != "" || status != "" && status.Validate() != nil {
		ofMessages = allShown
	}
	if ofEmails != allShown && emails > 0 {
		l, err := d.api.ListEmails(p.ctx(), gen.ListEmailsParams{
			Limit: gen.NewOptInt(emails), Cursor: optional(ofEmails), Tag: p.asked("tag"), To: p.asked("to"), Since: p.day("from", 0), Until: p.day("until", 1),
			Status: gen.OptEmailStatus{Value: gen.EmailStatus(status), Set: status != ""},
		})
		if err != nil {
			return nil, "", err
		}
		for _, e := range l.Data {
			rows = append(rows, sentRow{e.ID, "/emails/" + e.ID, e.Subject, e.Status, e.To, worst(e.Recipients), e.TestMode, e.CreatedAt, deferred(e.Recipients)})
		}
		ofEmails = cmp.Or(l.Cursor.Value, allShown)
	}
	if ofMessages != allShown && messages > 0 {
		l, err := d.api.ListMessages(p.ctx(), gen.ListMessagesParams{
			Limit: gen.NewOptInt(messages), Cursor: optional(ofMessages), Q: p.asked("q"), To: p.asked("to"), Since: p.day("from", 0), Until: p.day("until", 1),
			Status: gen.OptMessageStatus{Value: status, Set: status != ""}, Direction: gen.NewOptDirection(gen.DirectionOut),
		})
		if err != nil {
			return nil, "", err
		}
		for _, m := range l.Data {
			rows = append(rows, sentRow{m.ID, "/messages/" + m.ID, m.Subject, m.Status, addresses(m.To), worst(m.Recipients), m.TestMode, m.CreatedAt, deferred(m.Recipients)})
		}
		ofMessages = cmp.Or(l.Cursor.Value, allShown)
	}
	if ofEmails == allShown && ofMessages == allShown {
		return rows, "", nil
	}
	return rows, ofEmails + "~" + ofMessages, nil
}

// countSent adds how much of the sent mail has each status, with links to filter by it.
func (d *Dashboard) countSent(p *page, v *sentLog) error {
	q := p.r.URL.Query()
	counts := map[store.MessageStatus]int{}
	for _, kind := range []string{"emails", "messages"} {
		if only := q.Get("kind"); only != "" && only != kind {
			continue
		}
		some, all, err := d.store.CountStatuses(p.ctx(), p.user.AccountID, kind == "messages")
		if err != nil {
			return err
		}
		for status, n := range some {
			counts[status] += n
		}
		v.Latest = v.Latest || !all
	}
	q.Del("cursor")
	q.Del("status")
	at := func() string { return (&url.URL{Path: p.r.URL.Path, RawQuery: q.Encode()}).String() }
	v.All = at()
	for _, s := range gen.EmailStatus("").AllValues() { // in the order of a delivery; those of messages are among them
		n := counts[store.MessageStatus(s)]
		if n == 0 && v.Status != string(s) {
			continue
		}
		q.Set("status", string(s))
		v.Statuses = append(v.Statuses, statusChip{string(s), at(), n})
	}
	return nil
}

// deferred reports whether an attempt for a recipient failed, and another one follows.
func deferred(rs []gen.Recipient) bool {
	return slices.ContainsFunc(rs, func(r gen.Recipient) bool { return r.Attempts > 0 && (r.Status == "queued" || r.Status == "sending") })
}

// worst returns the remote server's reply for a recipient whose delivery failed.
func worst(rs []gen.Recipient) string {
	for _, r := range rs {
		if tone(r.Status) == "bad" || tone(r.Status) == "" && r.Status != "sent" {
			return r.LastResponse.Value
		}
	}
	return ""
}

func addresses(as []gen.MailAddress) []string {
	return textsOf(as, func(a gen.MailAddress) string { return a.Email })
}

// emailView is the page of an email.
type emailView struct {
	*gen.Email
	CanCancel bool
	delivery
	Attachments []gen.Attachment
	// Frame shows the email; nil: the page shows its text.
	Frame *frame
	source
	Live string
}

// delivery is what happened to sent mail. Deferred means that an attempt failed and another
// one follows.
type delivery struct {
	Steps    []step
	Deferred bool
}

func (d *Dashboard) showEmail(p *page) error {
	e, err := d.api.GetEmail(p.ctx(), gen.GetEmailParams{ID: p.id()})
	if err != nil {
		return err
	}
	kept, err := d.store.Email(p.ctx(), p.user.AccountID, nil, e.ID)
	if err != nil {
		return err
	}
	v := emailView{Email: e, CanCancel: e.Status == string(gen.EmailStatusScheduled), Live: livePath("", changesOfEmails...)}
	if v.delivery, err = d.delivery(p, kept.Message, kept.ScheduledAt); err != nil {
		return err
	}
	if kept.Content != nil {
		for _, at := range kept.Content.Attachments.V {
			v.Attachments = append(v.Attachments, gen.Attachment{Filename: at.Filename, ContentType: at.ContentType, Size: at.Size})
		}
	}
	if !e.Expired {
		v.source = p.sourceOf(bodyTabs(e.Text.Or(""), e.HTML.Or("")))
		v.Content, v.Cut = cutSource(map[string]string{"text": e.Text.Or(""), "html": e.HTML.Or("")}[v.Tab])
		v.Frame = p.frameOf(emailSource(e), p.asksRemote(emailSource(e)))
	}
	return p.show("email", v)
}

// source is the tabs of a message, and the text that the chosen one shows.
type source struct {
	Here    string // URL path of the page
	Tabs    []messageTab
	Tab     string
	Content string
	Cut     bool // only the beginning is shown
}

// sourceOf returns the tabs with the one that the request asks for, or the first one.
func (p *page) sourceOf(tabs []messageTab) source {
	s, tab := source{Here: p.r.URL.Path, Tabs: tabs}, p.asked("tab").Value
	if slices.ContainsFunc(tabs, func(t messageTab) bool { return t.Name == tab }) {
		s.Tab = tab
	}
	return s
}

// cutSource truncates a source that is too long for a page.
func cutSource(s string) (text string, cut bool) {
	if len(s) <= mostShown {
		return s, false
	}
	return strings.ToValidUTF8(s[:mostShown], ""), true
}

func (d *Dashboard) emailFrame(p *page) error {
	e, err := d.api.GetEmail(p.ctx(), gen.GetEmailParams{ID: p.id()})
	if err != nil {
		return err
	}
	return p.showFrame(emailSource(e))
}

func (d *Dashboard) cancelEmail(p *page) error {
	id := p.id()
	_, err := d.api.CancelEmail(p.ctx(), gen.CancelEmailParams{ID: id})
	return p.result(err, "/emails/"+id, "/emails/"+id, "Email cancelled. It will not be sent.")
}

// retrySent makes the deferred deliveries of an email or a sent message due now.
func (d *Dashboard) retrySent(p *page) error {
	back := "/emails/" + p.id()
	if strings.HasPrefix(p.id(), "msg_") {
		back = "/messages/" + p.id()
	}
	err := d.store.RetryDeferred(p.ctx(), p.user.AccountID, p.id())
	if errors.Is(err, store.ErrState) {
		return p.failed(back, "No delivery is deferred. It may be under way already.")
	}
	if err != nil {
		return err
	}
	return p.done(back, "The next attempt starts now.")
}
