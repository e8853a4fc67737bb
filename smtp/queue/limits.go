package queue

import "time"

// Retries.
const (
	// retryFor is how long after acceptance a message is retried, and
	// retryMarketingFor the same for marketing, which is less urgent.
	retryFor          = 24 * time.Hour
	retryMarketingFor = 72 * time.Hour
	// retryJitter is the fraction by which a pause varies, so that messages that
	// failed together are not retried together.
	retryJitter = 0.1
	// localTries is how often delivery to an own inbox is tried before the fault
	// counts as an attempt: a transaction may fail because of another one.
	localTries = 3
)

// retryDelays are the pauses after the first, second, ... failed attempt. The last
// one repeats.
var retryDelays = [...]time.Duration{
	time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour,
}

// Timeouts and intervals.
const (
	// attemptTime limits an attempt until the message is handed over: the steps of one
	// transaction with the timeouts of RFC 5321, not those of each recipient. Data adds a
	// second for each slowestRate bytes, up to longestAttempt.
	attemptTime    = 25 * time.Minute
	longestAttempt = 45 * time.Minute
	slowestRate    = 10 << 10
	// keysTTL is how long DKIM keys are cached.
	keysTTL = time.Minute
)

// Destinations that do not respond.
const (
	// firstBackoff is the pause after a destination was found unreachable. It
	// doubles up to maxBackoff and varies by backoffJitter.
	firstBackoff  = 30 * time.Second
	maxBackoff    = 5 * time.Minute
	backoffJitter = 0.1
	// maxDead is how many dead destinations are remembered, each for deadTTL.
	maxDead = 4096
	deadTTL = time.Hour
)

// Numbers.
const (
	// relayConns is the largest number of connections to the relay. Most relays
	// refuse more from one client.
	relayConns = 20
	// localJobs is how many messages are delivered to own inboxes at a time, enough
	// to fill the transactions that they share.
	localJobs = 64
	// maxHosts is how many MX hosts are looked up in one attempt.
	maxHosts = 20
	// maxParsed is how many parsed DKIM keys are cached.
	maxParsed = 1000
	// maxSignedHeader is the largest header that is signed, in bytes.
	maxSignedHeader = 1 << 20
	// maxSignedRepeats is how often one field is listed in h=. RFC 5322 allows
	// each signed field once; the limit keeps h=, which is one line, under 998
	// bytes whatever the header holds.
	maxSignedRepeats = 3
)
