package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/work"
	"github.com/postroom/postroom/store/internal/engine"
)

// EventTail follows the event log of all accounts. Events get their number before
// their transaction commits, so that a lower number may appear after a higher
// one. The tail knows the number up to which no further events can appear: a
// reader that stops there reads every event once, in order. It is not safe for
// concurrent use.
type EventTail struct {
	store   *Store
	log     func(context.Context) (engine.LogState, error)
	known   bool       // settled is
	settled int64      // no event up to here can appear any more
	mark    *eventMark // what settled waits for
	last    int64      // the last number that was assigned
	epoch   int        // how often the numbers have gone back
}

// eventMark is how the log was at one moment.
type eventMark struct {
	newest  int64
	writers []string // transactions that had not ended, and may have a lower number
}

// TailEvents returns a tail that has checked nothing yet.
func (s *Store) TailEvents() *EventTail { return &EventTail{store: s, log: s.engine.EventLog} }

// Settle reads the log and returns the number up to which it is settled;
// known is false before there is one. Pending says that there are newer events,
// for which it has to be called again when other transactions have had time to
// end.
func (t *EventTail) Settle(ctx context.Context) (settled int64, known, pending bool, err error) {
	log, err := t.log(ctx)
	if err != nil {
		return t.settled, t.known, t.mark != nil, t.store.wrap(err, "newest row")
	}
	newest, writers := log.Newest, log.Writers
	if log.Last < t.last { // a standby has taken over that lacks the end of the log
		t.settled, t.known, t.mark = 0, false, nil
		t.epoch++
	}
	t.last = log.Last
	if t.mark != nil {
		t.mark.writers = slices.DeleteFunc(t.mark.writers, func(w string) bool { return !slices.Contains(writers, w) })
		if len(t.mark.writers) == 0 {
			t.settle(t.mark.newest)
		}
	}
	if t.mark == nil && (!t.known || newest > t.settled) {
		t.mark = &eventMark{newest, writers}
		if len(writers) == 0 {
			t.settle(newest)
		}
	}
	return t.settled, t.known, t.mark != nil, nil
}

// Epoch counts how often event numbers have gone back, as after a failover to a
// standby that lacks the end of the log. Numbers of an earlier epoch are invalid.
func (t *EventTail) Epoch() int { return t.epoch }

func (t *EventTail) settle(seq int64) {
	t.settled, t.known, t.mark = max(t.settled, seq), true, nil
}

// settledTo returns the number up to which no further rows of a table can appear, or 0
// if other transactions stay open.
func (s *Store) settledTo(ctx context.Context, log func(context.Context) (engine.LogState, error)) (int64, error) {
	tail := EventTail{store: s, log: log}
	for pause := time.Millisecond; ; pause *= 2 {
		settled, known, _, err := tail.Settle(ctx)
		if err != nil || known {
			return settled, err
		}
		if pause > s.limits.settle || !work.Pause(ctx, pause, nil) {
			return 0, s.wrap(ctx.Err(), "wait for open transactions")
		}
	}
}

// EventsBetween returns the events of all accounts above after and up to upTo,
// which must be settled: at most limit, the oldest first.
func (s *Store) EventsBetween(ctx context.Context, after, upTo int64, limit int) ([]Event, error) {
	const q = `SELECT ` + eventColumns + eventTables + ` WHERE e.seq > $1 AND e.seq <= $2 ORDER BY e.seq LIMIT $3`
	return readAll[Event](ctx, s, "events", q, after, upTo, limit)
}

// EventsOf is EventsBetween for the events of one account.
func (s *Store) EventsOf(ctx context.Context, accountID, after, upTo int64, limit int) ([]Event, error) {
	const q = `SELECT ` + eventColumns + eventTables + `
		WHERE e.account_id = $1 AND e.seq > $2 AND e.seq <= $3 ORDER BY e.seq LIMIT $4`
	return readAll[Event](ctx, s, "events of the account", q, accountID, after, upTo, limit)
}

// eventsSince returns the oldest events of the account at a time or later, in the order
// of their times: at most limit.
func (s *Store) eventsSince(ctx context.Context, accountID int64, since Time, limit int) ([]Event, error) {
	const (
		first = `SELECT count(*) AS n, coalesce(max(created_at), 0) AS newest FROM (
			SELECT created_at FROM events WHERE account_id = $1 AND seq > $2 AND created_at >= $3 ORDER BY seq LIMIT $4) e`
		q = `SELECT ` + eventColumns + eventTables + ` WHERE e.seq IN (
			SELECT seq FROM events WHERE account_id = $1 AND seq > $2 AND seq <= $3 AND created_at >= $4
			 ORDER BY created_at, seq LIMIT $5) ORDER BY e.created_at, e.seq`
	)
	after, err := s.eventsBefore(ctx, since)
	if err != nil {
		return nil, err
	}
	// The oldest events are not newer than the newest of as many others. This bounds
	// their numbers, so that the query need not read the rest of the log.
	var row struct {
		N      int  `db:"n"`
		Newest Time `db:"newest"`
	}
	if err := s.read.GetContext(ctx, &row, first, accountID, after, since, limit); err != nil {
		return nil, s.wrap(err, "events since a time")
	}
	upTo := int64(math.MaxInt64)
	if row.N == limit {
		if upTo, err = s.EventsFrom(ctx, row.Newest.Add(searchSkew)); err != nil {
			return nil, err
		}
	}
	return readAll[Event](ctx, s, "events since a time", q, accountID, after, upTo, since, limit)
}

// EventFilter selects events of an account. Nil and empty fields match all.
type EventFilter struct {
	InboxIDs []string // not nil: only events of these inboxes
	Types    []EventType
	Since    *Time
}

func (f *EventFilter) matches(e Event) bool {
	return !e.Type.Internal() && (f.Types == nil || slices.Contains(f.Types, e.Type)) &&
		(f.InboxIDs == nil || e.InboxID != nil && slices.Contains(f.InboxIDs, *e.InboxID)) &&
		(f.Since == nil || !e.CreatedAt.Before(f.Since.Time))
}

// ListEvents returns a page of the log of the account, oldest first. It reads only so
// many events for one page that the page may hold fewer than the limit, or none, and
// yet not be the last. A page that comes to events that are not settled waits for
// them, and ends before them if that takes long.
func (s *Store) ListEvents(ctx context.Context, accountID int64, f EventFilter, p Page) (List[Event], error) {
	var since int64
	if f.Since != nil {
		since = f.Since.UnixMicro()
	}
	scope := fmt.Sprintf("events/%d/%t/%q/%q/%d", accountID, f.InboxIDs != nil, f.InboxIDs, f.Types, since)
	after, err := s.eventsAfter(ctx, scope, f, p.Cursor)
	if err != nil {
		return List[Event]{}, err
	}
	r := eventReader{store: s, account: accountID, filter: f, limit: p.Limit, after: after}
	full, err := r.read(ctx, s.wake.settled.Load())
	if err == nil && !full {
		var upTo int64
		if upTo, err = s.settledTo(ctx, s.engine.EventLog); err == nil {
			_, err = r.read(ctx, upTo)
		}
	}
	if err != nil {
		return List[Event]{}, err
	}
	l := List[Event]{Rows: r.rows}
	next, err := s.EventsOf(ctx, accountID, r.after, math.MaxInt64, 1)
	if len(next) > 0 {
		l.Cursor = s.cursors.make(scope, position{Seq: r.after})
	}
	return l, err
}

// eventReader reads the events of one page, each once.
type eventReader struct {
	store   *Store
	account int64
	filter  EventFilter
	limit   int
	rows    []Event
	after   int64 // the number of the last event that was read
	seen    int   // how many were read
}

// read reads on up to a number. It returns true if the page is full, or has read as
// many events as one page may.
func (r *eventReader) read(ctx context.Context, upTo int64) (full bool, err error) {
	most := max(r.limit, r.store.limits.listScan)
	for size := r.limit + 1; r.seen < most; size *= 2 {
		size = min(size, most-r.seen)
		events, err := r.store.EventsOf(ctx, r.account, r.after, upTo, size)
		if err != nil {
			return false, err
		}
		for _, e := range events {
			r.after = e.Seq
			r.seen++
			if r.filter.matches(e) {
				r.rows = append(r.rows, e)
			}
			if len(r.rows) == r.limit {
				return true, nil
			}
		}
		if len(events) < size {
			return false, nil
		}
	}
	return true, nil
}

// eventsAfter returns the number of the event after which a page begins.
func (s *Store) eventsAfter(ctx context.Context, scope string, f EventFilter, cursor string) (int64, error) {
	switch {
	case cursor != "":
		at, err := s.cursors.read(scope, cursor)
		return at.Seq, err
	case f.Since != nil:
		return s.eventsBefore(ctx, *f.Since)
	}
	return 0, nil
}

// eventsBefore returns a number below those of all events of that time or later. It
// goes by the ids, and an id may be older than its event.
func (s *Store) eventsBefore(ctx context.Context, at Time) (int64, error) {
	const q = `SELECT coalesce((SELECT seq FROM events WHERE id < $1 ORDER BY id DESC LIMIT 1), 0)`
	return readOne[int64](ctx, s, "last event before a time", q, firstID("evt_", at.Add(-searchSkew)))
}

// EventPlace returns the number and the time of an event of the account. It
// returns ErrNotFound if there is none of that id any more.
func (s *Store) EventPlace(ctx context.Context, accountID int64, id string) (seq int64, at Time, err error) {
	const q = `SELECT seq, created_at FROM events WHERE account_id = $1 AND id = $2`
	p, err := readOne[Place](ctx, s, "event "+id, q, accountID, id)
	return p.Seq, p.CreatedAt, err
}

// EventsFrom returns the number before that of the first event, of any account,
// whose id was made at that time or later. It goes by the ids, which sort by time but
// not within a millisecond, and so reads those of a second.
func (s *Store) EventsFrom(ctx context.Context, at time.Time) (int64, error) {
	const (
		q      = `SELECT created_at FROM events WHERE id >= $1 ORDER BY id LIMIT 1`
		lowest = `SELECT coalesce((SELECT min(seq) - 1 FROM events WHERE id >= $1 AND id < $2), (SELECT max(seq) FROM events), 0)`
	)
	from := firstID("evt_", at)
	var first Time
	if err := s.read.GetContext(ctx, &first, q, from); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, s.wrap(err, "first event of a time")
	}
	return readOne[int64](ctx, s, "first event of a time", lowest, from, firstID("evt_", first.Add(time.Second)))
}

// RevokedKeys returns those of the keys, by their numbers, that may no longer
// be used: they are revoked, or have expired.
func (s *Store) RevokedKeys(ctx context.Context, seqs []int64) ([]int64, error) {
	q := `SELECT seq FROM api_keys WHERE ` + s.engine.OneOf("seq", "$1") + `
		AND (revoked_at IS NOT NULL OR expires_at <= $2)`
	return readAll[int64](ctx, s, "revoked keys", q, s.engine.List(seqs), NewTime(s.now()))
}

// follower wakes the sleepers of this node for the events of other nodes. An event
// gets its number before its transaction commits, so that one with a lower number
// may appear later than one with a higher. The follower goes by an EventTail: it
// looks again at what is not settled, and wakes for each event once.
type follower struct {
	store *Store
	tail  *EventTail
	from  int64              // no event up to here can appear any more
	woken map[int64]struct{} // events above from that were woken for
	known bool               // from is
	epoch int                // of the tail
}

func newFollower(s *Store) *follower {
	return &follower{store: s, tail: s.TailEvents(), woken: map[int64]struct{}{}}
}

func (f *follower) look(ctx context.Context) error {
	settled, known, pending, err := f.tail.Settle(ctx)
	if err != nil {
		return err
	}
	f.store.wake.settled.Store(settled)
	if f.epoch != f.tail.Epoch() { // the numbers have gone back
		f.known, f.epoch = false, f.tail.Epoch()
	}
	if !f.known {
		// What was under way when the store opened has numbers that are not known.
		f.store.wake.wakeAll()
		f.from, f.known = settled, known
		clear(f.woken)
		return nil
	}
	if settled > f.from || pending {
		if err := f.wake(ctx); err != nil {
			return err
		}
	}
	f.from = max(f.from, settled)
	for seq := range f.woken {
		if seq <= f.from {
			delete(f.woken, seq)
		}
	}
	return nil
}

// wake wakes the inboxes of the events that are new.
func (f *follower) wake(ctx context.Context) error {
	const since = `SELECT seq, coalesce(inbox_seq, 0) AS inbox_seq, type, coalesce(message_seq, 0) AS message_seq
		FROM events WHERE seq > $1 ORDER BY seq LIMIT $2`
	rows, err := readAll[followed](ctx, f.store, "new events", since, f.from, maxFollowed+1)
	if err != nil {
		return err
	}
	if len(rows) > maxFollowed {
		f.store.wake.wakeAll()
		return nil
	}
	rows = slices.DeleteFunc(rows, func(r followed) bool { _, was := f.woken[r.Seq]; return was })
	if len(rows) == 0 {
		return nil
	}
	changes, err := f.store.changesOf(ctx, rows)
	if err != nil {
		return err
	}
	for _, r := range rows {
		f.woken[r.Seq] = struct{}{}
	}
	f.store.wake.wakeWith(changes)
	return nil
}

// followed is an event of another node.
type followed struct {
	Seq        int64     `db:"seq"`
	InboxSeq   int64     `db:"inbox_seq"`
	Type       EventType `db:"type"`
	MessageSeq int64     `db:"message_seq"`
}

// changesOf returns what the events change, for wakeWith. It reads the new messages
// of inboxes in which filters wait, all with one query.
func (s *Store) changesOf(ctx context.Context, rows []followed) (map[topic][]arrival, error) {
	changes := map[topic][]arrival{{kind: topicQueue}: nil, {kind: topicEvents}: nil, {kind: topicWebhooks}: nil}
	var inboxes []int64
	for _, r := range rows {
		t := topic{topicInbox, r.InboxSeq}
		if _, noted := changes[t]; !noted {
			changes[t] = nil
			inboxes = append(inboxes, r.InboxSeq)
		}
	}
	inboxes = s.wake.filtered(inboxes)
	var messages []int64
	for _, r := range rows {
		switch {
		case !slices.Contains(inboxes, r.InboxSeq):
		case r.Type == EventMessageReceived, r.Type == EventMessageQueued:
			messages = append(messages, r.MessageSeq)
		case r.Type == EventInboxDeleted:
			s.wake.wakeUp(topic{topicInbox, r.InboxSeq})
		}
	}
	if len(messages) == 0 {
		return changes, nil
	}
	q := `SELECT inbox_seq, direction, status, from_email, subject_fold, created_at, has_code, has_link, safety_level FROM messages WHERE ` +
		s.engine.OneOf("seq", "$1")
	arrivals, err := readAll[arrival](ctx, s, "new messages", q, s.engine.List(messages))
	if err != nil {
		return nil, err
	}
	for _, a := range arrivals {
		t := topic{topicInbox, a.InboxSeq}
		changes[t] = append(changes[t], a)
	}
	return changes, nil
}

// topic names what a sleeper waits for.
type topic struct {
	kind topicKind
	seq  int64 // of the inbox, for topicInbox
}

type topicKind uint8

const (
	topicInbox topicKind = iota
	topicQueue
	topicEvents
	topicWebhooks
)

// hub wakes goroutines of this process. Who is woken looks into the database, so
// that nothing can be lost on the way.
type hub struct {
	mu     sync.Mutex
	closed bool
	subs   map[topic]map[*Wake]struct{}

	settled atomic.Int64 // no event up to here can appear any more; the follower of other nodes sets it
}

func newHub() *hub { return &hub{subs: map[topic]map[*Wake]struct{}{}} }

// Wake is one subscription. C receives after each change; many changes may
// come as one. Stop must be called.
type Wake struct {
	C     <-chan struct{}
	c     chan struct{}
	hub   *hub
	topic topic

	filter *MessageFilter // nil: every change wakes
}

// WakeMatching subscribes to new messages of an inbox that match the filter, and to changes
// that are not known well enough to say that they do not match. Subscribe first, then
// look, then sleep on C, then look again. The filter is checked
// in memory, so that a message costs no query for those that wait for others. Only
// the fields of a filter for one inbox count, without its text, thread and place.
func (s *Store) WakeMatching(f MessageFilter) *Wake {
	f.from = likeRegexp(f.FromLike)
	return s.wake.subscribe(&Wake{topic: topic{topicInbox, f.InboxSeq}, filter: &f})
}

// WakeQueue subscribes to newly due recipients.
func (s *Store) WakeQueue() *Wake { return s.wake.subscribe(&Wake{topic: topic{kind: topicQueue}}) }

// WakeWebhooks subscribes to newly due deliveries to webhook endpoints.
func (s *Store) WakeWebhooks() *Wake {
	return s.wake.subscribe(&Wake{topic: topic{kind: topicWebhooks}})
}

// WakeEvents subscribes to new events.
func (s *Store) WakeEvents() *Wake { return s.wake.subscribe(&Wake{topic: topic{kind: topicEvents}}) }

func (h *hub) subscribe(w *Wake) *Wake {
	w.c, w.hub = make(chan struct{}, 1), h
	w.C = w.c
	t := w.topic
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		close(w.c)
		return w
	}
	if h.subs[t] == nil {
		h.subs[t] = map[*Wake]struct{}{}
	}
	h.subs[t][w] = struct{}{}
	return w
}

// Stop ends the subscription.
func (w *Wake) Stop() {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	subs := w.hub.subs[w.topic]
	delete(subs, w)
	if len(subs) == 0 {
		delete(w.hub.subs, w.topic)
	}
}

func (h *hub) wakeUp(topics ...topic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range topics {
		for w := range h.subs[t] {
			w.signal()
		}
	}
}

// wakeWith wakes for what has changed: each topic with the messages that are new.
func (h *hub) wakeWith(changes map[topic][]arrival) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for t, arrivals := range changes {
		for w := range h.subs[t] {
			if w.filter == nil || slices.ContainsFunc(arrivals, w.filter.mayMatch) {
				w.signal()
			}
		}
	}
}

func (h *hub) wakeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, subs := range h.subs {
		for w := range subs {
			w.signal()
		}
	}
}

// filtered returns those of the inboxes in which waits have a
// filter.
func (h *hub) filtered(inboxes []int64) []int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(inboxes), func(seq int64) bool {
		for w := range h.subs[topic{topicInbox, seq}] {
			if w.filter != nil {
				return false
			}
		}
		return true
	})
}

func (w *Wake) signal() {
	select {
	case w.c <- struct{}{}:
	default: // a wake-up is waiting already
	}
}

// arrival is what filters compare of a new message.
type arrival struct {
	InboxSeq  int64            `db:"inbox_seq"`
	Direction Direction        `db:"direction"`
	Status    MessageStatus    `db:"status"`
	FromEmail string           `db:"from_email"`
	Subject   string           `db:"subject_fold"`
	CreatedAt Time             `db:"created_at"`
	HasCode   bool             `db:"has_code"`
	HasLink   bool             `db:"has_link"`
	Safety    mail.SafetyLevel `db:"safety_level"`
}

func arrivalOf(m *Message, subjectFold string) arrival {
	return arrival{m.InboxSeq, m.Direction, m.Status, m.FromEmail, subjectFold, m.CreatedAt, m.HasCode, m.HasLink, m.safetyLevel()}
}

// mayMatch reports whether a query with the filter may find the message. It is true
// for every message that the query finds.
func (f *MessageFilter) mayMatch(a arrival) bool {
	return (f.Direction == "" || f.Direction == a.Direction) && (f.Status == "" || f.Status == a.Status) &&
		(f.Since == nil || !a.CreatedAt.Before(f.Since.Time)) && (!f.HasCode || a.HasCode) && (!f.HasLink || a.HasLink) && a.Safety.AtLeast(f.Safety) &&
		strings.Contains(a.Subject, f.Subject) && (f.FromLike == "" || f.from.MatchString(a.FromEmail))
}

// likeRegexp returns a LIKE pattern with the escape \ as a regular expression.
func likeRegexp(pattern string) *regexp.Regexp {
	var re strings.Builder
	escaped := false
	for _, c := range storable(pattern) {
		switch {
		case !escaped && c == '\\':
			escaped = true
			continue
		case !escaped && c == '%':
			re.WriteString(".*")
		case !escaped && c == '_':
			re.WriteString(".")
		default:
			re.WriteString(regexp.QuoteMeta(string(c)))
		}
		escaped = false
	}
	return regexp.MustCompile("(?s)^" + re.String() + "$")
}

// close ends all subscriptions: every C is closed.
func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, subs := range h.subs {
		for w := range subs {
			close(w.c)
		}
	}
	h.subs = map[topic]map[*Wake]struct{}{}
}

// changed wakes the sleepers of this node for n changes and hints the others.
func (s *Store) changed(topics []topic, n int) {
	s.wake.wakeUp(topics...)
	s.engine.Wrote(n)
}
