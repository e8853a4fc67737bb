package web

import (
	"time"

	"github.com/postroom/postroom/gen"
)

func (d *Dashboard) emailPages() {
	d.get("/emails", d.listEmails)
	d.get("/emails/{id}", d.showEmail)
	d.post("/emails/{id}/cancel", d.cancelEmail)
	d.get("/emails/messages", d.listSentMessages)
	d.get("/emails/messages/{id}", d.showSentMessage)
}

// sentRow is a row of the log of sent emails and messages.
type sentRow struct {
	Path, Subject, Status string
	To                    []string
	Words                 string // reply of the remote server for a failed recipient
	TestMode              bool
	CreatedAt             time.Time
}

// sentLog is the log of sent emails, or of sent inbox messages.
type sentLog struct {
	Messages bool
	Status   string
	Statuses []string
	Rows     []sentRow
	paging
}

func (d *Dashboard) listEmails(p *page) error {
	v := sentLog{Status: p.r.URL.Query().Get("status")}
	params := gen.ListEmailsParams{Limit: limit(), Cursor: p.cursor()}
	for _, s := range gen.EmailStatus("").AllValues() {
		v.Statuses = append(v.Statuses, string(s))
	}
	if v.Status != "" {
		params.Status = gen.NewOptEmailStatus(gen.EmailStatus(v.Status))
	}
	l, err := d.api.ListEmails(p.ctx(), params)
	if err != nil {
		return err
	}
	for _, e := range l.Data {
		v.Rows = append(v.Rows, sentRow{
			Path: "/emails/" + e.ID, Subject: e.Subject, Status: e.Status, To: e.To, Words: worst(e.Recipients), TestMode: e.TestMode, CreatedAt: e.CreatedAt,
		})
	}
	v.paging = p.paging(l.Cursor)
	return p.show("emails", v)
}

func (d *Dashboard) listSentMessages(p *page) error {
	v := sentLog{Messages: true, Status: p.r.URL.Query().Get("status")}
	params := gen.ListMessagesParams{Limit: limit(), Cursor: p.cursor(), Direction: gen.NewOptDirection(gen.DirectionOut)}
	for _, s := range gen.MessageStatus("").AllValues() {
		if s != gen.MessageStatusReceived {
			v.Statuses = append(v.Statuses, string(s))
		}
	}
	if v.Status != "" {
		params.Status = gen.NewOptMessageStatus(gen.MessageStatus(v.Status))
	}
	l, err := d.api.ListMessages(p.ctx(), params)
	if err != nil {
		return err
	}
	for _, m := range l.Data {
		v.Rows = append(v.Rows, sentRow{
			Path: "/emails/messages/" + m.ID, Subject: m.Subject, Status: m.Status, To: addresses(m.To), Words: worst(m.Recipients), TestMode: m.TestMode, CreatedAt: m.CreatedAt,
		})
	}
	v.paging = p.paging(l.Cursor)
	return p.show("emails", v)
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
	out := make([]string, 0, len(as))
	for _, a := range as {
		out = append(out, a.Email)
	}
	return out
}

// sentMail is the page of one sent email or message.
type sentMail struct {
	ID, From, Subject, Status string
	Messages                  bool // it is an inbox message
	TestMode, Expired         bool
	CanCancel                 bool
	Text                      string
	Recipients                []gen.Recipient
	CreatedAt                 time.Time
	ScheduledAt               gen.NilDateTime
}

func (d *Dashboard) showEmail(p *page) error {
	e, err := d.api.GetEmail(p.ctx(), gen.GetEmailParams{ID: p.r.PathValue("id")})
	if err != nil {
		return err
	}
	return p.show("email", sentMail{
		ID: e.ID, From: e.From, Subject: e.Subject, Status: e.Status, TestMode: e.TestMode, Expired: e.Expired,
		CanCancel: e.Status == string(gen.EmailStatusScheduled), Text: e.Text.Value, Recipients: e.Recipients,
		CreatedAt: e.CreatedAt, ScheduledAt: e.ScheduledAt,
	})
}

func (d *Dashboard) showSentMessage(p *page) error {
	m, err := d.getMessage(p, p.r.PathValue("id"))
	if err != nil {
		return err
	}
	if m.Direction != string(gen.DirectionOut) {
		return errNoPage
	}
	return p.show("email", sentMail{
		ID: m.ID, From: m.From.Value.Email, Subject: m.Subject, Status: m.Status, Messages: true, TestMode: m.TestMode, Expired: m.Expired,
		Text: m.Text.Value, Recipients: m.Recipients, CreatedAt: m.CreatedAt, ScheduledAt: gen.NilDateTime{Null: true},
	})
}

func (d *Dashboard) cancelEmail(p *page) error {
	id := p.r.PathValue("id")
	if _, err := d.api.CancelEmail(p.ctx(), gen.CancelEmailParams{ID: id}); err != nil {
		return p.refused("/emails/"+id, err)
	}
	return p.done("/emails/"+id, "Email cancelled. It will not be sent.")
}
