package store

import (
	"time"

	"github.com/postroom/postroom/store/internal/engine"
)

// Limits that the API shows.
const (
	// MaxSkew is the largest difference between the clocks of a node and of the
	// database server.
	MaxSkew = engine.MaxSkew
	// MaxWebhooks is the most webhook endpoints of an account.
	MaxWebhooks = 20
	// MaxReplay is how many events of the log one replay considers.
	MaxReplay = 10000
	// MaxStatsDays is the number of days that statistics are kept for.
	MaxStatsDays = 90
	// MaxThreadSends is the most messages that a thread takes from us within
	// ThreadSendsWindow.
	MaxThreadSends = 20
	// ThreadMessages is the most messages that Thread returns, the latest ones.
	ThreadMessages = 100
	// MaxEngagements is the most opens and clicks of one recipient that are recorded.
	// Anyone who has the message can make more of them.
	MaxEngagements = 100
	// maxResponse is how many bytes of a remote server's reply are kept.
	maxResponse = 1000
)

// Results of attempts.
const (
	// recordTries is how often a result is written when the database is up, and
	// recordTimeout limits one of these writes.
	recordTries   = 5
	recordTimeout = 10 * time.Second
)

// Limits of threads.
const (
	// maxParticipants is the most addresses that a thread remembers.
	maxParticipants = 100
	// maxReferences is the most earlier messages that are looked up for one message;
	// maxRoots of them are the oldest that it names.
	maxReferences = 50
	maxRoots      = 10
	// maxReplyReferences is the most References that a reply carries. Like mail
	// clients, it keeps the first and the newest.
	maxReplyReferences = 30
	// maxExpected is the most missing Message-IDs that one message may record.
	maxExpected = 20
	// maxMerged is the most messages of the smaller of two threads that are merged,
	// because other mail waits meanwhile. Larger threads stay separate.
	maxMerged = 200
	// maxRefreshed is the most messages of a thread that are read to find addresses
	// that are in none of them. A larger thread keeps them until it is smaller.
	maxRefreshed = 200
)

// Limits of one query or transaction.
const (
	// releaseBatch is the most scheduled emails that one transaction queues;
	// releaseDrafts of them may become drafts.
	releaseBatch  = 500
	releaseDrafts = 20
	// maxDueEndpoints is the most webhook endpoints that one round returns.
	maxDueEndpoints = 1000
	// claimWindow is how many due deliveries of an endpoint a claim reads for each
	// that it may take.
	claimWindow = 8
	// contactChunk is the most contacts that one statement inserts.
	contactChunk = 100
	// maxFollowed is the most new events for which inboxes are woken one by one; for
	// more, all are woken.
	maxFollowed = 2000
	// maxLockedInboxes is the most locked inboxes that are remembered.
	maxLockedInboxes = 10_000
	// maxAddresses is the most addresses or names that are counted separately in
	// memory. The rest share one window.
	maxAddresses = 1 << 17
	// maxWrittenTo is how many messages of an inbox WrittenTo reads.
	maxWrittenTo = 5000
	// maxMarks is the most inboxes that a search looks up in the index. For more, the
	// filters exclude messages.
	maxMarks = 8
	// readAhead is how many contents one query of a search reads.
	readAhead = 16
	// maxBody is more bytes than the text of a message has. The rest of a large
	// message is attachments, which a search does not read.
	maxBody = 1 << 20
)

// pageLimits bound the cost of one page of a list or a search. A page that reaches
// a limit ends there, and the next page continues.
type pageLimits struct {
	// listScan is the most messages that a page of a list reads, whatever its filters
	// exclude: about 20 ms.
	listScan int
	// searchLook is the most messages from the index that a page of a search reads,
	// for the filters that the index does not know.
	searchLook int
	// searchRead and searchReadBytes limit the content that it reads: messages that
	// the index does not hold yet, and those that may have a phrase.
	searchRead, searchReadBytes int
	// searchBuckets is the most buckets of the index that it reads.
	searchBuckets int
	// bucketSize is about how many messages of an account share a bucket of the
	// full-text index. A search reads the buckets from the newest on: larger ones
	// slow a search for a common word down, smaller ones that for a rare word.
	bucketSize int64
}

var defaultLimits = pageLimits{
	listScan: 20_000, searchLook: 10_000, searchRead: 1000, searchReadBytes: 8 << 20, searchBuckets: 256, bucketSize: 4096,
}

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
	// largeWrite is the size of a raw message that counts as one more write, in bytes.
	largeWrite = 16 << 10
	// lockedInboxTTL is how long writes to a locked inbox are refused before one of
	// them tries again.
	lockedInboxTTL = 5 * time.Second
	// The outcome of a commit whose connection broke is asked for this long, while a
	// caller waits and when no caller does, with this pause between two questions.
	outcomeTimeout     = 5 * time.Second
	outcomeLongTimeout = 15 * time.Second
	outcomeEvery       = 100 * time.Millisecond
)
