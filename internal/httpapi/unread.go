package httpapi

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/ogen-go/ogen/middleware"
	"golang.org/x/sync/semaphore"

	"github.com/postroom/postroom/gen"
)

// contents lists the operations whose responses have the content of messages. A wait is
// not among them: it has no response for most of its time.
var contents = map[gen.OperationName]bool{
	gen.ListMessagesOperation: true, gen.ListInboxMessagesOperation: true, gen.GetMessageOperation: true, gen.ListThreadsOperation: true, gen.GetThreadOperation: true,
	gen.ListDraftsOperation: true, gen.ListInboxDraftsOperation: true, gen.GetDraftOperation: true, gen.ListEmailsOperation: true, gen.GetEmailOperation: true,
	gen.ListTemplatesOperation: true, gen.GetTemplateOperation: true, gen.ListEventsOperation: true, gen.ListWebhookDeliveriesOperation: true,
}

// errNoMemory ends a request that waited in vain for memory.
var errNoMemory = &Error{
	Status: http.StatusServiceUnavailable, Code: gen.ErrorCodeUnavailable, RetryAfter: 1,
	Message: "too many clients read large responses slowly: send the request again",
}

// responseMemory limits the memory of responses that clients have not read yet.
type responseMemory struct {
	free           *semaphore.Weighted
	usual, hurried time.Duration // pieceTime and hurriedTime, except in tests

	mu      sync.Mutex
	waiting int // requests that wait for memory
	writing map[*statusWriter]bool
}

func newResponseMemory(most int64, usual, hurried time.Duration) *responseMemory {
	return &responseMemory{free: semaphore.NewWeighted(most), usual: usual, hurried: hurried, writing: map[*statusWriter]bool{}}
}

// limitMemory is a middleware that reserves memory for the response.
func (c *Chain) limitMemory(req middleware.Request, next middleware.Next) (middleware.Response, error) {
	if contents[req.OperationName] {
		if err := c.memory.enter(req.Context); err != nil {
			return middleware.Response{}, err
		}
		infoOf(req.Context).sw.memory = c.memory
	}
	return next(req)
}

// enter reserves contentSize bytes. If there are none, it shortens the time of the
// clients that do not read.
func (m *responseMemory) enter(ctx context.Context) error {
	if m.free.TryAcquire(contentSize) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, memoryTime)
	defer cancel()
	m.mu.Lock()
	m.waiting++
	for w := range m.writing {
		if end := time.Now().Add(m.hurried); end.Before(w.pieceEnds) {
			w.setPieceEnd(end)
		}
	}
	m.mu.Unlock()
	err := m.free.Acquire(ctx, contentSize)
	m.mu.Lock()
	m.waiting--
	m.mu.Unlock()
	if err != nil {
		return errNoMemory
	}
	return nil
}

// leave frees what is reserved for a response.
func (m *responseMemory) leave(w *statusWriter) {
	if w.memory == nil {
		return
	}
	m.mu.Lock()
	delete(m.writing, w)
	m.mu.Unlock()
	m.free.Release(contentSize)
}

// write writes b in pieces, each of which the client has to read in a time.
func (m *responseMemory) write(w *statusWriter, b []byte) (n int, err error) {
	for piece := range slices.Chunk(b, largePiece) {
		m.begin(w)
		some, err := w.buffer.Write(piece)
		if n += some; err != nil {
			return n, err
		}
	}
	return n, nil
}

// begin sets the time for the next piece.
func (m *responseMemory) begin(w *statusWriter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writing[w] = true
	d := m.usual
	if m.waiting > 0 {
		d = m.hurried
	}
	w.setPieceEnd(time.Now().Add(d))
}

// setPieceEnd sets the deadline of the current piece, within the time of the response.
func (w *statusWriter) setPieceEnd(end time.Time) {
	if w.ends.Before(end) {
		end = w.ends
	}
	w.pieceEnds = end
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(end) // not all connections support deadlines, in tests
}
