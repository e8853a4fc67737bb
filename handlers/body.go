package handlers

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"time"

	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/store"
)

// gatedBody lets only so many bytes of large bodies into memory at a time. A
// large body first comes into a temporary file, so that a slow client keeps
// nobody else waiting, and the contents of its attachments stay there until the
// request ends. That begins with the first read, when the key is already known to
// be good.
type gatedBody struct {
	io.ReadCloser
	api  *API
	ctx  context.Context //nolint:containedctx // the request's, for one read
	size int64           // announced; negative: unknown
	// whole says that the contents of attachments come into memory too: they are
	// part of something that this package does not read.
	whole bool

	socket *http.ResponseController
	latest time.Time // by the wall clock, as deadlines are
	pace   int       // bytes since the deadline was moved

	begun    bool
	file     *os.File
	contents keptContents // of attachments, in file
	document io.Reader    // the body, without them
	held     int64
}

// Read implements io.Reader.
func (b *gatedBody) Read(p []byte) (int, error) {
	if !b.begun {
		b.begun = true
		if b.size < 0 || b.size > smallBody {
			if err := b.await(); err != nil {
				return 0, err
			}
		} else if b.size > 0 && !b.whole {
			if err := b.readForms(readerFunc(b.arrive)); err != nil {
				return 0, err
			}
		}
	}
	if b.document != nil {
		return b.document.Read(p)
	}
	return b.arrive(p)
}

// readForms reads a small body whole and brings it into the form that the
// generated server reads.
func (b *gatedBody) readForms(r io.Reader) error {
	body, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	b.document = bytes.NewReader(httpapi.NormalizeBody(body))
	return nil
}

// arrive reads from the client, who has to keep up the pace. What is done with
// the body once it is there has no deadline for reading: that would end the
// request, whose connection is read to see whether the client has gone.
func (b *gatedBody) arrive(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.pace += n
	switch {
	case errors.Is(err, io.EOF):
		_ = b.socket.SetReadDeadline(time.Time{}) // not all connections can, in tests
	case b.pace >= bodyPace:
		b.pace = 0
		next := time.Now().Add(bodyTimeout)
		if next.After(b.latest) {
			next = b.latest
		}
		_ = b.socket.SetReadDeadline(next) // as above
	}
	return n, err
}

// await takes the body into a file and waits until there is room for it in
// memory.
func (b *gatedBody) await() (err error) {
	if b.file, err = os.CreateTemp(b.api.cfg.TempDir, "body-*"); err != nil {
		return spoolError(err)
	}
	// Without a name it is gone whatever happens to us. Where that cannot be,
	// release removes it.
	_ = os.Remove(b.file.Name())
	var finder contentFinder
	n, err := io.Copy(io.MultiWriter(bodyFile{b.file}, &finder), readerFunc(b.arrive))
	if err != nil {
		return err
	}
	b.contents = keptContents{file: b.file, spans: finder.found}
	if b.whole {
		b.contents.spans = nil
	}
	_, _ = rand.Read(b.contents.mark[:]) // never fails
	b.document = b.contents.document(n)
	if n <= smallBody && !b.whole && len(b.contents.spans) == 0 {
		if err := b.readForms(b.document); err != nil {
			return spoolError(err)
		}
	}
	if c, ok := localOf(b.ctx); ok && c.counted {
		return nil // it would wait for the call that it is part of
	}
	inMemory := n - b.contents.held()
	if err := b.api.bodies.Acquire(b.ctx, inMemory); err != nil {
		return err
	}
	b.held = inMemory
	return nil
}

// release gives back what the body took. It may be called whether or not it was
// read.
func (b *gatedBody) release() error {
	b.api.bodies.Release(b.held)
	b.held = 0
	if b.file == nil {
		return nil
	}
	err := b.file.Close()
	if gone := os.Remove(b.file.Name()); !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return err
}

// releaseBody ends the use of a body. Nothing can be done about a file that
// stays.
func (a *API) releaseBody(ctx context.Context, b *gatedBody) {
	if err := b.release(); err != nil {
		a.log.WarnContext(ctx, "temporary file not removed", "error", err, "request_id", requestID(ctx))
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// bodyFile tells faults of the file from those of the client.
type bodyFile struct{ file *os.File }

func (f bodyFile) Write(p []byte) (int, error) {
	n, err := f.file.Write(p)
	if err != nil {
		err = spoolError(err)
	}
	return n, err
}

func spoolError(err error) error {
	return fmt.Errorf("keep a large body: %w: %w", store.ErrUnavailable, err)
}
