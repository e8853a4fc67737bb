package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
)

// hotInbox is what a new message needs of its inbox.
type hotInbox struct {
	seq       int64
	accountID int64
	id        string
	address   string
	status    InboxStatus
	expiresAt *Time
	at        Time // when what the batch puts into it is created
}

const (
	lockInboxes = `SELECT seq, account_id, id, address, status, expires_at FROM inboxes
		WHERE seq IN ({list}) ORDER BY seq`
	newestOfAll = `SELECT coalesce(max(newest), 0) FROM
		(SELECT (SELECT max(created_at) FROM messages WHERE account_id = accounts.seq) AS newest FROM accounts) a`
	newestOfInboxes = `SELECT seq, (SELECT max(created_at) FROM messages WHERE inbox_seq = inboxes.seq) FROM inboxes
		WHERE seq IN ({list})`
)

func (b *hotBatch) addMessages(ctx context.Context, batch []hotWrite) error {
	if len(b.messages) == 0 {
		return nil
	}
	if err := b.readInboxes(ctx); err != nil {
		return err
	}
	if err := b.admit(ctx, batch); err != nil {
		return err
	}
	if len(b.messages) == 0 {
		return nil
	}
	if err := b.reserve(ctx); err != nil {
		return errIn("reserve sequence numbers", err)
	}
	if err := b.joinThreads(ctx); err != nil {
		return err
	}
	if err := b.guardThreads(ctx); err != nil {
		return err
	}
	return b.insertMessages(ctx)
}

// reserve takes numbers for the messages, and for a thread each, should they
// need it.
func (b *hotBatch) reserve(ctx context.Context) error {
	b.threads = make([]int64, 0, len(b.messages))
	n := 0
	err := scanAll(ctx, b.tx.StmtContext(ctx, b.store.hot.reserve), []any{int64(len(b.messages))}, func(rows *sql.Rows) error {
		var message, thread int64
		if err := rows.Scan(&message, &thread, &b.txName); err != nil {
			return err
		}
		b.messages[n].msg.Seq, b.threads = message, append(b.threads, thread)
		n++
		return nil
	})
	if err == nil && n != len(b.messages) {
		err = fmt.Errorf("got %d of %d", n, len(b.messages))
	}
	return err
}

// readInboxes holds the inboxes of the batch until the commit, so that none is
// deleted meanwhile and their messages get times in the order of the commits.
func (b *hotBatch) readInboxes(ctx context.Context) error {
	list := make([][2]int64, len(b.messages))
	for i, h := range b.messages {
		list[i][0] = h.msg.InboxSeq
	}
	list = sorted(list)
	if err := b.lockInboxes(ctx, list); err != nil {
		return errIn("lock inboxes", err)
	}
	if err := b.newestIn(ctx, list); err != nil {
		return errIn("newest messages", err)
	}
	b.keepNewest()
	for _, h := range b.messages {
		in := b.inboxes[h.msg.InboxSeq]
		if in == nil || !in.takes(h.msg.Direction, b.now) {
			return fmt.Errorf("inbox %d takes no mail: %w", h.msg.InboxSeq, ErrNotFound)
		}
		h.inbox, h.msg.InboxID, h.msg.AccountID = in, in.id, in.accountID
	}
	return nil
}

// takes says whether a message may be put into the inbox. Of outbound ones only
// those of a deleted inbox are refused here: whether it may send was decided
// when the send was accepted.
func (in *hotInbox) takes(d Direction, now Time) bool {
	if d == DirectionOut {
		return in.status != InboxDeleted
	}
	return in.status == InboxActive && (in.expiresAt == nil || in.expiresAt.After(now.Time))
}

func (b *hotBatch) lockInboxes(ctx context.Context, list [][2]int64) error {
	b.inboxes = make(map[int64]*hotInbox, len(list))
	return b.store.hot.lockInboxes.each(ctx, b.tx, list, func(rows *sql.Rows) error {
		in := hotInbox{at: b.now}
		if err := rows.Scan(&in.seq, &in.accountID, &in.id, &in.address, &in.status, &in.expiresAt); err != nil {
			return err
		}
		b.inboxes[in.seq] = &in
		return nil
	})
}

// newestIn moves the time of an inbox past its newest message: the clock may
// have gone back, or another node's may be ahead. It looks only after the
// inboxes are held, and not at all when this process alone gives out times and
// its clock has moved on.
func (b *hotBatch) newestIn(ctx context.Context, list [][2]int64) error {
	if b.store.dialect.alone() && b.now.UnixMicro() >= b.store.newest.Load() {
		return nil
	}
	return b.store.hot.newest.each(ctx, b.tx, list, func(rows *sql.Rows) error {
		var seq int64
		var newest *Time
		if err := rows.Scan(&seq, &newest); err != nil {
			return err
		}
		if in := b.inboxes[seq]; in != nil && newest != nil && newest.After(in.at.Time) {
			in.at = *newest
		}
		return nil
	})
}

// readNewest begins to keep the time of the newest message, where one process
// owns the database.
func (s *Store) readNewest(ctx context.Context) error {
	if !s.dialect.alone() {
		return nil
	}
	var newest int64
	if err := s.read.GetContext(ctx, &newest, newestOfAll); err != nil {
		return s.wrap(err, "newest message")
	}
	s.newest.Store(newest)
	return nil
}

// keepNewest notes the times of the messages before the commit, so that no later
// one can come before them.
func (b *hotBatch) keepNewest() {
	newest := b.store.newest.Load()
	for _, in := range b.inboxes {
		newest = max(newest, in.at.UnixMicro())
	}
	b.store.newest.Store(newest) // where it is read, there is one committer
}

func (b *hotBatch) insertMessages(ctx context.Context) error {
	messages := make([]any, 0, len(b.messages)*b.store.hot.messages.columns)
	contents := make([]any, 0, len(b.messages)*b.store.hot.contents.columns)
	b.events = slices.Grow(b.events, len(b.messages)*b.store.hot.events.columns)
	tail := make([]any, 0, len(b.messages)*b.store.hot.searchTail.columns)
	var recipients []any
	for _, h := range b.messages {
		m := &h.msg
		m.CreatedAt = h.inbox.at
		messages = append(messages, m.Seq, m.AccountID, m.InboxSeq, m.ThreadSeq, m.ID, string(m.Direction), string(m.Status), m.TestMode,
			m.FromEmail, h.addresses, m.Subject, h.fold, m.HeaderID, hash64(m.HeaderID), h.refs, m.Automated,
			m.HasCode, m.HasLink, orNull(m.Tag), m.Size, m.CreatedAt.UnixMicro())
		c := m.Content
		c.MessageSeq = m.Seq
		tail = append(tail, m.Seq, m.AccountID)
		contents = append(contents, m.Seq, orNullBytes(c.Raw), orNull(c.BlobKey), h.body, c.Snippet, h.extracted, h.auth, h.attachments)
		for i := range m.Recipients {
			r := &m.Recipients[i]
			r.AccountID, r.MessageSeq, r.CreatedAt, r.NextAttemptAt = m.AccountID, m.Seq, b.now, nil
			var due any
			if r.Status != RecipientSuppressed {
				now := b.now
				r.Status, r.NextAttemptAt, due = RecipientQueued, &now, now.UnixMicro()
			}
			recipients = append(recipients, r.AccountID, r.MessageSeq, r.Email, r.Domain, r.Kind, string(r.Status), int64(0), int64(0),
				due, b.now.UnixMicro())
		}
		b.announce(h)
	}
	hot := &b.store.hot
	if err := hot.messages.exec(ctx, b.tx, messages); err != nil {
		return fmt.Errorf("insert messages: %w", err)
	}
	if err := hot.contents.exec(ctx, b.tx, contents); err != nil {
		return fmt.Errorf("insert contents: %w", err)
	}
	if err := hot.searchTail.exec(ctx, b.tx, tail); err != nil {
		return fmt.Errorf("insert into the list of what to index: %w", err)
	}
	return errIn("insert recipients", hot.recipients.exec(ctx, b.tx, recipients))
}

// The data of the events of new messages.
var (
	receivedData = fmt.Sprintf(`{"status":%q}`, MessageReceived)
	queuedData   = fmt.Sprintf(`{"status":%q}`, MessageQueued)
)

// announce notes the event of a new message and whom it wakes.
func (b *hotBatch) announce(h *hotMessage) {
	b.wake(topic{topicInbox, h.msg.InboxSeq})
	if h.msg.Direction == DirectionIn {
		b.event(h.eventID, EventMessageReceived, &h.msg, receivedData)
		return
	}
	b.event(h.eventID, EventMessageQueued, &h.msg, queuedData)
	b.wake(topic{kind: topicQueue})
}

// orNull is s as a parameter: database/sql would need reflection for a pointer.
func orNull(s *string) any {
	if s == nil {
		return nil
	}
	return *s
}

func orNullBytes(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}
