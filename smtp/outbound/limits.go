package outbound

import "time"

const (
	// MaxTries is how many addresses are called in one attempt.
	MaxTries = 5
	// maxIdle is how long an unused connection is kept. Servers close theirs after
	// some minutes.
	maxIdle = 30 * time.Second
	// goodbye is the time limit for the reply to QUIT.
	goodbye = 2 * time.Second
	// maxResponseLine is the longest line of a reply, in bytes. RFC 5321 section
	// 4.5.3.1.5 allows 512; some servers send more.
	maxResponseLine = 4096
	// maxResponseLines is the largest number of lines of one reply.
	maxResponseLines = 128
	// maxResponseText is how many bytes of a reply are kept.
	maxResponseText = 900
)

// DNS and MTA-STS.
const (
	// dnsTimeout is the time limit of one DNS query, and dnsTTL how long its result
	// is cached.
	dnsTimeout = 30 * time.Second
	dnsTTL     = time.Minute
	// maxLookups is how many results are cached.
	maxLookups = 4096
	// announceTimeout is the time limit of the DNS query for a policy record. Most
	// domains have no policy, and their mail should not wait for it.
	announceTimeout = 10 * time.Second
	// fetchAgain is the pause after a policy could not be fetched; RFC 8461 section
	// 3.3 requires five minutes at least.
	fetchAgain = 5 * time.Minute
	// refreshAfter is the age at which a policy is fetched again although its id is
	// unchanged, so that it does not expire while the domain keeps it.
	refreshAfter = 24 * time.Hour
)

// Probes, whose caller waits for the result.
const (
	// probeConnect and probeReply are the time limits to connect and for each reply.
	probeConnect = 3 * time.Second
	probeReply   = 6 * time.Second
	// probeTries is how many addresses of a domain are called.
	probeTries = 3
)
