package httpapi

import "time"

const (
	// maxBody is the largest request body: 40 MB of attachments in base64 and the
	// other fields.
	maxBody = 60 << 20
	// maxMCPBody is the largest MCP request. It is in memory several times: as it
	// arrived, as arguments of a tool, and as the call that the tool makes.
	maxMCPBody = 8 << 20
	// smallBody is the largest body that is read straight into memory. Larger ones
	// go into a file first.
	smallBody = 1 << 20
	// maxBodiesInMemory limits the larger bodies that are in memory at a time. Each
	// is there several times: as it arrived, decoded, and as the message made of it.
	maxBodiesInMemory = maxBody
	// A client has pieceTime to send each bodyPiece bytes of a body, and at most
	// bodyTime for all.
	bodyPiece = 1 << 20
	pieceTime = 30 * time.Second
	bodyTime  = 5 * time.Minute

	// maxContents limits the responses with the content of messages, which are in memory
	// until the client has read them, and maxShare those of one account. Other requests
	// wait for at most contentTime.
	maxContents = 32
	maxShare    = maxContents / 2
	contentTime = 15 * time.Second
	// responseTime limits how long a response may take. The longest wait is two minutes.
	responseTime = 4 * time.Minute
)

// DefaultRates are the rate limits where the settings give none. The setting
// RATE_LIMITS has the same as its default.
var DefaultRates = Rates{Calls: 600, Sends: 60, Refused: 60}
