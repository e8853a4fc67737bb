package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/internal/crashpoint"
	"github.com/postroom/postroom/internal/mail"
)

// AddReceived stores the copies of one received mail, one for each inbox that it
// is for, all or none, and returns them as stored. When the mail came from our
// own queue, attempts are recorded in the same transaction, so that the mail
// cannot arrive twice. When it is a report about mail of ours, what it says is
// recorded with it. It returns ErrNotFound if an inbox takes no mail any more.
func (s *Store) AddReceived(ctx context.Context, copies []*NewMessage, attempts []*Attempt, reports ...*Report) ([]Message, error) {
	return s.addReceived(ctx, "add received mail", copies, attempts, reports, nil)
}

// AddSimulated stores a message that no one sent, as if it had been received, and
// returns it as stored. With once, the response is cached too. It returns
// ErrNotFound if the inbox takes no mail.
func (s *Store) AddSimulated(ctx context.Context, m *NewMessage, once *Once) (Message, error) {
	ms, err := s.addReceived(ctx, "add simulated mail", []*NewMessage{m}, nil, nil, func(tx *sqlx.Tx, m Message) error {
		err := s.cacheResponse(ctx, tx, once, m.ID, m)
		crashpoint.Reach(crashpoint.Accept)
		return err
	})
	if err != nil {
		return Message{}, err
	}
	return ms[0], nil
}

// addReceived is AddReceived. then, if any, runs in the transaction with the first message.
func (s *Store) addReceived(
	ctx context.Context, what string, copies []*NewMessage, attempts []*Attempt, reports []*Report, then func(*sqlx.Tx, Message) error,
) ([]Message, error) {
	if len(copies) == 0 {
		return nil, errors.New(what + ": no inbox")
	}
	all, alike := make([]*preparedMessage, len(copies)), map[likeness]string{}
	for i, m := range copies {
		var err error
		if all[i], err = prepareMessage(m, s.now()); err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		if err := s.rate(ctx, all[i], NewTime(s.now()), alike); err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
	}
	for _, a := range attempts {
		if err := a.check(); err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
	}
	var r *recording
	var locks int64 // one inbox and nothing else
	if len(all)+len(attempts)+len(reports) == 1 && then == nil {
		locks = all[0].msg.InboxSeq
	}
	err := s.add(ctx, what, locks, func(tx *sqlx.Tx, w *written) error {
		r = s.newRecording(tx)
		if err := r.record(ctx, attempts, reports); err != nil {
			return err
		}
		if err := s.receive(ctx, tx, all, w); err != nil || then == nil {
			return err
		}
		return then(tx, all[0].msg)
	})
	if err != nil {
		return nil, err
	}
	if len(attempts)+len(reports) > 0 {
		r.done(ctx)
	}
	s.noteHeld(all)
	return each(all, func(h *preparedMessage) Message { return h.msg }), nil
}

// written is what a transaction has added, for what follows its commit.
type written struct {
	name     string   // of the transaction, to engine.Committed
	ids      []string // of the new messages
	large    int      // by how many writes the raw messages count more
	received int64    // messages outside of test mode
	accepted int64    // recipients outside of test mode
	topics   map[topic][]arrival
}

// wake notes whom to wake after the commit.
func (w *written) wake(t topic) { w.topics[t] = append(w.topics[t], nil...) }

// add runs do, which adds messages, in a transaction. If the connection breaks during
// the commit, it asks the server what became of it: the sender of a message that was
// stored must not send it again. locks is for committer.write.
func (s *Store) add(ctx context.Context, what string, locks int64, do func(*sqlx.Tx, *written) error) error {
	var w written
	err := s.wrap(s.committer.write(ctx, locks, func(tx *sqlx.Tx) error {
		w = written{topics: map[topic][]arrival{}}
		return do(tx, &w)
	}), what)
	if _, unclear := errors.AsType[*commitError](err); unclear && s.wasCommitted(ctx, w.name, err, outcomeTimeout, len(w.ids), w.isStored(s)) {
		err = nil
	}
	if err != nil {
		return err
	}
	s.totals.stored.Add(int64(len(w.ids)))
	s.wake.wakeWith(w.topics)
	s.engine.Wrote(1 + w.large)
	s.totals.receive(w.received, w.accepted)
	return nil
}

// isStored reports whether one of the messages is stored, or none was to be.
func (w *written) isStored(s *Store) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		if len(w.ids) == 0 {
			return true, nil
		}
		var found []string
		err := selectIn(ctx, s.read, &found, `SELECT id FROM messages WHERE id IN (?)`, w.ids)
		return len(found) > 0, err
	}
}

// receive stores the copies of a received mail.
func (s *Store) receive(ctx context.Context, tx *sqlx.Tx, copies []*preparedMessage, w *written) error {
	now := NewTime(s.now())
	for _, h := range copies {
		if err := checkBlobs(now.Time, h.msg.Content.BlobKey); err != nil {
			return err
		}
	}
	if err := s.lockInboxesOf(ctx, tx, copies, now); err != nil {
		return err
	}
	if err := s.checkSender(ctx, tx, copies); err != nil {
		return err
	}
	for _, h := range copies {
		if err := s.addToInbox(ctx, tx, h, now, w); err != nil {
			return err
		}
	}
	return nil
}

// lockInboxesOf locks the inboxes of messages and checks that they take them.
func (s *Store) lockInboxesOf(ctx context.Context, tx *sqlx.Tx, ms []*preparedMessage, now Time) error {
	inboxes := map[int64]*lockedInbox{}
	for _, seq := range rising(ms, func(h *preparedMessage) int64 { return h.msg.InboxSeq }) {
		in, err := s.lockForMessage(ctx, tx, seq, now)
		if err != nil {
			return err
		}
		inboxes[seq] = in
	}
	for _, h := range ms {
		in := inboxes[h.msg.InboxSeq]
		if in == nil || !in.takes(h.msg.Direction, now) {
			return fmt.Errorf("inbox %d takes no mail: %w", h.msg.InboxSeq, ErrNotFound)
		}
		h.inbox, h.msg.InboxID, h.msg.AccountID = in, in.id, in.accountID
	}
	return nil
}

// lockForMessage holds an inbox until the commit, so that it is not deleted or changed
// meanwhile, and its messages get times in the order of the commits. It returns nil if the inbox does not exist.
func (s *Store) lockForMessage(ctx context.Context, tx *sqlx.Tx, seq int64, now Time) (*lockedInbox, error) {
	const q = `SELECT seq, account_id, id, address, status, send_policy, expires_at, limits, quarantine,
		EXISTS (SELECT 1 FROM lists WHERE lists.account_id = inboxes.account_id AND direction = 'inbound') FROM inboxes WHERE seq = $1`
	in := &lockedInbox{at: now}
	var limits *JSON[Limits]
	err := s.prepared.Row(ctx, tx, q+s.engine.LockRow(), []any{seq},
		&in.seq, &in.accountID, &in.id, &in.address, &in.status, &in.policy, &in.expiresAt, &limits, (*string)(&in.quarantine), &in.listed)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil //nolint:nilnil // it does not exist
	}
	if limits != nil {
		in.limits = &limits.V
	}
	return in, errIn("lock inbox", err)
}

// addToInbox stores a message in its inbox, which is locked, with its thread, its
// recipients and its events.
func (s *Store) addToInbox(ctx context.Context, tx *sqlx.Tx, h *preparedMessage, now Time, w *written) error {
	e := s.engine
	q := `SELECT ` + e.TxName() + `, ` + e.NextNumber("messages") + `, ` + e.NextNumber("threads") + `,
		coalesce((SELECT max(created_at) FROM messages WHERE inbox_seq = $1), 0),
		EXISTS (SELECT 1 FROM thread_references WHERE inbox_seq = $1 AND header_hash = $2),
		EXISTS (SELECT 1 FROM webhook_endpoints WHERE account_id = $3 AND active)`
	var newest, thread int64
	var awaited, hooked bool
	err := s.prepared.Row(ctx, tx, q, []any{h.inbox.seq, hash64(h.msg.HeaderID), h.inbox.accountID},
		&w.name, &h.msg.Seq, &thread, &newest, &awaited, &hooked)
	if err != nil {
		return errIn("look into the inbox", err)
	}
	if h.facts != nil && h.inbox.quarantine != "" && h.msg.safetyLevel().AtLeast(h.inbox.quarantine) {
		h.msg.Status = MessageQuarantined
	}
	// The clock may have gone back, or another node's may be ahead.
	h.inbox.at = Time{time.UnixMicro(max(h.inbox.at.UnixMicro(), newest))}
	h.msg.CreatedAt = h.inbox.at
	rows, err := s.joinThread(ctx, tx, h, thread, awaited)
	if err != nil {
		return err
	}
	rows = append(append(rows, h.met...), messageRows(h, now, h.inbox.seq, h.msg.ThreadSeq, now.UnixMicro())...)
	events := h.events()
	for i := range events {
		row, err := events[i].row(now)
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	if hooked {
		deliveries, err := s.deliveryRows(ctx, tx, now, events)
		if err != nil {
			return err
		}
		rows = append(rows, deliveries...)
	}
	if err := s.insert(ctx, tx, rows...); err != nil {
		return err
	}
	w.note(h, hooked)
	return nil
}

// events are the events of a message that is added to an inbox.
func (h *preparedMessage) events() []newEvent {
	m := &h.msg
	event := func(typ EventType, data string) newEvent {
		return newEvent{notice{account: m.AccountID, inbox: m.InboxSeq, message: m.Seq, typ: typ}, m.TestMode, json.RawMessage(data)}
	}
	one := event(EventMessageQueued, queuedData)
	switch {
	case h.quarantined():
		one = event(EventMessageQuarantined, quarantinedData)
	case m.Direction == DirectionIn:
		one = event(EventMessageReceived, receivedData)
	}
	one.id = h.eventID
	all := []newEvent{one}
	for _, data := range h.suppressed {
		all = append(all, event(EventMessageFailed, data))
	}
	return all
}

// note notes what follows from a message when it is committed.
func (w *written) note(h *preparedMessage, hooked bool) {
	m := &h.msg
	w.ids = append(w.ids, m.ID)
	w.large += len(m.Content.Raw) / largeWrite
	w.wake(topic{kind: topicEvents})
	if hooked {
		w.wake(topic{kind: topicWebhooks})
	}
	if h.quarantined() {
		return
	}
	t := topic{topicInbox, m.InboxSeq}
	w.topics[t] = append(w.topics[t], arrivalOf(m, h.fold))
	if m.Direction == DirectionOut {
		w.wake(topic{kind: topicQueue})
	} else if !m.TestMode {
		w.received++
	}
}

// checkSender decides by lists about the copies of a received mail: it is refused, or
// put into quarantine, as are the blocked copies of a mail that other inboxes take.
func (s *Store) checkSender(ctx context.Context, tx *sqlx.Tx, copies []*preparedMessage) error {
	var blocked []*preparedMessage
	var why *ListError
	for _, h := range copies {
		h.msg.Status = MessageReceived
		if !h.inbox.listed {
			continue
		}
		entries, err := readLists(ctx, tx, []int64{h.msg.AccountID}, ListInbound)
		if err != nil {
			return errIn("lists", err)
		}
		l := listFor(entries, h.inbox.seq)
		switch action, by := l.Of(h.msg.FromEmail, h.authenticated()); action {
		case mail.ListBlock:
			blocked = append(blocked, h)
			if why == nil {
				why = &ListError{Entry: by.ID, InboxID: h.inbox.id}
			}
			if trusted, _ := l.Of(h.msg.FromEmail, true); trusted != mail.ListBlock && h.mayBeAuthentic() {
				why.Temporary = true
			}
			why.blocked = append(why.blocked, newEvent{
				notice{account: h.msg.AccountID, inbox: h.inbox.seq, typ: EventMessageBlocked}, h.msg.TestMode,
				BlockedEventData{From: h.msg.FromEmail, ListID: by.ID},
			})
		case mail.ListApprove:
			h.msg.Status = MessageQuarantined
		}
	}
	if why != nil && len(blocked) == len(copies) {
		return why
	}
	for _, h := range blocked {
		h.msg.Status = MessageQuarantined
	}
	return nil
}

// releaseMessage makes h of a message in quarantine, whose number is from: it is received now.
// It returns ErrState if the message is not in quarantine.
func (s *Store) releaseMessage(ctx context.Context, tx *sqlx.Tx, h *preparedMessage, from int64, w *written) error {
	const free = `UPDATE messages SET id = id || '.released' WHERE seq = $1 AND quarantined AND expired_at IS NULL RETURNING thread_seq`
	now := NewTime(s.now())
	if err := s.lockInboxesOf(ctx, tx, []*preparedMessage{h}, now); err != nil {
		return err
	}
	var thread int64
	if err := tx.GetContext(ctx, &thread, free, from); errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("message %s: %w", h.msg.ID, ErrState)
	} else if err != nil {
		return errIn("release", err)
	}
	if err := s.addToInbox(ctx, tx, h, now, w); err != nil {
		return err
	}
	err := execAll(ctx, tx, []statement{
		{`UPDATE events SET message_seq = $2 WHERE message_seq = $1 AND type NOT IN ('message.received', 'message.queued')`, []any{from, h.msg.Seq}},
		{`UPDATE webhook_deliveries SET message_seq = $2 WHERE message_seq = $1`, []any{from, h.msg.Seq}},
		{`DELETE FROM contents WHERE message_seq = $1`, []any{from}},
		{`DELETE FROM messages WHERE seq = $1`, []any{from}},
		{`DELETE FROM threads WHERE seq = $1`, []any{thread}},
	})
	if err != nil {
		return errIn("release", err)
	}
	return s.unindex(ctx, tx, []int64{from})
}

// record records attempts and reports that come with a received mail.
func (r *recording) record(ctx context.Context, attempts []*Attempt, reports []*Report) error {
	lost, err := r.attempts(ctx, attempts)
	if err == nil && len(lost) > 0 {
		err = lost[0].lost()
	}
	for _, report := range reports {
		if err == nil {
			err = r.report(ctx, report)
		}
	}
	return err
}
