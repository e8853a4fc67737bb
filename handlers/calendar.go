package handlers

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/calendar"
	"github.com/postroom/postroom/internal/mail/compose"
	"github.com/postroom/postroom/store"
)

// answers are the words for an answer: the state of the attendee, the subject, the text.
var answers = map[gen.CalendarReplyResponse][3]string{
	gen.CalendarReplyResponseAccept:    {"accepted", "Accepted: ", " accepts the invitation: "},
	gen.CalendarReplyResponseDecline:   {"declined", "Declined: ", " declines the invitation: "},
	gen.CalendarReplyResponseTentative: {"tentative", "Tentative: ", " may attend: "},
}

// ReplyToInvitation implements POST /v1/messages/{message_id}/calendar/reply.
func (a *API) ReplyToInvitation(ctx context.Context, req *gen.CalendarReply, p gen.ReplyToInvitationParams) (gen.ReplyToInvitationRes, error) {
	m, err := a.keptMessage(ctx, p.MessageID)
	if err != nil {
		return nil, err
	}
	in, err := a.store.Inbox(ctx, m.AccountID, m.InboxID)
	if err != nil {
		return nil, err
	}
	var c *mail.Calendar
	if m.Content != nil && m.Content.Extracted != nil {
		c = m.Content.Extracted.V.Calendar
	}
	if why := calendar.WhyNoReply(c); why != "" {
		return nil, httpapi.Invalid("message_id", "%s", why)
	}
	organizer, err := a.others(ctx, in, m, []mail.Address{c.Organizer.Address})
	if err != nil {
		return nil, err
	}
	if len(organizer) == 0 {
		return nil, httpapi.Invalid("message_id", "is an invitation from this inbox")
	}
	by, words := invited(in, m, c), answers[req.Response]
	title := cmp.Or(c.Summary, m.Subject)
	s := &submission{
		inbox: in, kind: store.DraftReply, source: &m, to: organizer, threadSeq: m.ThreadSeq, refs: m.ReplyReferences(),
		subject: words[1] + title, text: cmp.Or(by.Name, by.Email) + words[2] + title + "\n",
	}
	comment := strings.TrimSpace(req.Comment.Or(""))
	if comment != "" {
		s.text += "\n" + comment + "\n"
	}
	if err := s.readApproval(ctx, req.Approval); err != nil {
		return nil, err
	}
	file := calendar.Reply(c, by, words[0], comment, a.now())
	s.attachments = []attachment{{compose.Attachment{Filename: "invite.ics", ContentType: calendar.ReplyType, Content: file}, int64(len(file))}}
	return asRes[gen.ReplyToInvitationRes](a.submit(ctx, s))
}

// invited returns the attendee that the inbox is: the one that the message was delivered
// to, else one with an address of the inbox. Without one it is the inbox.
func invited(in store.Inbox, m store.Message, c *mail.Calendar) mail.Address {
	found := mail.Address{Email: in.Address}
	i := slices.IndexFunc(c.Attendees, func(p mail.Participant) bool {
		return m.DeliveredTo != nil && mail.FoldAddress(p.Email) == *m.DeliveredTo
	})
	if i < 0 {
		i = slices.IndexFunc(c.Attendees, func(p mail.Participant) bool { return isOwn(in, p.Email) })
	}
	if i >= 0 {
		found.Email = c.Attendees[i].Email
	}
	if in.DisplayName != nil { // the sender's name for it is not its own
		found.Name = *in.DisplayName
	}
	return found
}

func calendarToAPI(c *mail.Calendar) gen.NilCalendar {
	if c == nil {
		return gen.NilCalendar{Null: true}
	}
	out := gen.Calendar{
		Method: emptyIsNull(c.Method), UID: emptyIsNull(c.UID), Sequence: c.Sequence, Status: emptyIsNull(c.Status),
		Summary: emptyIsNull(c.Summary), Location: emptyIsNull(c.Location), Organizer: gen.NilMailAddress{Null: true},
		Attendees: mapped(c.Attendees, func(p mail.Participant) gen.Attendee {
			return gen.Attendee{Email: p.Email, Name: emptyIsNull(p.Name), Status: p.Status}
		}),
		AllDay: c.AllDay, Start: calendarTimeToAPI(c.Start), End: calendarTimeToAPI(c.End),
		Recurrence: emptyIsNull(c.Recurrence), RecurrenceID: calendarTimeToAPI(c.RecurrenceID),
	}
	if c.Organizer != nil {
		out.Organizer = gen.NewNilMailAddress(addressToAPI(c.Organizer.Address))
	}
	return gen.NewNilCalendar(out)
}

func calendarTimeToAPI(t *mail.CalendarTime) gen.NilCalendarTime {
	if t == nil {
		return gen.NilCalendarTime{Null: true}
	}
	out := gen.CalendarTime{Local: t.Local, Zone: emptyIsNull(t.Zone), Utc: gen.NilDateTime{Null: true}}
	if t.UTC != nil {
		out.Utc = gen.NewNilDateTime(*t.UTC)
	}
	return gen.NewNilCalendarTime(out)
}
