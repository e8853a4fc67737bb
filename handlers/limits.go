package handlers

import "time"

// Request bodies.
const (
	// maxBody is the largest request body: 25 MB of attachments in base64 and the
	// other fields.
	maxBody = 40 << 20
	// smallBody is the largest body that is read straight into memory. Larger ones
	// go into a file first.
	smallBody = 1 << 20
	// maxBodiesInMemory limits the larger bodies that are in memory at a time,
	// without the contents of attachments, which stay in files. Each body is there
	// up to three times: as it arrived, as the decoder's copy, and decoded.
	maxBodiesInMemory = maxBody
	// A client has bodyTimeout to send each bodyPace bytes of a body, and
	// bodyLongest for the whole body.
	bodyTimeout = 30 * time.Second
	bodyPace    = 1 << 20
	bodyLongest = 5 * time.Minute
	// maxMCPBody is the largest MCP request. It is in memory several times: as it
	// arrived, as arguments of a tool, and as the call that the tool makes.
	maxMCPBody = 8 << 20
	// maxMCPFault limits how much of an error text of the MCP server is used.
	maxMCPFault = 1 << 10
)

// Batches of emails.
const (
	// maxBatchBytes limits the texts of a batch with their variables filled in.
	maxBatchBytes = 16 << 20
	// At most largeBatches batches with texts over smallBatch bytes run at a time.
	// Each is in memory several times: as texts, as messages and as rows.
	smallBatch   = 1 << 20
	largeBatches = 4
)

// Requests per minute.
const (
	limitCalls   = 600 // per key
	limitSends   = 60  // sending calls per key
	limitBadKeys = 60  // refused calls and file links per client address
)

// Events.
const (
	// maxEventBody limits the body of an event.
	maxEventBody = 256 << 10
	// minEventText is the JSON length of a text that a cut event keeps in any case.
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

// Responses.
const (
	// responseTimeout limits how long a response may take. The longest wait is two
	// minutes.
	responseTimeout = 4 * time.Minute
	// waitDefault is how long a wait for a message lasts, and waitLookBack how old
	// its first message may be, unless the request says otherwise.
	waitDefault  = 30 * time.Second
	waitLookBack = time.Minute
)
