package web

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/store"
)

// sentRow is a row of the log of sent emails and messages.
type sentRow struct {
	ID, Path, Subject, Status string
	To                        []string
	Words                     string // reply of the remote server for a failed recipient
	TestMode                  bool
	CreatedAt                 time.Time
	Next                      time.Time // the next attempt of a deferred delivery; zero if there is none
}

// sentLog is the log of sent emails, or of sent inbox messages.
type sentLog struct {
	Messages    bool
	Status, Tag string
	Q           string // words of messages
	To          string // recipient
	From, Until string // the first and the last day
	Statuses    []statusChip
	// Latest reports whether the counts leave out older mail.
	Latest bool
	Rows   []sentRow
	Live   string
	paging
	All     string // the log with every status
	Problem problem
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
func (v *sentLog) Filtered() bool { return v.Status != "" || v.Searched() }

// Searched reports whether it is filtered by more than the status. The counts by status
// do not know about that.
func (v *sentLog) Searched() bool { return v.Tag+v.Q+v.To+v.From+v.Until != "" }

// sentFilters returns a log with the filters of the request, and the time range of its
// days, which are UTC. It ignores dates that are malformed.
func (p *page) sentFilters() (v sentLog, since, until gen.OptDateTime) {
	q := p.r.URL.Query()
	field := func(name string) string { return strings.TrimSpace(q.Get(name)) }
	v = sentLog{Status: q.Get("status"), Tag: field("tag"), Q: field("q"), To: field("to")}
	if at, err := time.Parse(time.DateOnly, field("from")); err == nil {
		v.From, since = field("from"), gen.NewOptDateTime(at)
	}
	if at, err := time.Parse(time.DateOnly, field("until")); err == nil {
		v.Until, until = field("until"), gen.NewOptDateTime(at.AddDate(0, 0, 1))
	}
	return v, since, until
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

func (d *Dashboard) listEmails(p *page) error {
	v, since, until := p.sentFilters()
	params := gen.ListEmailsParams{Limit: limit(), Cursor: p.cursor(), Tag: optional(v.Tag), To: optional(v.To), Since: since, Until: until}
	if v.Status != "" {
		params.Status = gen.NewOptEmailStatus(gen.EmailStatus(v.Status))
	}
	l, err := d.api.ListEmails(p.ctx(), params)
	if err != nil {
		return d.sentFault(p, v, changesOfEmails, err)
	}
	for _, e := range l.Data {
		v.Rows = append(v.Rows, sentRow{
			ID: e.ID, Path: "/emails/" + e.ID, Subject: e.Subject, Status: e.Status, To: e.To, Words: worst(e.Recipients), TestMode: e.TestMode, CreatedAt: e.CreatedAt,
		})
	}
	v.paging = p.paging(l.Cursor)
	return d.showSent(p, v, changesOfEmails)
}

func (d *Dashboard) listSentMessages(p *page) error {
	v, since, until := p.sentFilters()
	v.Messages = true
	params := gen.ListMessagesParams{
		Limit: limit(), Cursor: p.cursor(), Direction: gen.NewOptDirection(gen.DirectionOut), Q: optional(v.Q), To: optional(v.To), Since: since, Until: until,
	}
	if v.Status != "" {
		params.Status = gen.NewOptMessageStatus(gen.MessageStatus(v.Status))
	}
	l, err := d.api.ListMessages(p.ctx(), params)
	if err != nil {
		return d.sentFault(p, v, changesOfMessages, err)
	}
	for _, m := range l.Data {
		v.Rows = append(v.Rows, sentRow{
			ID: m.ID, Path: "/emails/messages/" + m.ID, Subject: m.Subject, Status: m.Status, To: addresses(m.To), Words: worst(m.Recipients), TestMode: m.TestMode, CreatedAt: m.CreatedAt,
		})
	}
	v.paging = p.paging(l.Cursor)
	return d.showSent(p, v, changesOfMessages)
}

// sentFault shows an empty log with the problem of a filter. It returns other errors.
func (d *Dashboard) sentFault(p *page, v sentLog, changes []gen.EventType, err error) error {
	var ok bool
	if v.Problem, ok = problemOf(err); !ok || v.Problem.Rest("tag", "to") != "" {
		return err
	}
	return d.showSent(p, v, changes)
}

// showSent completes a log with its filters and the next attempts, and shows it.
func (d *Dashboard) showSent(p *page, v sentLog, changes []gen.EventType) error {
	counts, all, err := d.store.CountStatuses(p.ctx(), p.user.AccountID, v.Messages)
	if err != nil {
		return err
	}
	v.Latest = !all
	q := p.r.URL.Query()
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
	var waiting []string
	for _, r := range v.Rows {
		if r.Status == "queued" || r.Status == "sending" || len(r.To) > 1 {
			waiting = append(waiting, r.ID)
		}
	}
	if len(waiting) > 0 {
		next, err := d.store.NextAttempts(p.ctx(), p.user.AccountID, waiting)
		if err != nil {
			return err
		}
		for i := range v.Rows {
			v.Rows[i].Next = next[v.Rows[i].ID].Time
		}
	}
	v.Live = v.live("", changes...)
	return p.showStatus(cmp.Or(v.Problem.status, http.StatusOK), "emails", &v)
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

// sentMail is the page of one sent email or message.
type sentMail struct {
	ID, From, Subject, Status string
	Messages                  bool // it is an inbox message
	TestMode, Expired         bool
	CanCancel, Deferred       bool
	To, Cc, Bcc, ReplyTo      []string
	Tags                      gen.TagsResponse
	Metadata                  gen.FreeObject
	Category, Batch           string
	CreatedAt                 time.Time
	ScheduledAt               gen.NilDateTime
	Recipients                []gen.Recipient
	Attachments               []gen.Attachment
	Steps                     []step
	// Frame shows the email; nil: the page shows Text.
	Frame      *frame
	Text, HTML string
	Tabs       []messageTab
	Tab        string
	Content    string // of the tab
	Cut        bool
	Here, Live string
}

func (d *Dashboard) showEmail(p *page) error {
	id := p.r.PathValue("id")
	e, err := d.api.GetEmail(p.ctx(), gen.GetEmailParams{ID: id})
	if err != nil {
		return err
	}
	kept, err := d.store.Email(p.ctx(), p.user.AccountID, nil, id)
	if err != nil {
		return err
	}
	v := sentMail{
		ID: e.ID, From: e.From, Subject: e.Subject, Status: e.Status, TestMode: e.TestMode, Expired: e.Expired,
		CanCancel: e.Status == string(gen.EmailStatusScheduled), To: e.To, Cc: e.Cc, Bcc: e.Bcc,
		Tags: e.Tags, Metadata: e.Metadata, Category: e.Category, Batch: e.BatchID.Or(""),
		Recipients: e.Recipients, CreatedAt: e.CreatedAt, ScheduledAt: e.ScheduledAt, Text: e.Text.Or(""), HTML: e.HTML.Or(""),
		Live: livePath("", changesOfEmails...),
	}
	if to := e.ReplyTo.Or(""); to != "" {
		v.ReplyTo = []string{to}
	}
	if kept.Content != nil {
		for _, at := range kept.Content.Attachments.V {
			v.Attachments = append(v.Attachments, gen.Attachment{Filename: at.Filename, ContentType: at.ContentType, Size: at.Size})
		}
	}
	return d.showSentMail(p, v, emailSource(e), kept.Message, kept.ScheduledAt)
}

func (d *Dashboard) showSentMessage(p *page) error {
	m, err := d.getMessage(p, p.r.PathValue("id"))
	if err != nil {
		return err
	}
	if m.Direction != string(gen.DirectionOut) {
		return errNoPage
	}
	kept, err := d.store.Message(p.ctx(), p.user.AccountID, m.ID)
	if err != nil {
		return err
	}
	v := sentMail{
		ID: m.ID, From: mailbox(m.From.Value), Subject: m.Subject, Status: m.Status, Messages: true, TestMode: m.TestMode, Expired: m.Expired,
		To: addresses(m.To), Cc: addresses(m.Cc), Bcc: addresses(m.Bcc), ReplyTo: addresses(m.ReplyTo), Recipients: m.Recipients,
		Attachments: m.Attachments, CreatedAt: m.CreatedAt, ScheduledAt: gen.NilDateTime{Null: true}, Text: m.Text.Or(""), HTML: m.HTML.Or(""),
		Live: livePath(m.InboxID, changesOfMessages...),
	}
	return d.showSentMail(p, v, messageSource(m), kept, nil)
}

// showSentMail completes the page of a sent email or message, and shows it.
func (d *Dashboard) showSentMail(p *page, v sentMail, source mailSource, kept store.Message, scheduled *store.Time) (err error) {
	if v.Steps, err = d.timeline(p, kept, scheduled); err != nil {
		return err
	}
	v.Here = p.r.URL.Path
	v.Deferred = slices.ContainsFunc(v.Steps, func(s step) bool { return s.Next && s.Tone == "warn" && s.At.After(d.now()) })
	if v.Expired {
		return p.show("email", v)
	}
	v.Tabs = bodyTabs(v.Text, v.HTML)
	v.Tab = p.chosen(v.Tabs)
	v.Content, v.Cut = cutSource(map[string]string{"text": v.Text, "html": v.HTML}[v.Tab])
	v.Frame = p.frameOf(source, p.asksRemote(source))
	return p.show("email", v)
}

// cutSource truncates a source that is too long for a page.
func cutSource(s string) (text string, cut bool) {
	if len(s) <= mostShown {
		return s, false
	}
	return strings.ToValidUTF8(s[:mostShown], ""), true
}

func (d *Dashboard) emailFrame(p *page) error {
	e, err := d.api.GetEmail(p.ctx(), gen.GetEmailParams{ID: p.r.PathValue("id")})
	if err != nil {
		return err
	}
	return p.showFrame(emailSource(e))
}

func (d *Dashboard) cancelEmail(p *page) error {
	id := p.r.PathValue("id")
	_, err := d.api.CancelEmail(p.ctx(), gen.CancelEmailParams{ID: id})
	return p.result(err, "/emails/"+id, "/emails/"+id, "Email cancelled. It will not be sent.")
}

// retrySent makes the deferred deliveries of an email or a sent message due now.
func (d *Dashboard) retrySent(p *page) error {
	id := p.r.PathValue("id")
	back := "/emails/" + id
	if strings.HasPrefix(id, "msg_") {
		back = "/emails/messages/" + id
	}
	err := d.store.RetryDeferred(p.ctx(), p.user.AccountID, id)
	if errors.Is(err, store.ErrState) {
		return p.failed(back, "No delivery is deferred. It may be under way already.")
	}
	if err != nil {
		return err
	}
	return p.done(back, "The next attempt starts now.")
}
