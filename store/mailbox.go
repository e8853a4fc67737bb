package store

import "context"

// Mailbox is what receiving needs to know of an inbox.
type Mailbox struct {
	Seq       int64
	AccountID int64
	ID        string
	Status    InboxStatus
	ExpiresAt *Time
}

// Mailbox is the inbox as those who bring mail see it.
func (in Inbox) Mailbox() Mailbox {
	return Mailbox{in.Seq, in.AccountID, in.ID, in.Status, in.ExpiresAt}
}

// Takes says whether mail can be put into the inbox.
func (m Mailbox) Takes(now Time) bool { return m.Status == InboxActive && !m.Expired(now) }

// Expired says whether the inbox has passed its expires_at.
func (m Mailbox) Expired(now Time) bool { return m.ExpiresAt != nil && !m.ExpiresAt.After(now.Time) }

const mailboxByAddress = `
	SELECT seq, account_id, id, status, expires_at FROM inboxes WHERE address = $1 AND status <> 'deleted'`

// MailboxByAddress returns the inbox, of whatever account, that receives mail to
// address (lower case, without tag). ErrNotFound when it is deleted or never
// was. It is asked for every recipient of every mail, so it reads no more than
// it must.
func (s *Store) MailboxByAddress(ctx context.Context, address string) (Mailbox, error) {
	var m Mailbox
	err := s.reads.Scan(ctx, mailboxByAddress, []any{address}, &m.Seq, &m.AccountID, &m.ID, &m.Status, &m.ExpiresAt)
	return m, s.wrap(err, "inbox")
}
