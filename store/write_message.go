package store

import (
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

	inbox *hotInbox
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
