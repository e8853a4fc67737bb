package store

import "context"

// Direction says whether a message was received or sent.
type Direction string

// The directions.
const (
	DirectionIn  Direction = "in"
	DirectionOut Direction = "out"
)

// MessageStatus is how far a message has come.
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
)

// Address is a mailbox: a name, which may be empty, and an address.
type Address struct {
	Name  string `json:"name,omitempty"`
	Email string `json:"email"`
}

// Addresses are the address fields of a message's header; Bcc, which no mail
// shows, is of outbound ones.
type Addresses struct {
	From    *Address  `json:"from,omitempty"`
	To      []Address `json:"to,omitempty"`
	Cc      []Address `json:"cc,omitempty"`
	Bcc     []Address `json:"bcc,omitempty"`
	ReplyTo []Address `json:"reply_to,omitempty"`
}

// References are the header fields that tie a message to earlier ones.
type References struct {
	InReplyTo  []string `json:"in_reply_to,omitempty"`
	References []string `json:"references,omitempty"`
}

// Message is one message as listed, with what its content yields at a glance.
type Message struct {
	Seq         int64            `db:"seq"`
	AccountID   int64            `db:"account_id"`
	InboxSeq    int64            `db:"inbox_seq"`
	InboxID     string           `db:"inbox_id"`
	ThreadSeq   int64            `db:"thread_seq"`
	ThreadID    string           `db:"thread_id"`
	ID          string           `db:"id"`
	Direction   Direction        `db:"direction"`
	Status      MessageStatus    `db:"status"`
	TestMode    bool             `db:"test_mode"`
	FromEmail   string           `db:"from_email"` // of the header From, as message.FoldAddress has it
	Addresses   JSON[Addresses]  `db:"addresses"`
	Subject     string           `db:"subject"`
	HeaderID    string           `db:"header_id"` // Message-ID with its brackets; may be empty
	Refs        JSON[References] `db:"refs"`
	Automated   bool             `db:"automated"`
	HasCode     bool             `db:"has_code"`
	HasLink     bool             `db:"has_link"`
	Truncated   bool             `db:"truncated"` // a limit on reading it was reached
	Tag         *string          `db:"tag"`
	Size        int64            `db:"size"`       // bytes of the raw message
	CreatedAt   Time             `db:"created_at"` // of inbound ones: received at
	SentAt      *Time            `db:"sent_at"`
	DeliveredAt *Time            `db:"delivered_at"`
	// ExpiredAt is when the content was deleted, or its retention ended.
	ExpiredAt *Time `db:"expired_at"`
	// RetentionDays is that of the inbox; 0 of an email. SettledAt is when the
	// delivery of an email ended, or nil.
	RetentionDays int   `db:"retention_days"`
	SettledAt     *Time `db:"settled_at"`

	// Recipients are filled in for outbound messages that are read one by one
	// or in a page.
	Recipients []Recipient `db:"-"`
	// Content is filled in likewise, and nil when it is deleted.
	Content *Content `db:"-"`
}

const messageColumns = `m.seq, m.account_id, m.inbox_seq, i.id AS inbox_id, m.thread_seq, t.id AS thread_id, m.id, m.direction,
	m.status, m.test_mode, m.from_email, m.addresses, m.subject, m.header_id, m.refs, m.automated, m.has_code, m.has_link, m.truncated, m.tag,
	m.size, m.created_at, m.sent_at, m.delivered_at, m.expired_at, i.retention_days`

const messageTables = ` FROM messages m JOIN inboxes i ON i.seq = m.inbox_seq JOIN threads t ON t.seq = m.thread_seq`

// Message returns the account's message with its content, unless its inbox is
// deleted.
func (s *Store) Message(ctx context.Context, accountID int64, id string) (Message, error) {
	const q = `SELECT ` + messageColumns + messageTables + ` WHERE m.account_id = $1 AND m.id = $2 AND i.status <> 'deleted'`
	var m Message
	if err := s.reads.One(ctx, &m, q, accountID, id); err != nil {
		return Message{}, s.wrap(err, "message")
	}
	s.expireRead(&m)
	one := []Message{m}
	err := s.fill(ctx, one)
	return one[0], err
}

// FirstMessage returns the oldest message of one inbox that matches, with its
// content, or ErrNotFound. It does not look for text.
func (s *Store) FirstMessage(ctx context.Context, f MessageFilter) (Message, error) {
	w := &where{}
	w.add("i.status <> 'deleted'")
	w.add("m.inbox_seq = ?", f.InboxSeq)
	f.add(w)
	q := `SELECT ` + messageColumns + messageTables + w.sql() + ` ORDER BY m.created_at, m.seq LIMIT 1`
	var m Message
	if err := s.reads.One(ctx, &m, q, w.args...); err != nil {
		return Message{}, s.wrap(err, "first message")
	}
	s.expireRead(&m)
	one := []Message{m}
	err := s.fill(ctx, one)
	return one[0], err
}

// fill reads the content and the recipients of the messages.
func (s *Store) fill(ctx context.Context, ms []Message) error {
	bySeq := make(map[int64]*Message, len(ms))
	var all, out []int64
	for i := range ms {
		m := &ms[i]
		bySeq[m.Seq] = m
		if m.ExpiredAt == nil && m.Content == nil {
			all = append(all, m.Seq)
		}
		if m.Direction == DirectionOut {
			out = append(out, m.Seq)
		}
	}
	if err := s.fillContents(ctx, bySeq, all); err != nil {
		return err
	}
	return s.fillRecipients(ctx, bySeq, out)
}

func (s *Store) fillContents(ctx context.Context, bySeq map[int64]*Message, seqs []int64) error {
	if len(seqs) == 0 {
		return nil
	}
	q := `SELECT ` + contentColumns + ` FROM contents WHERE ` + s.engine.OneOf("message_seq", "$1")
	rows := make([]Content, 0, len(seqs))
	if err := s.reads.All(ctx, &rows, q, s.engine.List(seqs)); err != nil {
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
	if err := s.reads.All(ctx, &rows, q, s.engine.List(seqs)); err != nil {
		return s.wrap(err, "read recipients")
	}
	for _, r := range rows {
		m := bySeq[r.MessageSeq]
		m.Recipients = append(m.Recipients, r)
	}
	return nil
}
