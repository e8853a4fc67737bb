package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/postroom/postroom/store/internal/batch"
	"github.com/postroom/postroom/store/internal/checksum"
	"github.com/postroom/postroom/store/internal/engine"
)

// NewMessage is a message to be stored. The store sets its id, time and thread.
type NewMessage struct {
	// Message holds InboxSeq, Direction, Status, TestMode, FromEmail, Addresses,
	// Subject, HeaderID, Refs, Automated, HasCode, HasLink, Truncated, Tag, DeliveredTo, Size, Content
	// and, for outbound ones, Recipients (Email, Domain, Kind, and Status for
	// those that are RecipientSuppressed). Everything else is the store's to fill
	// in, in the copy that it returns.
	Message
	// SubjectFold is the subject folded for comparison.
	SubjectFold string
	// ThreadSubject is the subject without reply marks, folded. Messages with the
	// same one may belong to the same thread.
	ThreadSubject string
	// ReplyMark means that the subject has a reply or forward mark. Without one,
	// the message does not join a thread by subject.
	ReplyMark bool
	// JoinThread is the sequence number of the thread to join, or 0.
	JoinThread int64
	// NewThread means that the message does not join an existing thread.
	NewThread bool
	// VerifiedDomain is the domain that the account must have verified to send the
	// message; empty for one that every account sends from.
	VerifiedDomain string
	// AutoReply says that an outbound message replies automatically to automated mail.
	AutoReply bool
	// Category is that of the email that an approved draft was, or empty.
	Category Category
	// Delay is how long the message waits before it may leave.
	Delay time.Duration
	// Senders are the key or person who sends an outbound message.
	Senders []Sender
	// Text is the plain text of an outbound message. Limits compare it.
	Text string
}

// AddReceived stores the copies of one received mail, one for each inbox that it
// is for, all or none, and returns them as stored. When the mail came from our
// own queue, attempts are recorded in the same transaction, so that the mail
// cannot arrive twice. When it is a report about mail of ours, what it says is
// recorded with it. It returns ErrNotFound if an inbox takes no mail any more.
func (s *Store) AddReceived(ctx context.Context, copies []*NewMessage, attempts []*Attempt, reports ...*Report) ([]Message, error) {
	const what = "add received mail"
	if len(copies) == 0 {
		return nil, errors.New(what + ": no inbox")
	}
	w := hotWrite{attempts: attempts, reports: reports}
	for _, m := range copies {
		h, err := newHotMessage(m, s.now())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		w.messages = append(w.messages, h)
	}
	for _, a := range attempts {
		if err := a.check(); err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
	}
	if err := s.do(ctx, copies[0].InboxSeq, w); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	s.noteHeld(w.messages)
	return each(w.messages, func(h *hotMessage) Message { return h.msg }), nil
}

// AddSimulated stores a message that no one sent, as if it had been received, and
// returns it as stored. With once, the response is cached too. It returns
// ErrNotFound if the inbox takes no mail.
func (s *Store) AddSimulated(ctx context.Context, m *NewMessage, once *Once) (Message, error) {
	return s.addOne(ctx, "add simulated mail", m, hotWrite{once: once})
}

// addOne stores m as the message that w is about.
func (s *Store) addOne(ctx context.Context, what string, m *NewMessage, w hotWrite) (Message, error) {
	h, err := newHotMessage(m, s.now())
	if err != nil {
		return Message{}, fmt.Errorf("%s: %w", what, err)
	}
	w.messages = []*hotMessage{h}
	if err := s.do(ctx, m.InboxSeq, w); err != nil {
		return Message{}, fmt.Errorf("%s: %w", what, err)
	}
	s.noteHeld(w.messages)
	return h.msg, nil
}

// hotMessage is a new message on its way into the database. What can be made
// before the transaction is made by the caller, at the same time as others. The
// transaction fills in the rest, and does so again when it is tried again.
type hotMessage struct {
	msg         Message // as it will be stored
	fold        string
	joinThread  int64
	newThread   bool
	domain      string // that must be verified for the account
	autoReply   bool
	delay       time.Duration
	senders     []Sender
	text        string
	subjectHash int64    // of the subject that may tie it to a thread
	mayBySubj   bool     // may join a thread by that subject
	refersTo    []string // Message-IDs, the likeliest first
	people      []string // addresses in the header, Bcc left out, lower case

	// The JSON columns.
	addresses, refs, attachments string
	body, extracted, auth        any // string or nil
	checksum                     any // int64 or nil
	eventID                      string
	suppressed                   []string // event data of suppressed recipients

	inbox        *hotInbox
	thread       *hotThread
	newThreadSeq int64    // of the thread that it begins, if it joins none
	expects      []string // of refersTo, those that are not there
}

func newHotMessage(m *NewMessage, now time.Time) (*hotMessage, error) {
	if m.Content == nil {
		return nil, errors.New("the message has no content")
	}
	h := &hotMessage{
		msg: m.Message, fold: storable(m.SubjectFold), joinThread: m.JoinThread, newThread: m.NewThread, domain: m.VerifiedDomain, autoReply: m.AutoReply, delay: m.Delay,
		senders: m.Senders, text: m.Text, subjectHash: hash64(m.ThreadSubject), refersTo: earlier(m.Refs.V), people: participants(m.Addresses.V),
		eventID: NewLongID("evt_", now),
	}
	// A message without a Message-ID comes from a script, which says the same every day.
	h.mayBySubj = m.ReplyMark && !m.NewThread && !m.Automated && m.ThreadSubject != "" && m.HeaderID != "" && len(h.refersTo) == 0
	content := *m.Content
	content.Snippet = storable(content.Snippet)
	msg := &h.msg
	msg.ID, msg.Content, msg.Recipients = NewID("msg_", now), &content, slices.Clone(m.Recipients)
	msg.FromEmail, msg.Subject, msg.HeaderID = storable(msg.FromEmail), storable(msg.Subject), storable(msg.HeaderID)
	if n := len(h.senders); n > 0 && h.senders[n-1].ID != "" { // of a draft, who made it
		msg.SentBy = &h.senders[n-1].ID
	}
	if msg.Tag != nil {
		tag := storable(*msg.Tag)
		msg.Tag = &tag
	}
	if msg.DeliveredTo != nil {
		to := storable(*msg.DeliveredTo)
		msg.DeliveredTo = &to
	}
	for i := range msg.Recipients {
		r := &msg.Recipients[i]
		r.Email, r.Domain = storable(r.Email), storable(r.Domain)
	}
	return h, errors.Join(h.noteSuppressed(), h.encode())
}

// encode makes the JSON columns.
func (h *hotMessage) encode() error {
	var err error
	text := func(v any) string {
		b, e := json.Marshal(v)
		err = errors.Join(err, e)
		return string(b)
	}
	h.addresses, h.refs, h.attachments = text(h.msg.Addresses.V), "{}", "[]"
	if r := h.msg.Refs.V; len(r.InReplyTo)+len(r.References) > 0 {
		h.refs = text(r)
	}
	c := h.msg.Content
	if len(c.Attachments.V) > 0 {
		h.attachments = text(c.Attachments.V)
	}
	if c.Body != nil {
		h.body = c.Body.V.encode()
	}
	if c.Extracted != nil {
		h.extracted = text(c.Extracted.V)
	}
	if c.Auth != nil {
		h.auth = text(c.Auth.V)
	}
	raw := c.BlobSum
	if c.BlobKey == nil {
		raw = checksum.Of(c.Raw)
	}
	if c.BlobKey == nil || raw != 0 {
		h.checksum = checksum.New(raw, h.body, c.Snippet, h.extracted, h.auth, h.attachments,
			h.msg.FromEmail, h.addresses, h.msg.Subject, h.msg.HeaderID, h.refs)
	}
	return errIn("write JSON columns", err)
}

// noteSuppressed makes the data of the events about suppressed recipients. A message
// without any other recipient has failed.
func (h *hotMessage) noteSuppressed() error {
	h.suppressed = nil
	if h.msg.Status == MessageQueued && len(h.msg.Recipients) > 0 && h.msg.toSend() == 0 {
		h.msg.Status = MessageFailed
	}
	states := initialStates(h.msg.Recipients)
	for i := range h.msg.Recipients {
		r := &h.msg.Recipients[i]
		if r.Status != RecipientSuppressed {
			continue
		}
		text, err := json.Marshal(EventData{Status: h.msg.Status, Recipients: states, Recipient: r.Email, Response: suppressedResponse})
		if err != nil {
			return errIn("write an event", err)
		}
		h.suppressed = append(h.suppressed, string(text))
	}
	return nil
}

// suppressedResponse replaces the remote server's reply in an event.
const suppressedResponse = "Suppressed: the address is on the suppression list"

// storable makes of s what both databases keep: PostgreSQL refuses a message for
// one NUL or one byte that is not UTF-8.
func storable(s string) string {
	if utf8.ValidString(s) && !strings.Contains(s, "\x00") {
		return s
	}
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "\uFFFD")
}

// hash64 hashes a long text to a short key; lookups compare the text too.
func hash64(s string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s)) // a hash never fails
	return int64(h.Sum64())   //nolint:gosec // bits, not a number
}

// hotInbox holds the fields of an inbox that a new message needs.
type hotInbox struct {
	seq       int64
	accountID int64
	id        string
	address   string
	status    InboxStatus
	policy    SendPolicy
	limits    *Limits
	expiresAt *Time
	listed    bool // the account has inbound lists
	at        Time // when what the batch puts into it is created
}

const (
	lockInboxes = `SELECT seq, account_id, id, address, status, send_policy, expires_at, limits,
		EXISTS (SELECT 1 FROM lists WHERE lists.account_id = inboxes.account_id AND direction = 'inbound') FROM inboxes
		WHERE seq IN ({rows}) ORDER BY seq`
	newestOfAll = `SELECT coalesce(max(newest), 0) FROM
		(SELECT (SELECT max(created_at) FROM messages WHERE account_id = accounts.seq AND inbox_seq IS NOT NULL) AS newest
			FROM accounts) a`
	newestOfInboxes = `SELECT seq, (SELECT max(created_at) FROM messages WHERE inbox_seq = inboxes.seq) FROM inboxes
		WHERE seq IN ({rows})`
)

func (b *hotBatch) addMessages(ctx context.Context) error {
	if len(b.messages) == 0 {
		return nil
	}
	if err := b.readInboxes(ctx); err != nil {
		return err
	}
	if err := b.reserve(ctx); err != nil {
		return errIn("reserve sequence numbers", err)
	}
	if err := b.joinThreads(ctx); err != nil {
		return err
	}
	if err := b.takeReleased(ctx); err != nil {
		return err
	}
	if err := b.insertMessages(ctx); err != nil {
		return err
	}
	return b.endReleases(ctx)
}

// reserve takes numbers for the messages, and for a thread each, should they
// need it.
func (b *hotBatch) reserve(ctx context.Context) error {
	all := b.all()
	b.threads = make([]int64, 0, len(all))
	if b.ahead != nil {
		for i, h := range all {
			h.msg.Seq, b.threads = b.ahead.numbers[i][0], append(b.threads, b.ahead.numbers[i][1])
		}
		return nil
	}
	alone, k := b.store.engine.Alone(), &b.store.known
	if alone && k.numbered {
		for _, h := range all {
			k.message++
			k.thread++
			h.msg.Seq, b.threads = k.message, append(b.threads, k.thread)
		}
		return nil
	}
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
	if err == nil && alone {
		k.numbered, k.message, k.thread = true, all[n-1].msg.Seq, b.threads[n-1]
	}
	return err
}

// all are the new messages, those of inboxes and emails.
func (b *hotBatch) all() []*hotMessage {
	return b.messages
}

// readInboxes holds the inboxes of the batch until the commit, so that none is
// deleted meanwhile, none gets another policy than their mail was held against,
// and their messages get times in the order of the commits.
func (b *hotBatch) readInboxes(ctx context.Context) error {
	list := make([][2]int64, len(b.messages))
	for i, h := range b.messages {
		list[i][0] = h.msg.InboxSeq
	}
	list = batch.Sorted(list)
	if err := b.lockInboxes(ctx, list); err != nil {
		return errIn("lock inboxes", err)
	}
	if err := b.readAhead(ctx); err != nil {
		return errIn("read ahead", err)
	}
	if b.ahead == nil {
		if err := b.newestIn(ctx, list); err != nil {
			return errIn("newest messages", err)
		}
	}
	b.keepNewest()
	for _, h := range b.messages {
		in := b.inboxes[h.msg.InboxSeq]
		if in == nil || !in.takes(h.msg.Direction, b.now) {
			return b.ofMessage(h, fmt.Errorf("inbox %d takes no mail: %w", h.msg.InboxSeq, ErrNotFound))
		}
		h.inbox, h.msg.InboxID, h.msg.AccountID = in, in.id, in.accountID
	}
	if err := b.checkSenders(ctx); err != nil {
		return err
	}
	return nil
}

// ahead is what Dialect.Ahead has read for a batch.
type ahead struct {
	numbers  [][2]int64 // for messages and threads
	expected map[[2]int64]bool
	hooked   map[int64]bool // accounts: whether they have active webhooks
}

// readAhead reads what new messages need, if it saves round trips.
func (b *hotBatch) readAhead(ctx context.Context) error {
	if b.store.hot.ahead == nil {
		return nil
	}
	a := &ahead{expected: map[[2]int64]bool{}, hooked: map[int64]bool{}}
	for _, in := range b.inboxes {
		a.hooked[in.accountID] = false
	}
	inboxes, hashes := make([]int64, len(b.messages)), make([]int64, len(b.messages))
	for i, h := range b.messages {
		inboxes[i], hashes[i] = h.msg.InboxSeq, hash64(h.msg.HeaderID)
	}
	e := b.store.engine
	b.ahead = a
	accounts := slices.Collect(maps.Keys(a.hooked))
	args := []any{e.List(inboxes), e.List(hashes), int64(len(b.messages)), e.List(accounts)}
	return batch.Scan(ctx, b.tx.StmtContext(ctx, b.store.hot.ahead), args, func(rows *sql.Rows) error {
		var kind, x, y int64
		var tx string
		if err := rows.Scan(&kind, &x, &y, &tx); err != nil {
			return err
		}
		switch kind {
		case engine.AheadNewest:
			if in := b.inboxes[x]; in != nil && y > in.at.UnixMicro() {
				in.at = Time{time.UnixMicro(y)}
			}
		case engine.AheadNumber:
			a.numbers, b.txName = append(a.numbers, [2]int64{x, y}), tx
		case engine.AheadExpected:
			a.expected[[2]int64{x, y}] = true
		case engine.AheadWebhooks:
			a.hooked[x] = true
		}
		return nil
	})
}

// takes reports whether a message may be put into the inbox. Of outbound ones
// only those of a deleted inbox are refused here: whether it may send was decided
// when the send was accepted.
func (in *hotInbox) takes(d Direction, now Time) bool {
	if d == DirectionOut {
		return in.status != InboxDeleted
	}
	return in.status == InboxActive && (in.expiresAt == nil || in.expiresAt.After(now.Time))
}

func (b *hotBatch) lockInboxes(ctx context.Context, list [][2]int64) error {
	b.inboxes = make(map[int64]*hotInbox, len(list))
	alone, k := b.store.engine.Alone(), &b.store.known
	if alone {
		list = slices.DeleteFunc(slices.Clone(list), func(key [2]int64) bool {
			in, known := k.inboxes[key[0]]
			if known {
				in.at = b.now
				b.inboxes[in.seq] = &in
			}
			return known
		})
	}
	return b.store.hot.lockInboxes.Find(ctx, b.tx, list, func(rows *sql.Rows) error {
		in := hotInbox{at: b.now}
		var limits *JSON[Limits]
		if err := rows.Scan(&in.seq, &in.accountID, &in.id, &in.address, &in.status, &in.policy, &in.expiresAt, &limits, &in.listed); err != nil {
			return err
		}
		if limits != nil {
			in.limits = &limits.V
		}
		b.inboxes[in.seq] = &in
		if alone {
			note(&k.inboxes, in.seq, in)
		}
		return nil
	})
}

// newestIn moves the time of an inbox past its newest message: the clock may
// have gone back, or another node's may be ahead. It looks only after the
// inboxes are locked, and not at all when this process alone assigns times and
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
	receivedData    = fmt.Sprintf(`{"status":%q}`, MessageReceived)
	quarantinedData = fmt.Sprintf(`{"status":%q}`, MessageQuarantined)
	queuedData      = fmt.Sprintf(`{"status":%q}`, MessageQueued)
)

// announce notes the event of a new message and whom it wakes.
func (b *hotBatch) announce(h *hotMessage) {
	if h.quarantined() {
		b.event(h.eventID, EventMessageQuarantined, &h.msg, quarantinedData)
		return
	}
	t := topic{topicInbox, h.msg.InboxSeq}
	b.topics[t] = append(b.topics[t], arrivalOf(&h.msg, h.fold))
	if h.msg.Direction == DirectionIn {
		b.event(h.eventID, EventMessageReceived, &h.msg, receivedData)
		return
	}
	b.event(h.eventID, EventMessageQueued, &h.msg, queuedData)
	b.addSuppressedEvents(h, EventMessageFailed)
	b.wake(topic{kind: topicQueue})
}

// orNull is s as a parameter: database/sql would need reflection for a pointer.
func orNull[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

// zeroNull is a value as a parameter; zero stands for none.
func zeroNull[T comparable](v T) any {
	var none T
	if v == none {
		return nil
	}
	return v
}

func orNullBytes(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}
