package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/postroom/postroom/store/internal/batch"
)

// hotInbox is what a new message needs of its inbox.
type hotInbox struct {
	seq       int64
	accountID int64
	id        string
	address   string
	status    InboxStatus
	policy    SendPolicy
	expiresAt *Time
	at        Time // when what the batch puts into it is created
}

const (
	lockInboxes = `SELECT seq, account_id, id, address, status, send_policy, expires_at FROM inboxes
		WHERE seq IN ({rows}) ORDER BY seq`
	newestOfAll = `SELECT coalesce(max(newest), 0) FROM
		(SELECT (SELECT max(created_at) FROM messages WHERE account_id = accounts.seq AND inbox_seq IS NOT NULL) AS newest
			FROM accounts) a`
	newestOfInboxes = `SELECT seq, (SELECT max(created_at) FROM messages WHERE inbox_seq = inboxes.seq) FROM inboxes
		WHERE seq IN ({rows})`
)

func (b *hotBatch) addMessages(ctx context.Context) error {
	if len(b.messages)+len(b.emails) == 0 {
		return nil
	}
	if err := b.readInboxes(ctx); err != nil {
		return err
	}
	if err := b.admit(ctx); err != nil {
		return err
	}
	if len(b.messages)+len(b.emails) == 0 {
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
	all := b.all()
	b.threads = make([]int64, 0, len(all))
	n := 0
	err := batch.Scan(ctx, b.tx.StmtContext(ctx, b.store.hot.reserve), []any{int64(len(all))}, func(rows *sql.Rows) error {
		var message, thread int64
		if err := rows.Scan(&message, &thread, &b.txName); err != nil {
			return err
		}
		all[n].msg.Seq, b.threads = message, append(b.threads, thread)
		n++
		return nil
	})
	if err == nil && n != len(all) {
		err = fmt.Errorf("got %d of %d", n, len(all))
	}
	return err
}

// all are the new messages, those of inboxes and emails.
func (b *hotBatch) all() []*hotMessage {
	all := append(make([]*hotMessage, 0, len(b.messages)+len(b.emails)), b.messages...)
	for _, e := range b.emails {
		all = append(all, e.hotMessage)
	}
	return all
}

// readInboxes holds the inboxes of the batch until the commit, so that none is
// deleted meanwhile, none gets another policy than their mail was held against,
// and their messages get times in the order of the commits.
func (b *hotBatch) readInboxes(ctx context.Context) error {
	list := make([][2]int64, len(b.messages))
	for i, h := range b.messages {
		list[i][0] = h.msg.InboxSeq
	}
	for _, h := range b.emails {
		if h.policy != "" {
			list = append(list, [2]int64{*h.email.FromInbox})
		}
	}
	list = batch.Sorted(list)
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
			return b.ofMessage(h, fmt.Errorf("inbox %d takes no mail: %w", h.msg.InboxSeq, ErrNotFound))
		}
		if err := h.holds(in); err != nil {
			return b.ofMessage(h, err)
		}
		h.inbox, h.msg.InboxID, h.msg.AccountID = in, in.id, in.accountID
	}
	for _, h := range b.emails {
		if h.policy == "" {
			continue
		}
		in := b.inboxes[*h.email.FromInbox]
		if in == nil || in.status == InboxDeleted {
			return b.ofMessage(h.hotMessage, fmt.Errorf("inbox %d is deleted: %w", *h.email.FromInbox, ErrNotFound))
		}
		if err := h.holds(in); err != nil {
			return b.ofMessage(h.hotMessage, err)
		}
	}
	return nil
}

// holds says whether the inbox has the policy that the mail was held against.
func (h *hotMessage) holds(in *hotInbox) error {
	if h.policy != "" && h.policy != in.policy {
		return fmt.Errorf("inbox %s is %s, not %s: %w", in.id, in.policy, h.policy, ErrPolicyChanged)
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
	return b.store.hot.lockInboxes.Find(ctx, b.tx, list, func(rows *sql.Rows) error {
		in := hotInbox{at: b.now}
		if err := rows.Scan(&in.seq, &in.accountID, &in.id, &in.address, &in.status, &in.policy, &in.expiresAt); err != nil {
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
	if b.store.engine.Alone() && b.now.UnixMicro() >= b.store.newest.Load() {
		return nil
	}
	return b.store.hot.newest.Find(ctx, b.tx, list, func(rows *sql.Rows) error {
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
	if !s.engine.Alone() {
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

// The data of the events of new messages.
var (
	receivedData = fmt.Sprintf(`{"status":%q}`, MessageReceived)
	queuedData   = fmt.Sprintf(`{"status":%q}`, MessageQueued)

	cancelledData = fmt.Sprintf(`{"status":%q}`, EmailCancelled)
)

// announce notes the event of a new message and whom it wakes.
func (b *hotBatch) announce(h *hotMessage) {
	b.wake(topic{topicInbox, h.msg.InboxSeq})
	if h.msg.Direction == DirectionIn {
		b.event(h.eventID, EventMessageReceived, &h.msg, receivedData)
		return
	}
	b.event(h.eventID, EventMessageQueued, &h.msg, queuedData)
	b.tellOfSuppressed(h, EventMessageFailed)
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
