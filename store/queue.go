package store

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/internal/crashpoint"
	"github.com/postroom/postroom/internal/work"
)

// Claimed is a recipient that this process alone delivers to until the lease
// ends, with the message (without content).
type Claimed struct {
	Recipient
	Message Message
	// From is the address that the mail is from: the inbox's, or that in the
	// header of an email.
	From string
	// Category is the email's, and empty of a message of an inbox.
	Category Category
	// SenderID is the id of the inbox whose address it is sent from, or empty.
	SenderID string
}

// claimColumns are the columns of messages, of inboxes and of none.
const (
	claimColumns = `m.seq, m.account_id, coalesce(m.inbox_seq, 0) AS inbox_seq, coalesce(i.id, '') AS inbox_id, m.id, m.direction, m.status,
		m.test_mode, m.from_email, m.addresses, m.subject, m.header_id, m.refs, m.automated, m.size, m.created_at, i.address AS inbox_address,
		coalesce(e.category, '') AS category, m.sent_by, coalesce(s.id, '') AS sender_id`
	claimTables = ` FROM messages m LEFT JOIN inboxes i ON i.seq = m.inbox_seq LEFT JOIN emails e ON e.message_seq = m.seq
		LEFT JOIN inboxes s ON s.seq = e.from_inbox`
)

// ClaimRecipients takes up to limit recipients that are due and not busy. Half of them
// are those that are due for longest, and half those that have become due last: new
// mail does not wait behind the backlog of another account. A node that is paused
// claims none.
func (s *Store) ClaimRecipients(ctx context.Context, limit int, lease time.Duration, busy *work.Busy) ([]Claimed, error) {
	if s.Paused() != nil {
		return nil, nil
	}
	oldest := (limit + int(s.queue.claims.Add(1)%2)) / 2
	claimed, err := transact(ctx, s, "claim recipients", func(tx *sqlx.Tx) ([]Claimed, error) {
		now, err := s.serverClock(ctx, tx)
		if err != nil {
			return nil, err
		}
		due, err := s.findDue(ctx, tx, WorkRecipients, NewTime(now), oldest, busy, oldestFirst)
		if err != nil {
			return nil, err
		}
		newest, err := s.findDue(ctx, tx, WorkRecipients, NewTime(now), limit-oldest, busy, newestFirst, due...)
		if err != nil || len(due)+len(newest) == 0 {
			return nil, err
		}
		var rows []Recipient
		if err := s.claim(ctx, tx, WorkRecipients, append(due, newest...), NewTime(now.Add(lease)), &rows, recipientColumns); err != nil {
			return nil, err
		}
		claimed, err := withMessages(ctx, tx, rows)
		if err != nil {
			return nil, err
		}
		return s.leaveStopped(ctx, tx, claimed, NewTime(now))
	})
	if len(claimed) > 0 {
		crashpoint.Reach(crashpoint.Claim)
	}
	return claimed, err
}

func withMessages(ctx context.Context, tx *sqlx.Tx, rows []Recipient) ([]Claimed, error) {
	type sent struct {
		Message
		InboxAddress *string  `db:"inbox_address"`
		SenderID     string   `db:"sender_id"` // of an email's inbox
		Category     Category `db:"category"`
	}
	var ms []sent
	seqs := each(rows, func(r Recipient) int64 { return r.MessageSeq })
	if err := selectIn(ctx, tx, &ms, `SELECT `+claimColumns+claimTables+` WHERE m.seq IN (?)`, seqs); err != nil {
		return nil, errIn("messages of claimed recipients", err)
	}
	bySeq := keyed(ms, func(m *sent) int64 { return m.Seq })
	claimed := make([]Claimed, 0, len(rows))
	for _, r := range rows {
		if m := bySeq[r.MessageSeq]; m != nil {
			from := cmp.Or(m.InboxAddress, &m.FromEmail)
			claimed = append(claimed, Claimed{r, m.Message, *from, m.Category, cmp.Or(m.InboxID, m.SenderID)})
		}
	}
	return claimed, nil
}

// RetryDeferred makes the deferred deliveries of an email or a sent message due at
// once. Recipients that are claimed keep their lease, so that nothing is sent twice.
// It returns ErrState if no delivery is deferred.
func (s *Store) RetryDeferred(ctx context.Context, accountID int64, id string) error {
	const (
		find  = `SELECT seq FROM messages WHERE account_id = $1 AND id = $2`
		retry = `UPDATE recipients SET next_attempt_at = $2
			WHERE message_seq = $1 AND status = 'queued' AND attempts > 0 AND NOT leased AND next_attempt_at > $2`
	)
	err := s.inTx(ctx, "retry deferred deliveries of "+id, func(tx *sqlx.Tx) error {
		seq, err := getOne[int64](ctx, tx, find, accountID, id)
		if err != nil {
			return err
		}
		n, err := affected(tx.ExecContext(ctx, retry, seq, NewTime(s.now())))
		if err == nil && n == 0 {
			err = ErrState
		}
		return err
	})
	if err == nil {
		s.changed([]topic{{kind: topicQueue}}, 1)
	}
	return err
}

// RecipientStatus is the delivery state of one recipient.
type RecipientStatus string

// The states of a recipient.
const (
	RecipientQueued     RecipientStatus = "queued"
	RecipientSent       RecipientStatus = "sent"
	RecipientDelivered  RecipientStatus = "delivered"
	RecipientBounced    RecipientStatus = "bounced"
	RecipientComplained RecipientStatus = "complained"
	RecipientFailed     RecipientStatus = "failed"
	RecipientSuppressed RecipientStatus = "suppressed"
)

// The states that only a recipient of an email can be in.
const (
	RecipientOpened  RecipientStatus = "opened"
	RecipientClicked RecipientStatus = "clicked"

	// These are not stored: they follow from the email and the attempts.
	RecipientScheduled RecipientStatus = "scheduled"
	RecipientSending   RecipientStatus = "sending"
	RecipientCancelled RecipientStatus = "cancelled"
)

// Recipient is one RCPT of one outbound message: a row of the queue.
type Recipient struct {
	Seq           int64           `db:"seq"`
	AccountID     int64           `db:"account_id"`
	MessageSeq    int64           `db:"message_seq"`
	Email         string          `db:"email"`
	Domain        string          `db:"domain"` // lower case; what the queue groups by
	Kind          string          `db:"kind"`   // to, cc, bcc
	Status        RecipientStatus `db:"status"`
	Attempts      int             `db:"attempts"`
	Fence         int64           `db:"fence"`           // rises with each claim
	NextAttemptAt *Time           `db:"next_attempt_at"` // nil: nothing more to do
	LastResponse  *string         `db:"last_response"`   // what the other server last said
	CreatedAt     Time            `db:"created_at"`
	SentAt        *Time           `db:"sent_at"`
	DeliveredAt   *Time           `db:"delivered_at"`
	BouncedAt     *Time           `db:"bounced_at"`
}

const recipientColumns = `seq, account_id, message_seq, email, domain, kind, status, attempts, fence, next_attempt_at,
	last_response, created_at, sent_at, delivered_at, bounced_at`

// certificateLabel binds what is sealed to its row.
func certificateLabel(name string) string { return "certificate " + name }

// Certificate returns what PutCertificate keeps under a name. It returns
// ErrNotFound if there is nothing.
func (s *Store) Certificate(ctx context.Context, name string) ([]byte, error) {
	sealed, err := readOne[[]byte](ctx, s, "certificate "+name, `SELECT sealed FROM certificates WHERE name = $1`, name)
	if err != nil {
		return nil, err
	}
	plain, err := s.seal.Open(certificateLabel(name), sealed)
	if err != nil {
		return nil, fmt.Errorf("certificate %s: %w", name, err)
	}
	return plain, nil
}

// PutCertificate keeps a certificate with its key, or what getting one needs, for
// all nodes, sealed.
func (s *Store) PutCertificate(ctx context.Context, name string, data []byte) error {
	const q = `INSERT INTO certificates (name, sealed, updated_at) VALUES ($1, $2, $3)
		ON CONFLICT (name) DO UPDATE SET sealed = excluded.sealed, updated_at = excluded.updated_at`
	_, err := s.exec(ctx, "keep a certificate", q, name, s.seal.Seal(certificateLabel(name), data), NewTime(s.now()))
	return err
}

// DeleteCertificate forgets what is kept under a name. A missing entry is not an
// error.
func (s *Store) DeleteCertificate(ctx context.Context, name string) error {
	_, err := s.exec(ctx, "forget a certificate", `DELETE FROM certificates WHERE name = $1`, name)
	return err
}

// ClaimCertificate reports whether this node may obtain a certificate now. No
// other node may until the given time.
func (s *Store) ClaimCertificate(ctx context.Context, name string, until time.Time) (bool, error) {
	return s.claimName(ctx, "certificate "+name, until)
}

// MailPolicy is what a domain asks of those who send mail to it, as it was
// fetched (MTA-STS, RFC 8461). It is kept for all nodes, and over restarts:
// without it, whoever can keep a domain from being asked could read its mail.
type MailPolicy struct {
	Domain    string         `db:"domain"` // in its ASCII form, lower case
	PolicyID  string         `db:"policy_id"`
	Mode      string         `db:"mode"` // enforce, testing or none
	MX        JSON[[]string] `db:"mx"`
	FetchedAt Time           `db:"fetched_at"`
	ExpiresAt Time           `db:"expires_at"`
}

// SaveMailPolicy keeps p in place of what was known of its domain.
func (s *Store) SaveMailPolicy(ctx context.Context, p MailPolicy) error {
	const q = `
		INSERT INTO mail_policies (domain, policy_id, mode, mx, fetched_at, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (domain) DO UPDATE SET policy_id = excluded.policy_id, mode = excluded.mode, mx = excluded.mx,
			fetched_at = excluded.fetched_at, expires_at = excluded.expires_at`
	_, err := s.write.ExecContext(ctx, q, p.Domain, p.PolicyID, p.Mode, p.MX, p.FetchedAt, p.ExpiresAt)
	return s.wrap(err, "save mail policy")
}

// MailPolicy returns what is known of a domain. It returns ErrNotFound if nothing
// is, or nothing any more.
func (s *Store) MailPolicy(ctx context.Context, domain string) (MailPolicy, error) {
	const q = `SELECT domain, policy_id, mode, mx, fetched_at, expires_at FROM mail_policies WHERE domain = $1 AND expires_at > $2`
	return readOne[MailPolicy](ctx, s, "mail policy of "+domain, q, domain, NewTime(s.now()))
}
