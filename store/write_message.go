package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/postroom/postroom/store/internal/checksum"
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
	// Policy is the policy that an outbound message was checked against, or
	// empty.
	Policy SendPolicy
	// Delay is how long the message waits before it may leave.
	Delay time.Duration
	// Senders are the key or person who sends an outbound message; of a draft, also
	// the one who made it.
	Senders []Sender
	// Text is the plain text of an outbound message. Limits compare it.
	Text string
}

// Enqueue accepts an outbound message: it is stored with its recipients, which
// are due at once unless they are suppressed, and returned. With once, the
// response is cached too. It returns ErrNotFound if the inbox is deleted,
// ErrPolicyChanged when its policy is not that of m any more, ErrThreadLimit when
// its thread has had too many messages from us.
func (s *Store) Enqueue(ctx context.Context, m *NewMessage, once *Once) (Message, error) {
	return s.addOne(ctx, "enqueue", m, hotWrite{once: once})
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
	policy      SendPolicy
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

	inbox *hotInbox
}

func newHotMessage(m *NewMessage, now time.Time) (*hotMessage, error) {
	if m.Content == nil {
		return nil, errors.New("the message has no content")
	}
	h := &hotMessage{
		msg: m.Message, fold: storable(m.SubjectFold), joinThread: m.JoinThread, newThread: m.NewThread, policy: m.Policy, delay: m.Delay,
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
	if msg.Status == MessageQueued && len(msg.Recipients) > 0 && msg.toSend() == 0 {
		msg.Status = MessageFailed
	}
	return h, h.encode()
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
	states := initialStates(h.msg.Recipients)
	for i := range h.msg.Recipients {
		if r := &h.msg.Recipients[i]; r.Status == RecipientSuppressed {
			h.suppressed = append(h.suppressed, text(EventData{Status: h.msg.Status, Recipients: states, Recipient: r.Email, Response: suppressedResponse}))
		}
	}
	return errIn("write JSON columns", err)
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
	for _, h := range b.messages {
		if err := b.store.addToInbox(ctx, b.tx, h, b.now, b.written); err != nil {
			return b.ofMessage(h, err)
		}
	}
	for _, h := range b.emails {
		if err := b.insertEmail(ctx, h); err != nil {
			return err
		}
	}
	return nil
}

// all are the new messages, those of inboxes and emails.
func (b *hotBatch) all() []*hotMessage {
	all := append(make([]*hotMessage, 0, len(b.messages)+len(b.emails)), b.messages...)
	for _, e := range b.emails {
		all = append(all, e.hotMessage)
	}
	return all
}

// readInboxes holds the inboxes of the batch until the commit.
func (b *hotBatch) readInboxes(ctx context.Context) error {
	b.inboxes = map[int64]*hotInbox{}
	if err := b.store.lockInboxesOf(ctx, b.tx, b.messages, b.now); err != nil {
		return err
	}
	for _, h := range b.messages {
		b.inboxes[h.inbox.seq] = h.inbox
	}
	var from []int64
	for _, h := range b.emails {
		if h.policy != "" {
			from = append(from, *h.email.FromInbox)
		}
	}
	for _, seq := range rising(from, func(seq int64) int64 { return seq }) {
		in, err := b.store.lockForMessage(ctx, b.tx, seq, b.now)
		if err != nil {
			return err
		}
		b.inboxes[seq] = in
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

// holds reports whether the inbox has the policy that the message was checked
// against.
func (h *hotMessage) holds(in *hotInbox) error {
	if h.policy != "" && h.policy != in.policy {
		return fmt.Errorf("inbox %s is %s, not %s: %w", in.id, in.policy, h.policy, ErrPolicyChanged)
	}
	return nil
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

// The data of the events of new messages.
var (
	receivedData    = fmt.Sprintf(`{"status":%q}`, MessageReceived)
	quarantinedData = fmt.Sprintf(`{"status":%q}`, MessageQuarantined)
	queuedData      = fmt.Sprintf(`{"status":%q}`, MessageQueued)
)

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
