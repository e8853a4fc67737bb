package store

import "time"

const day = 24 * time.Hour

// What is kept, and for how long. An inbox has its own retention for the content
// of its messages and drafts.
const (
	// DefaultEmailRetention is how long the content of an email is kept after it was
	// sent or failed, unless Config says otherwise.
	DefaultEmailRetention = 30 * day
	// RecordTTL is how long the rest of a message is kept after its content was
	// deleted.
	RecordTTL = 35 * day
	// DeletedTTL is how long the position of a deleted message is kept, so that lists
	// and waits can continue from it.
	DeletedTTL = 30 * day
	// EventTTL is how long events are kept.
	EventTTL = 30 * day
	// DeliveryTTL is how long webhook deliveries are kept.
	DeliveryTTL = 30 * day
	// StreamTTL is how far back an event stream can be resumed.
	StreamTTL = day
	// CachedResponseTTL is how long the response to an idempotency key is returned
	// again.
	CachedResponseTTL = day
	// takenCodeTTL is how long a helper remembers that it returned a code.
	takenCodeTTL = day
	// blobTTL is how long a blob is kept that no row names. A row may name a blob
	// only in the first half of that time (checkBlobs), so that no row names a blob
	// that was removed.
	blobTTL = day
)

// Sessions of the dashboard.
const (
	// SessionTTL is the longest time that a session lasts.
	SessionTTL = 14 * day
	// SessionIdleTTL is how long a session lasts that is not used.
	SessionIdleTTL = 3 * day
	// SessionNoteTTL is how long a note of a session can be read.
	SessionNoteTTL = 10 * time.Minute
	// sessionUsedEvery is how often the last use of a session is written.
	sessionUsedEvery = 5 * time.Minute
)

// Keys, domains and webhook endpoints.
const (
	// KeyRetireTTL is how long the DNS record of a DKIM key stays up after another
	// key replaced it: receivers may verify mail that late (RFC 6376 section 3.1).
	KeyRetireTTL = 7 * day
	// keyUsedEvery is how often the last use of API keys is written. A crash loses
	// the uses since then.
	keyUsedEvery = 15 * time.Second
	// DomainTTL is how long a domain may wait for its DNS records, or be without one.
	DomainTTL = 72 * time.Hour
	// OldSecretTTL is how long the secret before a rotation keeps signing webhooks.
	OldSecretTTL = day
	// FailingEndpointTTL is how long a webhook endpoint may fail before it is turned
	// off.
	FailingEndpointTTL = 5 * day
)

// Windows, leases and timeouts. Those of connections stand in store/internal.
const (
	// RateWindow is the length of a rate limit's window. It begins with the first
	// call in it.
	RateWindow = time.Minute
	// ThreadSendsWindow is how long a sent message counts for MaxThreadSends.
	ThreadSendsWindow = time.Hour
	// subjectWindow is how long messages with the same subject may join a thread.
	subjectWindow = 14 * day
	// indexLease is how long a node that fills the full-text index may be silent
	// before another node takes over.
	indexLease = 10 * time.Second
	// searchSkew is how much the clocks of two nodes may differ before a search since
	// some time misses messages that were stored at that time.
	searchSkew = 10 * time.Minute
	// lockedInboxTTL is how long writes to a locked inbox are refused before one of
	// them tries again.
	lockedInboxTTL = 5 * time.Second
	// The outcome of a commit whose connection broke is asked for this long, while a
	// caller waits and when no caller does, with this pause between two questions.
	outcomeTimeout     = 5 * time.Second
	outcomeLongTimeout = 15 * time.Second
	outcomeEvery       = 100 * time.Millisecond
)
