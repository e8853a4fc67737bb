package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"golang.org/x/text/unicode/norm"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/work"
	"github.com/postroom/postroom/store/internal/checksum"
)

// Direction reports whether a message was received or sent.
type Direction string

// The directions.
const (
	DirectionIn  Direction = "in"
	DirectionOut Direction = "out"
)

// MessageStatus is the delivery state of a message.
type MessageStatus string

// The states of a message. Received is for inbound ones, the others for
// outbound ones.
const (
	MessageReceived   MessageStatus = "received"
	MessageQueued     MessageStatus = "queued"
	MessageSent       MessageStatus = "sent"
	MessageDelivered  MessageStatus = "delivered"
	MessageBounced    MessageStatus = "bounced"
	MessageComplained MessageStatus = "complained"
	MessageFailed     MessageStatus = "failed"
	// MessageQuarantined is a received message that waits for release. Only who asks
	// for this status sees it.
	MessageQuarantined MessageStatus = "quarantined"
)

// References are the header fields that tie a message to earlier ones.
type References struct {
	InReplyTo  []string `json:"in_reply_to,omitempty"`
	References []string `json:"references,omitempty"`
}

// ReplyReferences returns the references of a reply to m (RFC 5322 section
// 3.6.4).
func (m *Message) ReplyReferences() References {
	if m.HeaderID == "" {
		return References{}
	}
	chain := m.Refs.V.References
	if len(chain) == 0 {
		chain = m.Refs.V.InReplyTo
	}
	chain = append(slices.Clone(chain), m.HeaderID)
	if n := len(chain); n > maxReplyReferences {
		chain = append(chain[:1:1], chain[n-maxReplyReferences+1:]...)
	}
	return References{InReplyTo: []string{m.HeaderID}, References: chain}
}

// Message is one message as listed, with what its content yields at a glance.
type Message struct {
	Seq         int64                `db:"seq"`
	AccountID   int64                `db:"account_id"`
	InboxSeq    int64                `db:"inbox_seq"`
	InboxID     string               `db:"inbox_id"`
	ThreadSeq   int64                `db:"thread_seq"`
	ThreadID    string               `db:"thread_id"`
	ID          string               `db:"id"`
	Direction   Direction            `db:"direction"`
	Status      MessageStatus        `db:"status"`
	TestMode    bool                 `db:"test_mode"`
	FromEmail   string               `db:"from_email"` // of the header From, as mail.FoldAddress returns it
	Addresses   JSON[mail.Addresses] `db:"addresses"`
	Subject     string               `db:"subject"`
	HeaderID    string               `db:"header_id"` // Message-ID with its brackets; may be empty
	Refs        JSON[References]     `db:"refs"`
	Automated   bool                 `db:"automated"`
	HasCode     bool                 `db:"has_code"`
	HasLink     bool                 `db:"has_link"`
	Truncated   bool                 `db:"truncated"` // a limit on reading it was reached
	Tag         *string              `db:"tag"`
	DeliveredTo *string              `db:"delivered_to"` // of received ones, the recipient of the envelope
	SentBy      *string              `db:"sent_by"`      // the id of a key or user; read by claims only
	Size        int64                `db:"size"`         // bytes of the raw message
	CreatedAt   Time                 `db:"created_at"`   // of inbound ones: received at
	SentAt      *Time                `db:"sent_at"`
	DeliveredAt *Time                `db:"delivered_at"`
	// Labels are in order. ReadAt is when a key or a person first read it.
	Labels JSON[[]string] `db:"labels"`
	ReadAt *Time          `db:"read_at"`
	// ExpiredAt is when the content was deleted, or its retention ended.
	ExpiredAt *Time `db:"expired_at"`
	// RetentionDays is that of the inbox; 0 of an email. SettledAt is when the
	// delivery of an email ended, or nil.
	RetentionDays int   `db:"retention_days"`
	SettledAt     *Time `db:"settled_at"`

	// Recipients are filled in for outbound messages that are read one by one
	// or in a page.
	Recipients []Recipient `db:"-"`
	// Content is filled in likewise, and nil when it is deleted. In a page of
	// summaries it has no Body.
	Content *Content `db:"-"`
}

const messageColumns = `m.seq, m.account_id, m.inbox_seq, i.id AS inbox_id, m.thread_seq, t.id AS thread_id, m.id, m.direction,
	CASE WHEN m.quarantined THEN 'quarantined' ELSE m.status END AS status, m.test_mode, m.from_email, m.addresses, m.subject, m.header_id,
	m.refs, m.automated, m.has_code, m.has_link, m.truncated, m.tag, m.delivered_to, m.size, m.created_at, m.sent_at, m.delivered_at,
	m.labels, m.read_at, m.expired_at, i.retention_days`

// wholeMessage selects messages with their content.
const wholeMessage = `SELECT ` + messageColumns + andContent + messageTables + contentTable

const messageTables = ` FROM messages m JOIN inboxes i ON i.seq = m.inbox_seq JOIN threads t ON t.seq = m.thread_seq`

// Message returns the account's message with its content, unless its inbox is
// deleted or it is in quarantine.
func (s *Store) Message(ctx context.Context, accountID int64, id string) (Message, error) {
	m, err := s.AnyMessage(ctx, accountID, id)
	if err == nil && m.Status == MessageQuarantined {
		return Message{}, fmt.Errorf("message: %w", ErrNotFound)
	}
	return m, err
}

// AnyMessage is Message for messages in quarantine too.
func (s *Store) AnyMessage(ctx context.Context, accountID int64, id string) (Message, error) {
	const q = wholeMessage + ` WHERE m.account_id = $1 AND m.id = $2 AND i.status <> 'deleted'`
	return s.oneMessage(ctx, "message", q, accountID, id)
}

// SimulatedHeader returns one of these Message-IDs that an inbox has a message with, but
// only simulated ones, or "".
func (s *Store) SimulatedHeader(ctx context.Context, inboxSeq int64, headerIDs []string) (string, error) {
	const q = `SELECT header_id FROM messages WHERE inbox_seq = ? AND header_hash IN (?)
		GROUP BY header_id HAVING sum(CASE WHEN test_mode THEN 0 ELSE 1 END) = 0`
	if len(headerIDs) == 0 {
		return "", nil
	}
	var simulated []string
	if err := selectIn(ctx, s.read, &simulated, q, inboxSeq, each(headerIDs, hash64)); err != nil {
		return "", s.wrap(err, "simulated message")
	}
	for _, id := range headerIDs {
		if slices.Contains(simulated, id) {
			return id, nil
		}
	}
	return "", nil
}

// IsFirstContact reports whether an inbox has neither received anything from the sender
// of a received message before it, nor sent the sender one of its newest messages.
func (s *Store) IsFirstContact(ctx context.Context, m Message) (bool, error) {
	const q = `SELECT count(*) FROM (SELECT 1 FROM messages
		WHERE inbox_seq = $1 AND created_at <= $2 AND direction = 'in' AND from_email = $3 AND NOT test_mode AND seq < $4 LIMIT 1) x`
	n, err := readOne[int](ctx, s, "earlier messages of a sender", q, m.InboxSeq, m.CreatedAt, m.FromEmail, m.Seq)
	if err != nil || n > 0 {
		return false, err
	}
	to, err := s.WrittenTo(ctx, m.InboxSeq, []string{m.FromEmail})
	return len(to) == 0, err
}

// FirstMessage returns the oldest message of one inbox that matches, with its
// content, or ErrNotFound. With HasCode or HasLink it returns the newest, because a new
// code or link replaces the ones before. It does not look for text.
func (s *Store) FirstMessage(ctx context.Context, f MessageFilter) (Message, error) {
	w := &where{}
	w.add("i.status <> 'deleted'")
	w.add("m.inbox_seq = ?", f.InboxSeq)
	f.add(w)
	order := ` ORDER BY m.created_at, m.seq LIMIT 1`
	if f.HasCode || f.HasLink {
		order = ` ORDER BY m.created_at DESC, m.seq DESC LIMIT 1`
	}
	q := wholeMessage + w.sql() + order
	return s.oneMessage(ctx, "first message", q, w.args...)
}

const (
	// maxOlder is how many older matches are counted, and olderAmong how many messages
	// are looked at for them.
	maxOlder   = 100
	olderAmong = 1000
)

// OlderMatches returns when the messages of one inbox that match but came before Since
// were created, newest first, at most maxOlder. It looks at no more than the newest
// olderAmong of them.
func (s *Store) OlderMatches(ctx context.Context, f MessageFilter) ([]Time, error) {
	w := &where{}
	f.Since, f.Until = nil, f.Since
	w.add("m.inbox_seq = ?", f.InboxSeq)
	w.add(`m.created_at >= coalesce((SELECT created_at FROM messages WHERE inbox_seq = ? AND created_at < ?
		ORDER BY created_at DESC LIMIT 1 OFFSET ?), ?)`, f.InboxSeq, *f.Until, olderAmong-1, Time{})
	f.add(w)
	q := `SELECT m.created_at FROM messages m` + w.sql() + ` ORDER BY m.created_at DESC LIMIT ` + strconv.Itoa(maxOlder)
	return readAll[Time](ctx, s, "older matches", q, w.args...)
}

// oneMessage returns the message that a query for wholeMessage finds.
func (s *Store) oneMessage(ctx context.Context, what, q string, args ...any) (Message, error) {
	ms, err := s.readMessages(ctx, q, args...)
	if err == nil && len(ms) == 0 {
		err = sql.ErrNoRows
	}
	if err != nil {
		return Message{}, s.wrap(err, what)
	}
	if ms[0].Direction == DirectionOut {
		err = s.fillRecipients(ctx, map[int64]*Message{ms[0].Seq: &ms[0]}, []int64{ms[0].Seq})
	}
	return ms[0], err
}

// TakeCode reports whether the caller takes the code of a message for the first
// time, and remembers that for a day. Of two calls at once only one is the first.
func (s *Store) TakeCode(ctx context.Context, accountID int64, caller, messageID string) (first bool, err error) {
	const q = `INSERT INTO codes_taken (account_id, caller, message_id, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`
	n, err := s.exec(ctx, "take code", q, accountID, caller, messageID, NewTime(s.now()))
	return n == 1, err
}

// fill reads the recipients of the messages, and these columns of their content, unless it
// was read before.
func (s *Store) fill(ctx context.Context, ms []Message, columns string) error {
	bySeq := keyed(ms, seqOfMessage)
	var all, out []int64
	for i := range ms {
		m := &ms[i]
		if m.ExpiredAt == nil && m.Content == nil {
			all = append(all, m.Seq)
		}
		if m.Direction == DirectionOut {
			out = append(out, m.Seq)
		}
	}
	if err := s.fillContents(ctx, bySeq, all, columns); err != nil {
		return err
	}
	return s.fillRecipients(ctx, bySeq, out)
}

func (s *Store) fillContents(ctx context.Context, bySeq map[int64]*Message, seqs []int64, columns string) error {
	if len(seqs) == 0 {
		return nil
	}
	q := `SELECT ` + columns + ` FROM contents WHERE ` + s.engine.OneOf("message_seq", "$1")
	rows := make([]Content, 0, len(seqs))
	if err := s.read.SelectContext(ctx, &rows, q, s.engine.List(seqs)); err != nil {
		return s.wrap(err, "read contents")
	}
	for i := range rows {
		bySeq[rows[i].MessageSeq].Content = &rows[i]
	}
	return nil
}

func (s *Store) fillRecipients(ctx context.Context, bySeq map[int64]*Message, seqs []int64) error {
	if len(seqs) == 0 {
		return nil
	}
	q := `SELECT ` + recipientColumns + ` FROM recipients WHERE ` + s.engine.OneOf("message_seq", "$1") + ` ORDER BY seq`
	var rows []Recipient
	if err := s.read.SelectContext(ctx, &rows, q, s.engine.List(seqs)); err != nil {
		return s.wrap(err, "read recipients")
	}
	for _, r := range rows {
		m := bySeq[r.MessageSeq]
		m.Recipients = append(m.Recipients, r)
	}
	return nil
}

// DeleteMessage deletes a message, content and record, and updates its thread;
// one without messages goes too. What is not yet delivered of an outbound
// message is not delivered any more. Drafts that were decided and hold the same
// content lose it; a pending one, whose mail is its own, does not.
func (s *Store) DeleteMessage(ctx context.Context, accountID int64, id string) error {
	const find = `SELECT m.seq, m.inbox_seq, i.id AS inbox_id
		FROM messages m JOIN inboxes i ON i.seq = m.inbox_seq
		WHERE m.account_id = $1 AND m.id = $2 AND i.status <> 'deleted'`
	m, err := readOne[Message](ctx, s, "message", find, accountID, id)
	if err != nil {
		return err
	}
	m.AccountID, m.ID = accountID, id
	blobs, err := transact(ctx, s, "delete message", func(tx *sqlx.Tx) ([]string, error) { return s.deleteMessage(ctx, tx, m) })
	if err != nil {
		return err
	}
	s.unscrubbed.Store(true) // again: a scrub may have come before the commit
	if _, err := s.removeUnnamed(ctx, blobs); err != nil {
		s.log.WarnContext(ctx, "blob left to be swept", "message_id", id, "error", err)
	}
	s.changed([]topic{{topicInbox, m.InboxSeq}}, 1)
	return nil
}

// deleteMessage holds the rows in the order in which results are recorded: message,
// recipients, inbox.
func (s *Store) deleteMessage(ctx context.Context, tx *sqlx.Tx, m Message) (blobs []string, err error) {
	const (
		lock       = `SELECT ` + oldColumns + ` FROM messages m WHERE m.seq = $1`
		recipients = `DELETE FROM recipients WHERE message_seq = $1`
	)
	var old oldMessage
	if err := tx.GetContext(ctx, &old, lock+s.engine.LockRow(), m.Seq); err != nil {
		return nil, s.wrap(err, "message "+m.ID)
	}
	if _, err := tx.ExecContext(ctx, recipients, m.Seq); err != nil {
		return nil, errIn("recipients", err)
	}
	if _, err := s.lockInbox(ctx, tx, m.AccountID, m.InboxID); err != nil {
		return nil, err
	}
	blobs, err = s.removeContents(ctx, tx, []oldMessage{old}, NewTime(s.now()))
	if err != nil {
		return nil, err
	}
	if err := s.keepPlace(ctx, tx, old.Seq); err != nil {
		return nil, err
	}
	if err := s.removeRecords(ctx, tx, []oldMessage{old}); err != nil {
		return nil, err
	}
	files, err := s.dropDecidedDrafts(ctx, tx, m.ID)
	return append(blobs, files...), err
}

// dropDecidedDrafts deletes the contents of drafts that were made of a message,
// or that it was made of, unless they are still to be sent.
func (s *Store) dropDecidedDrafts(ctx context.Context, tx *sqlx.Tx, messageID string) (blobs []string, err error) {
	const q = `SELECT seq FROM drafts
		WHERE status NOT IN ('pending', 'scheduled') AND expired_at IS NULL AND (message_id = $1 OR kind = 'forward' AND source_id = $1)`
	var seqs []int64
	if err := tx.SelectContext(ctx, &seqs, q, messageID); err != nil || len(seqs) == 0 {
		return nil, errIn("drafts", err)
	}
	blobs, err = s.dropDraftContents(ctx, tx, seqs)
	return blobs, errIn("contents of drafts", err)
}

const (
	// RawInRow is the largest raw message, in bytes, that lies in its row; a
	// larger one is a blob.
	RawInRow = 256 << 10
)

// Body is the decoded text and HTML of a message. All of it is made once, when
// the message is stored.
type Body struct {
	Text string `json:"text,omitempty"`
	HTML string `json:"html,omitempty"`
	// Reply is the new part of the text of a received message; nil when that is
	// all of Text.
	Reply *string `json:"reply,omitempty"`
	// FromHTML means that the message has no text part and Text was derived from
	// HTML.
	FromHTML bool `json:"from_html,omitempty"`
}

// NewAttachments returns a copy of the attachments of a parsed message with new ids.
// It is never nil.
func NewAttachments(list []mail.Attachment, now time.Time) []mail.Attachment {
	return each(list, func(a mail.Attachment) mail.Attachment {
		a.ID = NewID("att_", now)
		return a
	})
}

// Content is the part of a message that retention deletes.
type Content struct {
	MessageSeq  int64                   `db:"message_seq"`
	Raw         []byte                  `db:"raw"`       // nil when BlobKey is set
	BlobKey     *string                 `db:"blob_key"`  // the blob that is the raw
	BlobSum     uint32                  `db:"-"`         // of the bytes of a new blob, from PutBlob; 0 if unknown
	Signature   *string                 `db:"signature"` // header lines put before Raw when it was first sent
	Body        *JSON[Body]             `db:"body"`      // nil for old messages: read it out of Raw
	Snippet     string                  `db:"snippet"`
	Extracted   *JSON[mail.Extraction]  `db:"extracted"` // nil for outbound ones
	Auth        *JSON[mail.AuthResult]  `db:"auth"`      // nil when not checked
	Safety      *JSON[mail.Safety]      `db:"safety"`    // nil for outbound ones
	Attachments JSON[[]mail.Attachment] `db:"attachments"`
}

const (
	// The raw bytes are needed only of a message whose body is not kept beside them.
	contentColumns = `message_seq, CASE WHEN body IS NULL THEN raw END AS raw, blob_key, signature, body, snippet, extracted, auth, safety, attachments`
	summaryColumns = `message_seq, snippet, extracted, auth, safety, attachments`

	// andSummary or andContent, and contentTable, add the content to a query for
	// messages.
	andSummary = `, coalesce(c.message_seq, 0) AS "content.message_seq", coalesce(c.snippet, '') AS "content.snippet",
		c.extracted AS "content.extracted", c.auth AS "content.auth", c.safety AS "content.safety", coalesce(c.attachments, '[]') AS "content.attachments"`
	andContent = andSummary + `, CASE WHEN c.body IS NULL THEN c.raw END AS "content.raw", c.blob_key AS "content.blob_key",
		c.signature AS "content.signature", c.body AS "content.body"`
	contentTable = ` LEFT JOIN contents c ON c.message_seq = m.seq`
)

// Raw is an open raw message.
type Raw struct {
	// ReadSeekCloser reads the bytes as received, or as composed.
	io.ReadSeekCloser
	// Signature stands before them on the wire: the header lines that signing
	// added, or empty.
	Signature string
	// Size is the number of bytes without the signature.
	Size int64
}

// Raw opens the raw message, for as long as ctx lasts. It returns ErrNotFound if
// the content is deleted. The caller closes it.
func (s *Store) Raw(ctx context.Context, messageSeq int64) (*Raw, error) {
	const q = `SELECT c.raw, c.blob_key, coalesce(c.signature, '') AS signature, m.size, coalesce(c.checksum, 0) AS checksum
		FROM contents c JOIN messages m ON m.seq = c.message_seq WHERE c.message_seq = $1`
	type stored struct {
		Raw       []byte  `db:"raw"`
		BlobKey   *string `db:"blob_key"`
		Signature string  `db:"signature"`
		Size      int64   `db:"size"`
		Checksum  int64   `db:"checksum"`
	}
	row, err := readOne[stored](ctx, s, "raw message", q, messageSeq)
	if err != nil {
		return nil, err
	}
	raw := &Raw{Signature: row.Signature, Size: row.Size}
	if row.BlobKey == nil {
		raw.ReadSeekCloser = nopCloser{bytes.NewReader(row.Raw)}
		if err := checkRaw(raw, row.Checksum); err != nil {
			return nil, err
		}
		return raw, nil
	}
	f, err := s.blobs.Open(ctx, *row.BlobKey)
	if err != nil {
		return nil, fmt.Errorf("raw message: %w", err)
	}
	raw.ReadSeekCloser = f
	if err := checkRaw(f, row.Checksum); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return raw, nil
}

type nopCloser struct{ io.ReadSeeker }

func (nopCloser) Close() error { return nil }

// PutBlob writes a raw message of size bytes that is too large for its row and
// returns its key and checksum. It is durable when PutBlob returns, before any row names it;
// one that no row comes to name is swept away later.
func (s *Store) PutBlob(ctx context.Context, r io.Reader, size int64) (key string, sum uint32, err error) {
	summed := &checksum.SeekReader{Reader: checksum.Reader{R: r}}
	if seeker, ok := r.(io.Seeker); ok {
		summed.S = seeker
		key, err = s.blobs.Put(ctx, summed, size)
	} else {
		key, err = s.blobs.Put(ctx, &summed.Reader, size)
	}
	return key, summed.Sum, err
}

// checkRaw reads all of a raw message, compares it with its checksum, and goes back to
// its beginning. A message of an older version has no checksum: 0.
func checkRaw(r io.ReadSeeker, sum int64) error {
	if sum == 0 {
		return nil
	}
	read := &checksum.Reader{R: r}
	_, err := io.Copy(io.Discard, read)
	if err == nil && !checksum.IsRaw(sum, read.Sum) {
		err = ErrDamaged
	}
	if err == nil {
		_, err = r.Seek(0, io.SeekStart)
	}
	return errIn("raw message", err)
}

// BlobLink returns a URL of the blob storage from which anyone can download the
// raw message, without signature, until ttl has passed. It is empty if the
// message is stored elsewhere or clients cannot reach the storage.
func (s *Store) BlobLink(ctx context.Context, c Content, name string, ttl time.Duration) (string, error) {
	linker, ok := s.blobs.(BlobLinker)
	if !ok || c.BlobKey == nil || c.Signature != nil {
		return "", nil
	}
	return linker.Link(ctx, *c.BlobKey, name, ttl)
}

// MaxLabels is the most labels of a message or thread.
const MaxLabels = 20

// ErrTooManyLabels means that a message or thread would have more than MaxLabels labels.
var ErrTooManyLabels = fmt.Errorf("a message or thread has at most %d labels", MaxLabels)

// Marks is a change of the labels of a message or thread, and of whether it is read.
type Marks struct {
	Labels      []string // the whole list, or nil for that of before
	Add, Remove []string // at once, so that no one loses what another adds
	Read        *bool
}

// NormalizeLabel returns the form in which labels are stored and compared: in lower case,
// composed (NFC), with single spaces between words and none around them.
func NormalizeLabel(label string) string {
	return norm.NFC.String(strings.ToLower(strings.Join(strings.Fields(label), " ")))
}

// addLabel adds the condition that a column has the label, if it is not empty. Labels
// contain neither quotes nor backslashes.
func addLabel(w *where, column, label string) {
	if storable(label) != label || strings.ContainsAny(label, `"\`) {
		w.add("1 = 0")
	} else if text, err := json.Marshal(label); label != "" && err == nil {
		w.add(column+` LIKE ? ESCAPE '\'`, "%"+escapeLike(string(text))+"%")
	}
}

// markRead marks received messages as read or unread: those whose column has the number. It
// leaves those that are so already.
func (s *Store) markRead(ctx context.Context, tx *sqlx.Tx, column string, seq int64, c Marks) error {
	const change = `UPDATE messages SET read_at = cast($2 AS bigint) WHERE direction = 'in' AND (read_at IS NULL) <> (cast($2 AS bigint) IS NULL) AND `
	var at *Time
	if *c.Read {
		now := NewTime(s.now())
		at = &now
	}
	_, err := tx.ExecContext(ctx, change+column+` = $1`, seq, at)
	return errIn("mark as read", err)
}

// MarkMessage changes the marks of a message and returns it with them. A message that is
// read stays read since when it was.
func (s *Store) MarkMessage(ctx context.Context, m Message, c Marks) (Message, error) {
	err := s.inTx(ctx, "mark message", func(tx *sqlx.Tx) (err error) {
		if m.Labels.V, err = s.relabel(ctx, tx, "messages", m.Seq, c); err != nil || c.Read == nil {
			return err
		}
		if err := s.markRead(ctx, tx, "seq", m.Seq, c); err != nil {
			return err
		}
		return tx.GetContext(ctx, &m.ReadAt, `SELECT read_at FROM messages WHERE seq = $1`, m.Seq)
	})
	return m, err
}

// relabel changes the labels of a row, and returns them.
func (s *Store) relabel(ctx context.Context, tx *sqlx.Tx, table string, seq int64, c Marks) ([]string, error) {
	var labels JSON[[]string]
	if err := tx.GetContext(ctx, &labels, `SELECT labels FROM `+table+` WHERE seq = $1`+s.engine.LockRow(), seq); err != nil {
		return nil, err
	}
	before := labels.V
	if c.Labels != nil {
		labels.V = c.Labels
	}
	labels.V = sortedSet(append(slices.Clone(labels.V), c.Add...))
	labels.V = slices.DeleteFunc(labels.V, func(l string) bool { return slices.Contains(c.Remove, l) })
	if len(labels.V) > MaxLabels {
		return nil, ErrTooManyLabels
	}
	if slices.Equal(before, labels.V) {
		return before, nil
	}
	_, err := tx.ExecContext(ctx, `UPDATE `+table+` SET labels = $2 WHERE seq = $1`, seq, labels)
	return labels.V, errIn("label", err)
}

// sortedSet returns the texts in order and each once. It is never nil.
func sortedSet(texts []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(texts)))
}

// MessageClaim is a claim of a received message. Until it ends, no one else gets the
// message. Each claim of a message has a higher token than those before.
type MessageClaim struct {
	Token int64 `db:"fence"`
	Until Time  `db:"next_attempt_at"`
}

// ClaimMessage claims the oldest received message that the filter lets pass and that is
// neither claimed nor done, and returns it with its content; ErrNotFound if there is none.
// A message whose claim ended counts from then: one that all workers fail on does not hold
// up the others.
//
// The claim is a lease as of the work of this program, but is looked for by inbox and
// filter. findDue would read the messages of all accounts.
func (s *Store) ClaimMessage(ctx context.Context, f MessageFilter, lease time.Duration) (Message, MessageClaim, error) {
	f.Direction = DirectionIn
	for {
		inboxes, err := s.inboxesToClaim(ctx, &f)
		if err != nil {
			return Message{}, MessageClaim{}, err
		}
		seq, c, err := s.claimIn(ctx, &f, inboxes, lease)
		if err == nil && seq == 0 {
			err = fmt.Errorf("message to claim: %w", ErrNotFound)
		}
		if err != nil {
			return Message{}, MessageClaim{}, err
		}
		m, err := s.oneMessage(ctx, "claimed message", wholeMessage+` WHERE m.seq = $1 AND i.status <> 'deleted'`, seq)
		if err == nil && m.ExpiredAt != nil { // its retention has ended, and its content is deleted soon
			err = s.EndClaim(ctx, m, c.Token, true)
		} else if !errors.Is(err, ErrNotFound) { // else it was deleted just now
			return m, c, err
		}
		if err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrState) {
			return Message{}, MessageClaim{}, err
		}
	}
}

// inboxesToClaim returns the inboxes with matches to claim, the one with the oldest first.
func (s *Store) inboxesToClaim(ctx context.Context, f *MessageFilter) ([]int64, error) {
	streams, err := s.streams(ctx, f)
	if err != nil || len(streams) == 0 {
		return nil, err
	}
	if f.InboxSeq != 0 {
		return []int64{f.InboxSeq}, nil
	}
	now, err := s.serverClock(ctx, s.read)
	if err != nil {
		return nil, err
	}
	q, args := s.dueInboxes(f, NewTime(now))
	return readAll[int64](ctx, s, "inboxes with messages to claim", q, args...)
}

// dueInboxes is the query for the inboxes with matches that can be claimed now.
func (s *Store) dueInboxes(f *MessageFilter, now Time) (q string, args []any) {
	match := f.claimable("i.seq", now)
	w := &where{args: slices.Clone(match.args)}
	w.add("i.account_id = ? AND i.status <> 'deleted'", f.AccountID)
	if f.InboxIDs != nil {
		w.add(s.engine.OneOf("i.seq", w.arg(s.engine.List(f.inboxes))))
	}
	q = `SELECT seq FROM (SELECT i.seq, (SELECT m.next_attempt_at FROM messages m` + match.sql() + ` ORDER BY m.next_attempt_at LIMIT 1) AS due
		FROM inboxes i` + w.sql() + `) x WHERE due IS NOT NULL ORDER BY due, seq`
	return q, w.args
}

// claimable are the conditions for messages of an inbox that can be claimed now.
func (f *MessageFilter) claimable(inbox string, now Time) *where {
	w := conditions("m.inbox_seq = " + inbox)
	w.add("m.next_attempt_at <= ? AND (SELECT x.status FROM inboxes x WHERE x.seq = m.inbox_seq) <> 'deleted'", now)
	f.add(w)
	return w
}

// claimIn claims a message of the first of these inboxes that has one, and returns its
// number; 0 for none.
func (s *Store) claimIn(ctx context.Context, f *MessageFilter, inboxes []int64, lease time.Duration) (seq int64, c MessageClaim, err error) {
	err = s.inTx(ctx, "claim message", func(tx *sqlx.Tx) error {
		seq = 0
		now, err := s.serverClock(ctx, tx)
		if err != nil {
			return err
		}
		for _, inbox := range inboxes {
			q, args := s.dueMessage(f, inbox, NewTime(now))
			var found []int64
			if err := tx.SelectContext(ctx, &found, q, args...); err != nil {
				return errIn("find a message to claim", err)
			}
			if len(found) > 0 {
				seq = found[0]
				var claims []MessageClaim
				err := s.claim(ctx, tx, WorkMessages, found, NewTime(now.Add(lease)), &claims, "fence, next_attempt_at")
				if err == nil {
					c = claims[0]
				}
				return err
			}
		}
		return nil
	})
	return seq, c, err
}

// dueMessage is the query for the message of an inbox to claim next.
func (s *Store) dueMessage(f *MessageFilter, inbox int64, now Time) (q string, args []any) {
	w := f.claimable(strconv.FormatInt(inbox, 10), now)
	return `SELECT m.seq FROM messages m` + w.sql() + ` ORDER BY m.next_attempt_at LIMIT 1` + s.engine.SkipLocked(), w.args
}

// ExtendClaim lets a claim of a message last for the time of lease from now. It returns
// ErrState if the claim is over and someone else may have the message.
func (s *Store) ExtendClaim(ctx context.Context, m Message, token int64, lease time.Duration) (MessageClaim, error) {
	const q = `SELECT fence, next_attempt_at FROM messages WHERE seq = $1 AND fence = $2 AND leased`
	lost, err := s.RenewLeases(ctx, WorkMessages, []work.Lease{{Row: m.Seq, Fence: token}}, lease)
	if err == nil && len(lost) > 0 {
		err = errClaimOver
	}
	if err != nil {
		return MessageClaim{}, err
	}
	c, err := readOne[MessageClaim](ctx, s, "claim", q, m.Seq, token)
	if errors.Is(err, ErrNotFound) { // it ended just now
		err = errClaimOver
	}
	return c, err
}

var errClaimOver = fmt.Errorf("claim of a message: %w", ErrState)

// EndClaim ends a claim of a message: with done, no one gets it again, which may be said
// twice, and else it can be claimed at once, by its age. It returns ErrState as
// ExtendClaim does.
func (s *Store) EndClaim(ctx context.Context, m Message, token int64, done bool) error {
	const isDone = `SELECT count(*) FROM messages WHERE seq = $1 AND fence = $2 AND next_attempt_at IS NULL`
	end, own := leaseEnd{seq: m.Seq, fence: token, status: string(MessageReceived), next: &m.CreatedAt}, ", fence = fence + 1"
	if done {
		end.next, own = nil, ""
	}
	return s.inTx(ctx, "end claim", func(tx *sqlx.Tx) error {
		ours, err := s.endLease(ctx, tx, WorkMessages, end, own)
		if ours || err != nil {
			return err
		}
		ended := 0
		if err := tx.GetContext(ctx, &ended, isDone, m.Seq, token); err != nil || done && ended > 0 {
			return err
		}
		return errClaimOver
	})
}
