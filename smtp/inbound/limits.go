package inbound

import (
	"time"

	"github.com/postroom/postroom/smtp"
)

// limits are the limits of a server that have no setting. Tests change them.
type limits struct {
	MaxRecipients int // of a message

	CommandTimeout     time.Duration // for a whole command line or a TLS handshake
	TransactionTimeout time.Duration // from MAIL to the end of the data
	WriteTimeout       time.Duration // for a reply

	// MinRate is the minimum data rate in bytes per second. It applies after RateGrace.
	MinRate   int
	RateGrace time.Duration
}

var defaultLimits = limits{
	MaxRecipients:      smtp.MaxRecipients,
	CommandTimeout:     5 * time.Minute, // RFC 5321 section 4.5.3.2.7
	TransactionTimeout: 30 * time.Minute,
	WriteTimeout:       time.Minute,
	MinRate:            500, // as smtpd_min_data_rate of Postfix
	RateGrace:          time.Minute,
}

// Limits on a message.
const (
	// maxTextLine is the longest line of a message, in bytes without its line end.
	// RFC 5321 section 4.5.3.1.6 allows 998, but common mailers send longer ones.
	maxTextLine = 64 << 10
	// overrun is how much of a message above the size limit is read to find its
	// end. After that the connection is closed.
	overrun = 512 << 10
	// maxReceived is the number of Received fields above which a message is a mail
	// loop. Real mail has fewer than 20 (RFC 5321 section 6.3).
	maxReceived = 50
	// maxSubject is how many bytes of a subject are stored: as many as the API
	// accepts, with four bytes per character.
	maxSubject = 4 * 998
	// readBudget is the processor time for reading one message.
	readBudget = 500 * time.Millisecond
	// maxLarge is how many large messages are held in memory as parsed content, of
	// some megabytes each.
	maxLarge = 8
	// spoolMemory is the memory for all messages while they arrive, beyond
	// the first 16 KiB of each.
	spoolMemory = 64 << 20
)

// Limits on the commands of a client that gets no message accepted.
const (
	// maxCommandLine is the longest command line, in bytes with its line end. RFC
	// 5321 section 4.5.3.1.4 requires 512; extensions add to it.
	maxCommandLine = 2048
	// maxName is the longest name of a client in EHLO (RFC 5321 section 4.5.3.1.2).
	maxName = 255
	// maxCommands is how many commands a client may give until a message is accepted.
	// It leaves room for 100 recipients and as many that are refused.
	maxCommands = 300
	// maxErrors is the number of the error that ends the session, as
	// smtpd_hard_error_limit of Postfix.
	maxErrors = 20
	// maxGuesses is how many unknown recipients one network may name in guessTime.
	// More look like a search for addresses.
	maxGuesses = 50
	guessTime  = 10 * time.Minute
	// maxGuessers is how many networks are remembered.
	maxGuessers = 10_000
	// maxLogins is the number of the failed login that ends the session.
	maxLogins = 3
	// lookupTimeout is the time limit to look up a recipient or an API key.
	lookupTimeout = 10 * time.Second
)

// Limits on connections.
const (
	// minIdle is how long a client must be idle before its connection may be closed
	// for a new one, and mailGrace is how much longer in a transaction.
	minIdle   = 100 * time.Millisecond
	mailGrace = 5 * time.Second
	// readBuffer is how much is read at once: a usual message with its commands.
	readBuffer = 16 << 10
)
