package store

import (
	"context"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/internal/work"
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

// Migrations.
const (
	// migrateTimeout is how long a step is retried that cannot lock its tables. A step that
	// fails is rolled back.
	migrateTimeout = 5 * time.Minute
	// migratePause is the time between two attempts, in which the other nodes work.
	migratePause = 200 * time.Millisecond
)

// offEndpointWait is how long a delivery waits at a time while its endpoint is off.
const offEndpointWait = time.Hour

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
	// releaseBatch is the most scheduled emails that are queued in one round.
	releaseBatch = 500
	// claimRounds is how often a claim of deliveries looks again after all that it found
	// were put off.
	claimRounds = 8
	// maxFollowed is the most new events for which inboxes are woken one by one; for
	// more, all are woken.
	maxFollowed = 2000
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
	// replay is MaxReplay.
	replay int
	// settle is about how long a page of the event log waits for open transactions.
	settle time.Duration
}

var defaultLimits = pageLimits{
	listScan: 20_000, searchLook: 10_000, searchRead: 1000, searchReadBytes: 8 << 20, searchBuckets: 256, bucketSize: 4096,
	replay: MaxReplay, settle: time.Second,
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
	// correspondentTTL is how long the first mail from an address, and the last from a domain,
	// is remembered.
	correspondentTTL = 400 * day
	// maxCorrespondents is how many addresses and domains of them an account remembers.
	maxCorrespondents = 20_000
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

// OAuth.
const (
	// AuthorizationCodeTTL is how long an application may take to use its code.
	AuthorizationCodeTTL = time.Minute
	// AccessTokenTTL is the lifetime of an access token.
	AccessTokenTTL = time.Hour
	// RefreshTokenTTL is how long a connected application may be silent.
	RefreshTokenTTL = 30 * day
	// ClientWaitTTL is how long a registered application may wait for a first approval.
	ClientWaitTTL = day
	// ClientTTL is how long an application stays registered after its last approval,
	// if it is not connected.
	ClientTTL = 90 * day
	// MaxWaitingClients is how many applications that no person has approved are kept,
	// and ClientGrace how long each is kept even if there are more.
	MaxWaitingClients = 1000
	ClientGrace       = 10 * time.Minute
	// maxApplications is how many connected applications of an account are listed.
	maxApplications = 200
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
	// indexLease is how long one batch of the full-text index may take before another
	// node takes over.
	indexLease = 10 * time.Second
	// searchSkew is how much the clocks of two nodes may differ before a search since
	// some time misses messages that were stored at that time.
	searchSkew = 10 * time.Minute
	// largeWrite is the size of a raw message that counts as one more write, in bytes.
	largeWrite = 16 << 10
	// maxTries is how often a transaction is tried that the database aborts because of
	// another one, for example to resolve a deadlock. Such a transaction is rolled back
	// whole. retryPause is the longest pause before the second attempt, and grows with each.
	maxTries   = 8
	retryPause = 20 * time.Millisecond
	// The outcome of a commit whose connection broke is asked for this long, with this
	// pause between two questions.
	outcomeTimeout = 5 * time.Second
	outcomeEvery   = 100 * time.Millisecond
)

// RateKind is the kind of a rate limit.
type RateKind string

// The rate limits count calls of a key, sending calls of a key, calls of an address
// without a valid key, and sign-in attempts: by network, and by network and name.
const (
	RateCalls   RateKind = "key"
	RateSends   RateKind = "send"
	RateAddress RateKind = "ip"
	RateSignIn  RateKind = "sign-in"
	RateName    RateKind = "name"
)

// anybodys says that whoever calls chooses under what they are counted.
func (k RateKind) anybodys() bool { return k != RateCalls && k != RateSends }

// Rate is a window after a call.
type Rate struct {
	// Left is the number of remaining calls in the window.
	Left int
	// Ends is the end of the window, when the count starts again.
	Ends time.Time
	// Refused means that this call must not pass. It was not counted.
	Refused bool
}

// TakeRate counts a call of the client who against limit. The count is exact across all
// nodes.
func (s *Store) TakeRate(ctx context.Context, kind RateKind, who string, limit int) (Rate, error) {
	n, ends, err := s.rates.take(ctx, kind, who, limit, s.now())
	return Rate{Left: max(0, limit-n), Ends: ends, Refused: n > limit}, s.wrap(err, "rate limit")
}

// rateCounter counts calls in windows. take returns which call of its window
// this is, or a number over limit when it does not count any more.
type rateCounter interface {
	take(ctx context.Context, kind RateKind, who string, limit int, now time.Time) (n int, ends time.Time, err error)
	// sweep forgets windows that have ended.
	sweep(ctx context.Context, now time.Time) error
	close() error
}

// openRates chooses the counter: one process can count in memory.
func (s *Store) openRates(ctx context.Context) error {
	if s.engine.Alone() {
		s.rates = &memoryRates{}
		return nil
	}
	st, err := s.read.PreparexContext(ctx, countRate)
	if err != nil {
		return s.wrap(err, "open")
	}
	s.rates = &tableRates{db: s.read.DB, count: st}
	return nil
}

// sweepRates forgets windows until ctx ends.
func (s *Store) sweepRates(ctx context.Context) {
	work.Every(ctx, RateWindow, func(ctx context.Context) {
		if err := s.rates.sweep(ctx, s.now()); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "rate limits not swept", "error", err)
		}
	})
}

// memoryRates counts for the one process that there is.
type memoryRates struct {
	mu    sync.Mutex
	kinds map[RateKind]map[string]*rateWindow
}

type rateWindow struct {
	ends time.Time
	n    int
}

// contains reports whether a call at now falls into the window. The clock may go
// back.
func (w *rateWindow) contains(now time.Time) bool {
	return now.Before(w.ends) && w.ends.Sub(now) <= RateWindow
}

func (m *memoryRates) take(_ context.Context, kind RateKind, who string, limit int, now time.Time) (int, time.Time, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w := m.window(kind, who)
	if !w.contains(now) {
		*w = rateWindow{ends: now.Add(RateWindow)}
	}
	w.n = min(w.n, limit) + 1
	return w.n, w.ends, nil
}

func (m *memoryRates) window(kind RateKind, who string) *rateWindow {
	windows := m.kinds[kind]
	if windows == nil {
		if m.kinds == nil {
			m.kinds = map[RateKind]map[string]*rateWindow{}
		}
		windows = map[string]*rateWindow{}
		m.kinds[kind] = windows
	}
	w := windows[who]
	if w == nil && kind.anybodys() && len(windows) >= maxAddresses {
		who = "others"
		w = windows[who]
	}
	if w == nil {
		w = &rateWindow{}
		windows[who] = w
	}
	return w
}

func (m *memoryRates) sweep(_ context.Context, now time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, windows := range m.kinds {
		for who, w := range windows {
			if !w.contains(now) {
				delete(windows, who)
			}
		}
	}
	return nil
}

func (*memoryRates) close() error { return nil }

// countRate counts a call $1 at the time $2, in a window of $3, against the
// limit $4, which is not counted past. The nodes' clocks may differ by as much
// as a window; a window that ends later than that is of a clock that was wrong.
const countRate = `
	INSERT INTO rate_limits AS r (who, n, ends_at)
	VALUES ($1, 1, cast($2 AS bigint) + cast($3 AS bigint))
	ON CONFLICT (who) DO UPDATE
	   SET n = CASE WHEN r.ends_at > $2 AND r.ends_at <= excluded.ends_at + $3 THEN least(r.n, cast($4 AS bigint)) + 1 ELSE 1 END,
	       ends_at = CASE WHEN r.ends_at > $2 AND r.ends_at <= excluded.ends_at + $3 THEN r.ends_at ELSE excluded.ends_at END
	RETURNING n, ends_at`

// tableRates counts for all nodes, in a table that no commit waits for the disk
// for: after a crash of the server every window starts again. It does not use the
// connections of the writers, whom a storm of calls must not keep waiting.
type tableRates struct {
	db    *sqlx.DB
	count *sqlx.Stmt
}

func (t *tableRates) take(ctx context.Context, kind RateKind, who string, limit int, now time.Time) (int, time.Time, error) {
	var n int
	var ends Time
	err := t.count.QueryRowxContext(ctx, string(kind)+"/"+who, now.UnixMicro(), RateWindow.Microseconds(), limit).Scan(&n, &ends)
	return n, ends.Time, err
}

func (t *tableRates) sweep(ctx context.Context, now time.Time) error {
	const q = `DELETE FROM rate_limits WHERE ends_at <= $1`
	_, err := t.db.ExecContext(ctx, q, now.Add(-RateWindow).UnixMicro())
	return err
}

func (t *tableRates) close() error { return t.count.Close() }
