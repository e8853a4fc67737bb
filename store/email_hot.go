package store

import (
	"context"
	"fmt"

	"github.com/postroom/postroom/store/internal/batch"
)

// insertRows are the rows of new messages, for each table.
type insertRows struct {
	messages, contents, searchTail, recipients, emails, tags []any
}

// insertMessages writes the new messages and emails.
func (b *hotBatch) insertMessages(ctx context.Context) error {
	var r insertRows
	for _, h := range b.messages {
		h.msg.CreatedAt = h.inbox.at
		due := b.now.UnixMicro()
		r.add(h, b.now, h.msg.InboxSeq, h.msg.ThreadSeq, due)
		r.searchTail = append(r.searchTail, h.msg.Seq, h.msg.AccountID)
		b.announce(h)
	}
	for _, h := range b.emails {
		b.insertEmail(&r, h)
	}
	hot := &b.store.hot
	for _, t := range []struct {
		name  string
		table *batch.Rows
		rows  []any
	}{
		{"messages", &hot.messages, r.messages},
		{"contents", &hot.contents, r.contents},
		{"into the list of what to index", &hot.searchTail, r.searchTail},
		{"recipients", &hot.recipients, r.recipients},
		{"emails", &hot.emails, r.emails},
		{"tags of emails", &hot.emailTags, r.tags},
	} {
		if err := t.table.Exec(ctx, b.tx, t.rows); err != nil {
			return fmt.Errorf("insert %s: %w", t.name, err)
		}
	}
	return nil
}

// insertEmail adds the rows of an email. The recipients of one that is scheduled
// are due when it is queued.
func (b *hotBatch) insertEmail(r *insertRows, h *hotEmail) {
	e := &h.email
	h.msg.CreatedAt = b.now
	var scheduled, due any
	if e.ScheduledAt != nil {
		scheduled = e.ScheduledAt.UnixMicro()
	} else {
		due = b.now.UnixMicro()
	}
	r.add(h.hotMessage, b.now, nil, nil, due)
	var inbox any
	if e.FromInbox != nil {
		inbox = *e.FromInbox
	}
	var by any
	if h.createdBy != "" {
		by = h.createdBy
	}
	r.emails = append(r.emails, h.msg.Seq, h.msg.AccountID, inbox, orNull(e.BatchID), string(e.Category), h.tags, h.metadata, scheduled, scheduled, by)
	for name, value := range e.Tags.V {
		r.tags = append(r.tags, h.msg.AccountID, name, labelText(value), h.msg.Seq)
	}
	switch h.msg.Status {
	case EmailScheduled:
		b.event(h.eventID, EventEmailScheduled, &h.msg, scheduledEvent(e.ScheduledAt))
	case MessageQueued:
		b.event(h.eventID, EventEmailQueued, &h.msg, queuedData)
		b.wake(topic{kind: topicQueue})
	default: // nobody is left to send it to
	}
	b.tellOfSuppressed(h.hotMessage, EventEmailFailed)
}

// tellOfSuppressed notes an event for each recipient that is left out of a new
// message.
func (b *hotBatch) tellOfSuppressed(h *hotMessage, typ EventType) {
	for _, data := range h.suppressed {
		b.event(NewID("evt_", b.now.Time), typ, &h.msg, data)
	}
}

// add adds the rows of a message. inbox, thread and due may be nil.
func (r *insertRows) add(h *hotMessage, now Time, inbox, thread, due any) {
	m := &h.msg
	r.messages = append(r.messages, m.Seq, m.AccountID, inbox, thread, m.ID, string(m.Direction), string(m.Status), m.TestMode,
		m.FromEmail, h.addresses, m.Subject, h.fold, m.HeaderID, hash64(m.HeaderID), h.refs, m.Automated,
		m.HasCode, m.HasLink, m.Truncated, orNull(m.Tag), m.Size, m.CreatedAt.UnixMicro())
	c := m.Content
	c.MessageSeq = m.Seq
	r.contents = append(r.contents, m.Seq, orNullBytes(c.Raw), orNull(c.BlobKey), h.body, c.Snippet, h.extracted, h.auth, h.attachments)
	for i := range m.Recipients {
		rc := &m.Recipients[i]
		rc.AccountID, rc.MessageSeq, rc.CreatedAt, rc.NextAttemptAt = m.AccountID, m.Seq, now, nil
		dueAt := due
		if rc.Status == RecipientSuppressed {
			dueAt = nil
		} else {
			rc.Status = RecipientQueued
		}
		if dueAt != nil {
			rc.NextAttemptAt = &now
		}
		r.recipients = append(r.recipients, rc.AccountID, rc.MessageSeq, rc.Email, rc.Domain, rc.Kind, string(rc.Status), int64(0), int64(0),
			dueAt, now.UnixMicro())
	}
}
