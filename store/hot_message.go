package store

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"

	"github.com/jmoiron/sqlx"
)

// AddReceived stores the copies of one received mail, one for each inbox that
// it is for, all or none, and returns them as stored. When the mail came from
// our own queue, attempt is recorded in the same transaction, so that the mail
// cannot arrive twice. ErrNotFound when an inbox takes no mail any more.
func (s *Store) AddReceived(ctx context.Context, copies []*NewMessage, attempt *Attempt) ([]Message, error) {
	if len(copies) == 0 {
		return nil, errors.New("add received mail: no inbox")
	}
	if err := s.do(ctx, copies[0].InboxSeq, hotWrite{messages: copies, attempt: attempt}); err != nil {
		return nil, fmt.Errorf("add received mail: %w", err)
	}
	out := make([]Message, len(copies))
	for i, m := range copies {
		out[i] = m.Message
	}
	return out, nil
}

// Enqueue accepts an outbound message: it is stored with its recipients, which
// are due at once, and returned. With once, the answer is stored too.
func (s *Store) Enqueue(ctx context.Context, m *NewMessage, once *Once) (Message, error) {
	if err := s.do(ctx, m.InboxSeq, hotWrite{messages: []*NewMessage{m}, once: once}); err != nil {
		return Message{}, fmt.Errorf("enqueue: %w", err)
	}
	return m.Message, nil
}

// hotInbox is what a new message needs of its inbox.
type hotInbox struct {
	Seq       int64       `db:"seq"`
	AccountID int64       `db:"account_id"`
	ID        string      `db:"id"`
	Address   string      `db:"address"`
	Status    InboxStatus `db:"status"`
	ExpiresAt *Time       `db:"expires_at"`
	last      Time        // created_at of its newest message
}

func (b *hotBatch) addMessages(ctx context.Context) error {
	if len(b.messages) == 0 {
		return nil
	}
	if err := b.readInboxes(ctx); err != nil {
		return err
	}
	seqs, err := b.store.dialect.nextSeqs(ctx, b.tx, "messages", len(b.messages))
	if err != nil {
		return err
	}
	for i, m := range b.messages {
		m.Seq, m.ID = seqs[i], NewID("msg_", b.now.Time)
	}
	if err := b.joinThreads(ctx); err != nil {
		return err
	}
	return b.insertMessages(ctx)
}

// readInboxes holds the inboxes of the batch until the commit, so that none is
// deleted meanwhile and their messages get times in the order of the commits.
func (b *hotBatch) readInboxes(ctx context.Context) error {
	byID := map[int64]*hotInbox{}
	var seqs []int64
	for _, m := range b.messages {
		if byID[m.InboxSeq] == nil {
			byID[m.InboxSeq] = &hotInbox{}
			seqs = append(seqs, m.InboxSeq)
		}
	}
	if err := b.lockInboxes(ctx, seqs, byID); err != nil {
		return err
	}
	if err := b.newestIn(ctx, seqs, byID); err != nil {
		return err
	}
	for _, m := range b.messages {
		in := byID[m.InboxSeq]
		closed := in.Status != InboxActive || in.ExpiresAt != nil && !in.ExpiresAt.After(b.now.Time)
		if in.Seq == 0 || closed && m.Direction == DirectionIn {
			return fmt.Errorf("inbox %s takes no mail: %w", in.ID, ErrNotFound)
		}
		m.inbox, m.InboxID, m.AccountID = *in, in.ID, in.AccountID
	}
	return nil
}

func (b *hotBatch) lockInboxes(ctx context.Context, seqs []int64, byID map[int64]*hotInbox) error {
	q, args, err := sqlx.In(`SELECT seq, account_id, id, address, status, expires_at FROM inboxes WHERE seq IN (?) ORDER BY seq`, seqs)
	if err != nil {
		return fmt.Errorf("lock inboxes: %w", err)
	}
	var rows []hotInbox
	if err := b.tx.SelectContext(ctx, &rows, b.tx.Rebind(q)+b.store.dialect.lockRow(), args...); err != nil {
		return fmt.Errorf("lock inboxes: %w", err)
	}
	for _, r := range rows {
		*byID[r.Seq] = r
	}
	return nil
}

// newestIn moves the batch's time past the newest message of its inboxes: the
// clock may have gone back, or another node's may be ahead. It looks only after
// the inboxes are held.
func (b *hotBatch) newestIn(ctx context.Context, seqs []int64, byID map[int64]*hotInbox) error {
	q, args, err := sqlx.In(`SELECT coalesce((SELECT max(created_at) FROM messages WHERE inbox_seq = i.seq), 0)
		FROM inboxes i WHERE seq IN (?)`, seqs)
	if err != nil {
		return fmt.Errorf("newest messages: %w", err)
	}
	var newest []Time
	if err := b.tx.SelectContext(ctx, &newest, b.tx.Rebind(q), args...); err != nil {
		return fmt.Errorf("newest messages: %w", err)
	}
	for _, t := range newest {
		if t.After(b.now.Time) {
			b.now = t
		}
	}
	return nil
}

func (b *hotBatch) insertMessages(ctx context.Context) error {
	var messages, contents, recipients []any
	for _, m := range b.messages {
		m.CreatedAt = b.now
		messages = append(messages, m.Seq, m.AccountID, m.InboxSeq, m.ThreadSeq, m.ID, m.Direction, m.Status, m.TestMode,
			m.FromEmail, m.Addresses, m.Subject, m.SubjectFold, m.HeaderID, hash64(m.HeaderID), m.Refs, m.Automated,
			m.HasCode, m.HasLink, m.Tag, m.Size, m.CreatedAt)
		m.Content.MessageSeq = m.Seq
		c := m.Content
		contents = append(contents, c.MessageSeq, c.Raw, c.BlobKey, c.Body, c.Snippet, c.Extracted, c.Auth, c.Attachments)
		for i := range m.Recipients {
			r := &m.Recipients[i]
			r.AccountID, r.MessageSeq, r.Status, r.CreatedAt, r.NextAttemptAt = m.AccountID, m.Seq, RecipientQueued, b.now, &b.now
			recipients = append(recipients, r.AccountID, r.MessageSeq, r.Email, r.Domain, r.Kind, r.Status, r.Attempts, r.Fence,
				r.NextAttemptAt, r.CreatedAt)
		}
		b.announce(m)
	}
	stmts := b.store.stmts
	return errors.Join(
		errIn("insert messages", insertMessages.exec(ctx, b.tx, stmts, messages)),
		errIn("insert contents", insertContents.exec(ctx, b.tx, stmts, contents)),
		errIn("insert recipients", insertRecipients.exec(ctx, b.tx, stmts, recipients)),
	)
}

// announce notes the event of a new message and whom it wakes.
func (b *hotBatch) announce(m *NewMessage) {
	b.wake(topic{topicInbox, m.InboxSeq})
	if m.Direction == DirectionIn {
		b.event(EventMessageReceived, &m.Message, EventData{Status: m.Status})
		return
	}
	b.event(EventMessageQueued, &m.Message, EventData{Status: m.Status})
	b.wake(topic{kind: topicQueue})
}

func errIn(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// hash64 makes a small key of a long text; who finds a row by it compares the
// text too.
func hash64(s string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s)) // a hash never fails
	return int64(h.Sum64())   //nolint:gosec // bits, not a number
}
