package handlers

import "time"

// maxRecipientName is the most characters of a name beside an address, as in the
// contract.
const maxRecipientName = 100

// Batches of emails.
const (
	// maxBatchBytes limits the texts of a batch with their variables filled in.
	maxBatchBytes = 16 << 20
	// At most largeBatches batches with texts over smallBatch bytes run at a time.
	// Each is in memory several times: as texts, as messages and as rows.
	smallBatch   = 1 << 20
	largeBatches = 4
)

// Events.
const (
	// maxEventBody limits the body of an event.
	maxEventBody = 256 << 10
	// minEventText is how many bytes of a text a cut event keeps in any case.
	minEventText = 1 << 10
	// streamPing is the silence after which a stream sends a comment.
	streamPing = 20 * time.Second
	// streamRetryAfter is the Retry-After, in seconds, for a key with too many
	// streams.
	streamRetryAfter = 10
	// A client has frameTimeout to accept an event, and hurryTimeout once the
	// stream has ended.
	frameTimeout = 20 * time.Second
	hurryTimeout = time.Second
)

// Waits for messages, and MCP.
const (
	// waitDefault is how long a wait for a message lasts, in seconds, and waitLookBack how
	// old its first message may be, unless the request says otherwise.
	waitDefault  = 30
	waitLookBack = time.Minute
	// maxMCPFault limits how much of an error text of the MCP server is used.
	maxMCPFault = 1 << 10
)
