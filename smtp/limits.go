package smtp

const (
	// MaxRecipients is the number of recipients of one transaction, received or sent
	// (RFC 5321 section 4.5.3.1.8).
	MaxRecipients = 100
	// MaxPath is the longest mailbox, in bytes (RFC 5321 section 4.5.3.1.3). Local
	// parts of senders may exceed 64 bytes, because return paths that contain the
	// recipient do.
	MaxPath = 254
	// maxUnicodeDomain is the longest domain that is converted to A-labels, in bytes: 253
	// characters of four bytes each. The conversion takes quadratic time.
	maxUnicodeDomain = 4 * 253
)
