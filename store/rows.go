package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/store/internal/checksum"
)

// newRow is a row to insert.
type newRow struct {
	into   string // the table and its columns
	values []any
	// then follows the values, for example ON CONFLICT DO NOTHING.
	then string
}

// The tables that messages and events are inserted into, with their columns.
const (
	intoThreads  = `threads (seq, account_id, inbox_seq, id, subject, subject_hash, participants, message_count, last_message_at, created_at)`
	intoMessages = `messages (seq, account_id, inbox_seq, thread_seq, id, direction, status, test_mode, from_email, addresses, subject, subject_fold,
		header_id, header_hash, refs, automated, has_code, has_link, truncated, tag, size, created_at, sent_by, quarantined, delivered_to,
		safety_level, next_attempt_at)`
	intoContents       = `contents (message_seq, raw, blob_key, body, snippet, extracted, auth, safety, attachments, checksum)`
	intoCorrespondents = `correspondents (account_id, address, domain, resembles, used_at)`
	intoRecipients     = `recipients (account_id, message_seq, email, domain, kind, status, attempts, fence, next_attempt_at, created_at)`
	intoEmails         = `emails (message_seq, account_id, from_inbox, batch_id, category, tags, metadata, scheduled_at, due_at, created_by)`
	intoEmailTags      = `email_tags (account_id, name, value, message_seq)`
	intoReferences     = `thread_references (inbox_seq, header_hash, header_id, thread_seq)`
	intoEvents         = `events (account_id, inbox_seq, id, type, message_seq, test_mode, data, created_at)`
	intoDeliveries     = `webhook_deliveries (account_id, endpoint_seq, message_seq, id, event_id, event_type, status, attempts, next_attempt_at,
		created_at, updated_at)`
)

// maxPreparedRows is the most rows of a statement of insert that is prepared: there are
// many combinations of more.
const maxPreparedRows = 6

func unprepared(ctx context.Context, tx *sqlx.Tx, query string, args ...any) (sql.Result, error) {
	return tx.ExecContext(ctx, query, args...)
}

// maxParameters is the most parameters of one statement of insert. PostgreSQL takes
// 65,535.
const maxParameters = 2000

// insert inserts rows: those of a table in their order, and a row that another one refers
// to before that one. On PostgreSQL all go in one statement, so that a message costs one
// round trip.
func (s *Store) insert(ctx context.Context, tx *sqlx.Tx, rows ...newRow) error {
	most := maxParameters
	if s.engine.Alone() {
		most = 1
	}
	for len(rows) > 0 {
		n, params := 1, len(rows[0].values)
		for n < len(rows) && params+len(rows[n].values) <= most {
			params += len(rows[n].values)
			n++
		}
		exec := s.prepared.Exec
		if n > maxPreparedRows {
			exec = unprepared
		}
		q, args := s.insertStatement(rows[:n])
		if _, err := exec(ctx, tx, q, args...); err != nil {
			return fmt.Errorf("insert %s: %w", rows[0].table(), err)
		}
		rows = rows[n:]
	}
	return nil
}

func (r newRow) table() string { return r.into[:strings.IndexByte(r.into, ' ')] }

// insertStatement is a statement that inserts rows.
func (s *Store) insertStatement(rows []newRow) (q string, args []any) {
	var inserts []string
	var tables []newRow
	for _, r := range rows {
		if !slices.ContainsFunc(tables, func(t newRow) bool { return t.into == r.into }) {
			tables = append(tables, r)
		}
	}
	for _, t := range tables {
		var sb strings.Builder
		sep := "INSERT INTO " + t.into + " VALUES ("
		for _, r := range rows {
			if r.into != t.into {
				continue
			}
			for _, v := range r.values {
				args = append(args, v)
				sb.WriteString(sep + s.engine.Placeholder(len(args)))
				sep = ", "
			}
			sep = "), ("
		}
		sb.WriteString(")" + t.then)
		inserts = append(inserts, sb.String())
	}
	last := len(inserts) - 1
	for i := range inserts[:last] {
		inserts[i] = fmt.Sprintf("i%d AS (%s)", i, inserts[i])
	}
	if last == 0 {
		return inserts[0], args
	}
	return "WITH " + strings.Join(inserts[:last], ", ") + " " + inserts[last], args
}

// numbers returns a number for a new message and one for a new thread, and the name
// of the transaction for wasCommitted.
func (s *Store) numbers(ctx context.Context, tx *sqlx.Tx) (message, thread int64, name string, err error) {
	q := `SELECT ` + s.engine.TxName() + `, ` + s.engine.NextNumber("messages") + `, ` + s.engine.NextNumber("threads")
	err = s.prepared.Row(ctx, tx, q, nil, &name, &message, &thread)
	return message, thread, name, errIn("next numbers", err)
}

// messageRows are the rows of a message: its own, its content, and its recipients,
// which are due at a time, nil for never. inbox and thread are nil for an email.
func messageRows(h *preparedMessage, now Time, inbox, thread, due any) []newRow {
	m, c := &h.msg, h.msg.Content
	status, from := m.Status, m.FromEmail
	if h.quarantined() {
		status, from = MessageReceived, quarantineMark+from
	}
	c.MessageSeq = m.Seq
	var claimable any // as soon as it is there
	if m.Direction == DirectionIn && !h.quarantined() {
		claimable = m.CreatedAt.UnixMicro()
	}
	rows := []newRow{
		{into: intoMessages, values: []any{
			m.Seq, m.AccountID, inbox, thread, m.ID, string(m.Direction), string(status), m.TestMode,
			from, h.addresses, m.Subject, h.fold, m.HeaderID, hash64(m.HeaderID), h.refs, m.Automated,
			m.HasCode, m.HasLink, m.Truncated, orNull(m.Tag), m.Size, m.CreatedAt.UnixMicro(), orNull(m.SentBy), h.quarantined(),
			orNull(m.DeliveredTo), string(m.safetyLevel()), claimable,
		}},
		{into: intoContents, values: []any{
			m.Seq, orNullBytes(c.Raw), orNull(c.BlobKey), h.body, c.Snippet, h.extracted, h.auth, h.safety, h.attachments, h.checksum,
		}},
	}
	for i := range m.Recipients {
		rc := &m.Recipients[i]
		rc.AccountID, rc.MessageSeq, rc.CreatedAt, rc.NextAttemptAt = m.AccountID, m.Seq, now, nil
		dueAt := due
		if rc.Status == RecipientSuppressed {
			dueAt = nil
		} else {
			rc.Status = RecipientQueued
		}
		if dueAt != nil {
			rc.NextAttemptAt = &now
		}
		rows = append(rows, newRow{into: intoRecipients, values: []any{
			rc.AccountID, rc.MessageSeq, rc.Email, rc.Domain, rc.Kind, string(rc.Status), int64(0), int64(0), dueAt, now.UnixMicro(),
		}})
	}
	return rows
}

// row is the row of the event. An event without an id gets one.
func (e *newEvent) row(now Time) (newRow, error) {
	data, err := json.Marshal(e.data)
	if err != nil {
		return newRow{}, fmt.Errorf("write event: %w", err)
	}
	if e.id == "" {
		e.id = NewLongID("evt_", now.Time)
	}
	return newRow{into: intoEvents, values: []any{
		e.account, zeroNull(e.inbox), e.id, string(e.typ), zeroNull(e.message), e.testMode, string(data), now.UnixMicro(),
	}}, nil
}

// eventRows are the rows of events, and of their deliveries to webhook endpoints.
func (s *Store) eventRows(ctx context.Context, tx *sqlx.Tx, now Time, events ...newEvent) ([]newRow, error) {
	rows := make([]newRow, len(events))
	for i := range events {
		var err error
		if rows[i], err = events[i].row(now); err != nil {
			return nil, err
		}
	}
	deliveries, err := s.deliveryRows(ctx, tx, now, events)
	return append(rows, deliveries...), err
}

// deliveryRows are the rows of the deliveries of events, which have ids, to the active
// webhook endpoints of their accounts.
func (s *Store) deliveryRows(ctx context.Context, tx *sqlx.Tx, now Time, events []newEvent) (rows []newRow, err error) {
	const endpoints = `SELECT seq, account_id, events, inboxes FROM webhook_endpoints WHERE account_id = $1 AND active ORDER BY seq`
	wanted := map[int64][]Webhook{} // by account
	for _, e := range events {
		hooks, known := wanted[e.account]
		if !known {
			if err := s.prepared.Select(ctx, tx, &hooks, endpoints, e.account); err != nil {
				return nil, errIn("endpoints of events", err)
			}
			wanted[e.account] = hooks
		}
		for i := range hooks {
			if w := &hooks[i]; w.Wants(e.typ, e.inbox) {
				rows = append(rows, w.delivery(e.id, e.typ, zeroNull(e.message), now))
			}
		}
	}
	return rows, nil
}

// delivery is the row of a delivery of an event to the endpoint, due now. message may be
// nil.
func (w *Webhook) delivery(eventID string, typ EventType, message any, now Time) newRow {
	at := now.UnixMicro()
	return newRow{into: intoDeliveries, values: []any{
		w.AccountID, w.Seq, message, NewLongID("dlv_", now.Time), eventID, string(typ), string(DeliveryPending), int64(0), at, at, at,
	}}
}

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
	// Senders are the key or person who sends an outbound message.
	Senders []Sender
	// Text is the plain text of an outbound message. Limits compare it.
	Text string
}

// preparedMessage is a new message on its way into the database. What can be made
// before the transaction is made by the caller, at the same time as others. The
// transaction fills in the rest, and does so again when it is tried again.
type preparedMessage struct {
	msg         Message // as it will be stored
	fold        string
	joinThread  int64
	newThread   bool
	domain      string // that must be verified for the account
	autoReply   bool
	senders     []Sender
	text        string
	subjectHash int64    // of the subject that may tie it to a thread
	mayBySubj   bool     // may join a thread by that subject
	refersTo    []string // Message-IDs, the likeliest first
	people      []string // addresses in the header, Bcc left out, lower case

	// The JSON columns.
	addresses, refs, attachments  string
	body, extracted, auth, safety any          // string or nil
	facts                         *mail.Safety // nil if the message is rated
	met                           []newRow     // that note the sender
	checksum                      any          // int64 or nil
	eventID                       string
	suppressed                    []string // event data of suppressed recipients

	inbox *lockedInbox
}

func prepareMessage(m *NewMessage, now time.Time) (*preparedMessage, error) {
	if m.Content == nil {
		return nil, errors.New("the message has no content")
	}
	h := &preparedMessage{
		msg: m.Message, fold: storable(m.SubjectFold), joinThread: m.JoinThread, newThread: m.NewThread, domain: m.VerifiedDomain, autoReply: m.AutoReply,
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
	for _, p := range []**string{&msg.Tag, &msg.DeliveredTo} {
		if *p != nil {
			text := storable(**p)
			*p = &text
		}
	}
	for i := range msg.Recipients {
		r := &msg.Recipients[i]
		r.Email, r.Domain = storable(r.Email), storable(r.Domain)
	}
	return h, errors.Join(h.noteSuppressed(), h.encode())
}

// encode makes the JSON columns.
func (h *preparedMessage) encode() error {
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
	if c.Safety != nil {
		if h.safety = text(c.Safety.V); c.Safety.V.Level == "" {
			h.facts = &c.Safety.V
		}
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
func (h *preparedMessage) noteSuppressed() error {
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

// lockedInbox holds the fields of an inbox that a new message needs.
type lockedInbox struct {
	seq       int64
	accountID int64
	id        string
	address   string
	status    InboxStatus
	policy    SendPolicy
	limits    *Limits
	expiresAt *Time
	// quarantine is the lowest level of safety of mail that goes into quarantine, or empty.
	quarantine mail.SafetyLevel
	listed     bool // the account has inbound lists
	at         Time // when what the batch puts into it is created
}

// takes reports whether a message may be put into the inbox. Of outbound ones
// only those of a deleted inbox are refused here: whether it may send was decided
// when the send was accepted.
func (in *lockedInbox) takes(d Direction, now Time) bool {
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
