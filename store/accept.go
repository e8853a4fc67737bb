package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/internal/crashpoint"
)

// Enqueue accepts an outbound message: it is stored with its recipients, which
// are due at once unless they are suppressed, and returned. With once, the
// response is cached too. It returns a *Refused if the message may not leave, or must
// become a draft instead, and ErrNotFound if the inbox is deleted.
func (s *Store) Enqueue(ctx context.Context, m *NewMessage, once *Once) (Message, error) {
	return s.acceptMessage(ctx, "enqueue", m, nil, once)
}

// SendDraft is Enqueue for the mail that an approved draft makes: the draft is
// sent by the same transaction. It returns ErrState if it has been decided,
// edited or deleted since it was read; then nothing is sent.
func (s *Store) SendDraft(ctx context.Context, m *NewMessage, a Approval, once *Once) (Message, error) {
	return s.acceptMessage(ctx, "send draft", m, &a, once)
}

// ScheduleDraft approves a draft that leaves after wait. Until then the approval can be
// undone. It asks the rules as SendDraft does, and counts nothing: they are asked again
// when the draft is due. The message is as it will be; it needs no content.
func (s *Store) ScheduleDraft(ctx context.Context, m *NewMessage, a Approval, wait time.Duration) (Message, error) {
	h := &preparedMessage{msg: m.Message, domain: m.VerifiedDomain, autoReply: m.AutoReply, senders: m.Senders, text: m.Text}
	h.msg.ID, h.msg.Recipients = NewID("msg_", s.now()), slices.Clone(m.Recipients)
	send := &sending{preparedMessage: h, category: m.Category, inboxSeq: m.InboxSeq, approval: &a, asks: true}
	err := s.inTx(ctx, "schedule draft", func(tx *sqlx.Tx) error {
		if err := s.ask(ctx, tx, send, m.Senders); err != nil {
			return err
		}
		send.msg.CreatedAt = NewTime(s.now().Add(wait))
		d, err := s.approve(ctx, tx, send.msg.AccountID, &a, stepSchedule, func(d *Draft) {
			d.MessageID, d.SendAfter = &send.msg.ID, &send.msg.CreatedAt
		})
		send.msg.ThreadID = deref(d.ThreadID)
		crashpoint.Reach(crashpoint.Schedule)
		return err
	})
	return send.msg, err
}

// ask decides about a message that has no number yet.
func (s *Store) ask(ctx context.Context, tx *sqlx.Tx, send *sending, by []Sender) error {
	if err := s.addMaker(ctx, tx, send, by); err != nil {
		return err
	}
	send.msg.Seq = 0 // it is counted when it has a number
	return s.decide(ctx, tx, []*sending{send})
}

func (s *Store) acceptMessage(ctx context.Context, what string, m *NewMessage, a *Approval, once *Once) (Message, error) {
	h, err := prepareMessage(m, s.now())
	if err != nil {
		return Message{}, fmt.Errorf("%s: %w", what, err)
	}
	if a != nil && a.MessageID != "" {
		h.msg.ID = a.MessageID
	}
	send := &sending{preparedMessage: h, category: m.Category, inboxSeq: m.InboxSeq, approval: a}
	err = s.accept(ctx, what, []*preparedMessage{h}, once, func(tx *sqlx.Tx, now Time, w *written) error {
		if err := s.ask(ctx, tx, send, m.Senders); err != nil {
			return err
		}
		if err := s.addToInbox(ctx, tx, h, now, w); err != nil {
			return err
		}
		if err := send.record(ctx, txReader{s.prepared, tx}); err != nil {
			return err
		}
		w.accepted = send.liveRecipients()
		if err := s.cacheResponse(ctx, tx, once, h.msg.ID, h.msg); err != nil || a == nil {
			return err
		}
		// It comes after the cached response, so that the second of two equal calls learns
		// that it is one.
		err := s.sendApproved(ctx, tx, a, &h.msg)
		if a.MessageID != "" {
			crashpoint.Reach(crashpoint.Due)
		}
		return err
	})
	return h.msg, err
}

// addMaker adds the key that made a draft to those who send it: its limits and stops hold
// too, unless it is revoked.
func (s *Store) addMaker(ctx context.Context, tx *sqlx.Tx, m *sending, by []Sender) error {
	a := m.approval
	if a == nil || a.CreatedBy == a.By || !strings.HasPrefix(a.CreatedBy, "key_") {
		return nil
	}
	maker, ended, err := s.readSender(ctx, tx, a.CreatedBy, "")
	if err == nil && ended != keyRevoked {
		m.senders, m.msg.SentBy = append(slices.Clone(by), maker), &maker.ID
	}
	return err
}

// accept runs the transaction that accepts messages.
func (s *Store) accept(ctx context.Context, what string, hs []*preparedMessage, once *Once, do func(*sqlx.Tx, Time, *written) error) error {
	err := s.add(ctx, what, 0, func(tx *sqlx.Tx, w *written) error {
		now := NewTime(s.now())
		for _, h := range hs {
			if err := checkBlobs(now.Time, h.msg.Content.BlobKey); err != nil {
				return err
			}
		}
		if err := do(tx, now, w); err != nil {
			return err
		}
		if once != nil {
			crashpoint.Reach(crashpoint.Accept)
		}
		return nil
	})
	if _, refused := errors.AsType[*Refused](err); refused {
		s.dropBlobs(ctx, hs)
	}
	if err != nil {
		return err
	}
	if once != nil {
		crashpoint.Reach(crashpoint.Queue)
	}
	return nil
}

// dropBlobs removes the blobs of messages that were refused. Others are swept later.
func (s *Store) dropBlobs(ctx context.Context, hs []*preparedMessage) {
	var keys []string
	for _, h := range hs {
		if key := h.msg.Content.BlobKey; key != nil {
			keys = append(keys, *key)
		}
	}
	if _, err := s.removeUnnamed(ctx, keys); err != nil {
		s.log.WarnContext(ctx, "blobs left to be swept", "error", err)
	}
}

// EnqueueEmail accepts an email: it is stored with its recipients, which are due
// at once or when it is scheduled, and returned. With once, whose row is the
// Email, the response is cached too. It returns a *Refused if the email may not leave, or
// must become a draft instead, and ErrNotFound if the inbox that it is from is deleted.
func (s *Store) EnqueueEmail(ctx context.Context, n *NewEmail, once *Once) (Email, error) {
	all, err := s.acceptEmails(ctx, "enqueue email", []*NewEmail{n}, "", once)
	if err != nil {
		return Email{}, err
	}
	return emailsOf(all)[0], nil
}

// EnqueueBatch is EnqueueEmail for many emails at once, all or none, except for
// those that are refused one by one or become drafts. The row of once is the Batch.
func (s *Store) EnqueueBatch(ctx context.Context, ns []*NewEmail, once *Once) (Batch, error) {
	const what = "enqueue batch"
	if len(ns) == 0 {
		return Batch{}, errors.New(what + ": no email")
	}
	id := NewID("batch_", s.now())
	for _, n := range ns {
		n.BatchID = &id
	}
	all, err := s.acceptEmails(ctx, what, ns, id, once)
	if err != nil {
		return Batch{}, err
	}
	return batchOf(id, all), nil
}

// errNeedsDrafts means that emails of a batch become drafts that are not made yet.
var errNeedsDrafts = errors.New("emails of the batch need approval")

func (s *Store) acceptEmails(ctx context.Context, what string, ns []*NewEmail, batchID string, once *Once) ([]*preparedEmail, error) {
	hs, ms := make([]*preparedEmail, len(ns)), make([]*preparedMessage, len(ns))
	for i, n := range ns {
		var err error
		if hs[i], err = prepareEmail(n, s.now()); err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		hs[i].inBatch = batchID != ""
		ms[i] = hs[i].preparedMessage
	}
	for {
		err := s.accept(ctx, what, ms, once, func(tx *sqlx.Tx, now Time, w *written) error {
			var err error
			if w.name, err = s.number(ctx, tx, ms); err != nil {
				return err
			}
			return s.insertEmails(ctx, tx, now, hs, batchID, once, w)
		})
		if !errors.Is(err, errNeedsDrafts) {
			return hs, err
		}
		for i, h := range hs {
			if h.draft != nil || h.refused == nil || !h.refused.Hold {
				continue
			}
			n, err := ns[i].Draft(ctx)
			if err != nil {
				return nil, err
			}
			if n.kept, err = s.keepDraftFiles(ctx, n.Files); err != nil {
				return nil, fmt.Errorf("%s: %w", what, err)
			}
			h.draft = &n
		}
	}
}

// insertEmails decides about the emails of one call and stores those that may leave, and
// the drafts that others become.
func (s *Store) insertEmails(ctx context.Context, tx *sqlx.Tx, now Time, hs []*preparedEmail, batchID string, once *Once, w *written) error {
	sends := each(hs, func(h *preparedEmail) *sending { return h.sending })
	if err := s.decide(ctx, tx, sends); err != nil {
		return err
	}
	var rows []newRow
	var events []newEvent
	for _, h := range hs {
		h.held = ""
		switch {
		case h.refused == nil:
			h.msg.CreatedAt = now
			rows = append(rows, h.rows(now)...)
			events = append(events, h.events()...)
			w.ids = append(w.ids, h.msg.ID)
			w.accepted += h.liveRecipients()
			w.large += len(h.msg.Content.Raw) / largeWrite
		case h.refused.Hold && h.draft == nil:
			return errNeedsDrafts
		case h.refused.Hold:
			n := *h.draft
			n.AccountID, n.InboxSeq, n.InboxID = h.inbox.accountID, h.inbox.seq, h.inbox.id
			d, err := s.insertDraft(ctx, tx, &n, now)
			if err != nil {
				return err
			}
			h.held = d.ID
			events = append(events, newDraftEvents(d)...)
		}
	}
	more, err := s.eventRows(ctx, tx, now, events...)
	if err != nil {
		return err
	}
	for _, kind := range []topicKind{topicEvents, topicWebhooks, topicQueue} {
		w.wake(topic{kind: kind})
	}
	if err := s.insert(ctx, tx, append(rows, more...)...); err != nil {
		return err
	}
	if batchID != "" {
		return s.cacheResponse(ctx, tx, once, batchID, batchOf(batchID, hs))
	}
	e := emailsOf(hs)[0]
	return s.cacheResponse(ctx, tx, once, e.ID, e)
}

// rows are the rows of an email. The recipients of one that is scheduled are due when it
// is queued.
func (h *preparedEmail) rows(now Time) []newRow {
	e := &h.email
	var scheduled, due any
	if e.ScheduledAt != nil {
		scheduled = e.ScheduledAt.UnixMicro()
	} else {
		due = now.UnixMicro()
	}
	rows := append(messageRows(h.preparedMessage, now, nil, nil, due), newRow{into: intoEmails, values: []any{
		h.msg.Seq, h.msg.AccountID, orNull(e.FromInbox), orNull(e.BatchID), string(e.Category), h.tags, h.metadata,
		scheduled, scheduled, zeroNull(h.senders[0].ID),
	}})
	for name, value := range e.Tags.V {
		rows = append(rows, newRow{into: intoEmailTags, values: []any{h.msg.AccountID, name, labelText(value), h.msg.Seq}})
	}
	return rows
}

// events are the events of an accepted email: that it is queued or scheduled, and one for
// each suppressed recipient.
func (h *preparedEmail) events() (all []newEvent) {
	event := func(typ EventType, data string) {
		about := notice{account: h.msg.AccountID, message: h.msg.Seq, typ: typ}
		all = append(all, newEvent{about, h.msg.TestMode, json.RawMessage(data)})
	}
	switch h.msg.Status {
	case EmailScheduled:
		event(EventEmailScheduled, scheduledEvent(h.email.ScheduledAt))
	case MessageQueued:
		event(EventEmailQueued, queuedData)
	default: // all recipients are suppressed
	}
	for _, data := range h.suppressed {
		event(EventEmailSuppressed, data)
	}
	return all
}

// number gives emails their numbers and returns the name of the transaction.
func (s *Store) number(ctx context.Context, tx *sqlx.Tx, hs []*preparedMessage) (name string, err error) {
	if s.engine.Alone() { // the numbers that follow are free
		first, _, name, err := s.numbers(ctx, tx)
		for i, h := range hs {
			h.msg.Seq = first + int64(i)
		}
		return name, err
	}
	q := `SELECT ` + s.engine.NextNumber("messages") + `, ` + s.engine.TxName() + ` FROM generate_series(1, cast($1 AS bigint))`
	rows, err := s.prepared.Query(ctx, tx, q, len(hs))
	if err != nil {
		return "", errIn("next numbers", err)
	}
	defer func() { _ = rows.Close() }() // its error is that of rows.Err
	for i := 0; rows.Next(); i++ {
		if err := rows.Scan(&hs[i].msg.Seq, &name); err != nil {
			return "", errIn("next numbers", err)
		}
	}
	return name, errIn("next numbers", rows.Err())
}

// keyRevoked is why a revoked key does not send what it scheduled.
const keyRevoked = "the key that scheduled it was revoked"

// readSender reads a key or person who sent something earlier. ended says why they may
// not send any more. lock keeps others from changing that until the commit.
func (s *Store) readSender(ctx context.Context, tx *sqlx.Tx, id, lock string) (by Sender, ended string, err error) {
	const (
		keys  = `SELECT limits, revoked_at, expires_at FROM api_keys WHERE id = $1`
		users = `SELECT removed_at, role FROM users WHERE id = $1`
	)
	by.ID = id
	found, err := getAll[Key](ctx, tx, keys+lock, id)
	if err != nil {
		return by, "", errIn("key that sends", err)
	}
	for _, k := range found {
		by.Limits = k.Bounds()
		switch {
		case k.RevokedAt != nil:
			ended = keyRevoked
		case k.ExpiresAt != nil && !k.ExpiresAt.After(s.now()):
			ended = "the key that scheduled it has expired"
		}
	}
	people, err := getAll[User](ctx, tx, users+lock, id)
	for _, u := range people {
		switch {
		case u.RemovedAt != nil:
			ended = "the person who scheduled it was removed"
		case !u.Role.Includes(RoleApprover):
			ended = "the person who scheduled it may no longer send"
		}
	}
	return by, ended, errIn("user who sends", err)
}

// readAccepted returns how many recipients an account was accepted to send to on a day
// and in its month.
func readAccepted(ctx context.Context, from getter, account int64, now time.Time) (acceptedSends, error) {
	const q = `SELECT cast(coalesce(sum(n), 0) AS bigint) AS month, cast(coalesce(sum(CASE WHEN day = $3 THEN n END), 0) AS bigint) AS today
		FROM send_counts WHERE account_id = $1 AND day >= $2 AND kind = 'accepted'`
	first, _ := monthOf(now)
	u, err := getOne[acceptedSends](ctx, from, q, account, first, dayOf(now))
	return u, errIn("accepted recipients", err)
}

// acceptedSends is how many recipients an account was accepted to send to.
type acceptedSends struct {
	Month int64 `db:"month"`
	Today int64 `db:"today"`
}
