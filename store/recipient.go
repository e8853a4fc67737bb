package store

// RecipientStatus is how far the delivery to one recipient has come.
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
