package httpapi

import "time"

// Request bodies.
const (
	// maxBody is the largest request body: 25 MB of attachments in base64 and the
	// other fields.
	maxBody = 40 << 20
	// smallBody is the largest body that is read straight into memory. Larger ones
	// go into a file first.
	smallBody = 1 << 20
	// maxBodiesInMemory limits the larger bodies that are in memory at a time. Each
	// is there several times: as it arrived, decoded, and as the message made of it.
	maxBodiesInMemory = maxBody
	// A client has bodyTimeout to send each bodyPace bytes of a body, and
	// bodyLongest for the whole body.
	bodyTimeout = 30 * time.Second
	bodyPace    = 1 << 20
	bodyLongest = 5 * time.Minute
	// maxMCPBody is the largest MCP request. It is in memory several times: as it
	// arrived, as arguments of a tool, and as the call that the tool makes.
	maxMCPBody = 8 << 20
)

// Responses with the content of messages, which are in memory until the client has read
// them.
const (
	// maxUnread limits the memory of all of them, of which each reserves contentSize.
	maxUnread   = 32 << 20
	contentSize = 1 << 20
	// A client has pieceTime to read each largePiece of a response, and hurriedTime
	// while requests wait for memory. They wait for at most memoryTime.
	largePiece  = 64 << 10
	pieceTime   = 30 * time.Second
	hurriedTime = 2 * time.Second
	memoryTime  = 15 * time.Second
)

// DefaultRates are the rate limits where the settings give none. The setting
// RATE_LIMITS has the same as its default.
var DefaultRates = Rates{Calls: 600, Sends: 60, Refused: 60}

// responseTimeout limits how long a response may take. The longest wait is two
// minutes.
const responseTimeout = 4 * time.Minute
