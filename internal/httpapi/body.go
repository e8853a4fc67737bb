package httpapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"syscall"
	"time"

	"github.com/ogen-go/ogen/middleware"
	"golang.org/x/sync/semaphore"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/store"
)

// gatedBody limits how many bytes of large request bodies are in memory. A
// large body goes into a temporary file first, so a slow client does not delay
// others. Reading starts only after the key has been checked.
type gatedBody struct {
	io.Reader // from the client, or the file
	w         http.ResponseWriter
	chain     *Chain
	ctx       context.Context //nolint:containedctx // the request's, for one read
	size      int64           // Content-Length; negative if unknown
	file      *os.File
	held      int64
}

// Read implements io.Reader.
func (b *gatedBody) Read(p []byte) (int, error) {
	if b.file == nil && (b.size < 0 || b.size > smallBody) {
		if err := b.await(); err != nil {
			return 0, err
		}
	}
	n, err := b.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		b.arrived()
	}
	return n, err
}

// arrived clears the read deadline: net/http keeps reading the connection to detect a
// disconnect, and an expired deadline would cancel the request.
func (b *gatedBody) arrived() {
	_ = http.NewResponseController(b.w).SetReadDeadline(time.Time{}) // not all connections support deadlines, in tests
}

// Close implements io.Closer. net/http closes the body that it made.
func (b *gatedBody) Close() error { return nil }

// await copies the body into a file and waits until there is memory for it.
func (b *gatedBody) await() (err error) {
	if b.file, err = os.CreateTemp(b.chain.cfg.TempDir, "body-*"); err != nil {
		return spoolError(err)
	}
	// Removing the name now deletes the file even after a crash. Where the
	// system does not allow that, release removes it.
	_ = os.Remove(b.file.Name())
	n, err := io.Copy(b.file, b.Reader)
	if _, isFile := errors.AsType[*fs.PathError](err); isFile {
		return spoolError(err)
	}
	if err != nil {
		return err
	}
	b.arrived()
	b.Reader = io.NewSectionReader(b.file, 0, n)
	if caller, ok := localOf(b.ctx); ok && caller.counted {
		return nil // it would wait for the call that it is part of
	}
	if err := b.chain.bodies.Acquire(b.ctx, n); err != nil {
		return err
	}
	b.held = n
	return nil
}

// release frees the memory and the file of the body. It logs a file that it cannot
// remove.
func (b *gatedBody) release() {
	b.chain.bodies.Release(b.held)
	if b.file == nil {
		return
	}
	err := b.file.Close()
	if gone := os.Remove(b.file.Name()); !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	if err != nil {
		b.chain.log.WarnContext(b.ctx, "temporary file not removed", "error", err, "request_id", RequestID(b.ctx))
	}
}

func spoolError(err error) error {
	kind := store.ErrUnavailable
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		kind = store.ErrFull
	}
	return fmt.Errorf("keep a large body: %w: %w", kind, err)
}

// contents lists the operations whose responses have the content of messages. A wait is
// not among them: it has no response for most of its time.
var contents = map[gen.OperationName]bool{
	gen.ListMessagesOperation: true, gen.ListInboxMessagesOperation: true, gen.GetMessageOperation: true, gen.ListThreadsOperation: true, gen.GetThreadOperation: true,
	gen.ListDraftsOperation: true, gen.ListInboxDraftsOperation: true, gen.GetDraftOperation: true, gen.ListEmailsOperation: true, gen.GetEmailOperation: true, gen.ListEmailEventsOperation: true,
	gen.ListTemplatesOperation: true, gen.GetTemplateOperation: true, gen.ListEventsOperation: true, gen.ListWebhookDeliveriesOperation: true,
}

// errNoMemory ends a request that waited in vain for memory.
var errNoMemory = &Error{
	Status: http.StatusServiceUnavailable, Code: gen.ErrorCodeUnavailable, RetryAfter: 1,
	Message: "too many clients read large responses slowly: send the request again",
}

// limitContents is a middleware that limits the responses with content in memory. Clients
// that do not read theirs leave room for those of other accounts. The response of an API
// in front of this one counts once, until its client has read it.
func (c *Chain) limitContents(req middleware.Request, next middleware.Next) (middleware.Response, error) {
	info := infoOf(req.Context)
	if caller, ok := localOf(req.Context); ok && caller.front != nil {
		info = caller.front
	}
	if !contents[req.OperationName] || info.free != nil {
		return next(req)
	}
	ctx, cancel := context.WithTimeout(req.Context, contentTime)
	defer cancel()
	share, _ := c.shares.LoadOrStore(info.AccountID, semaphore.NewWeighted(maxShare))
	own := share.(*semaphore.Weighted) //nolint:forcetypeassert // the map has nothing else
	if own.Acquire(ctx, 1) != nil {
		return middleware.Response{}, errNoMemory
	}
	if c.contents.Acquire(ctx, 1) != nil {
		own.Release(1)
		return middleware.Response{}, errNoMemory
	}
	info.free = func() {
		c.contents.Release(1)
		own.Release(1)
	}
	return next(req)
}
