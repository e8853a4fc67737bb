package httpapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"syscall"
	"time"

	"github.com/postroom/postroom/store"
)

// gatedBody limits how many bytes of large request bodies are in memory. A
// large body goes into a temporary file first, so a slow client does not delay
// others. Reading starts only after the key has been checked.
type gatedBody struct {
	io.ReadCloser
	chain *Chain
	ctx   context.Context //nolint:containedctx // the request's, for one read
	size  int64           // Content-Length; negative if unknown
	// foreign says that another package parses the body, which is not normalized.
	foreign bool

	socket *http.ResponseController
	latest time.Time // by the wall clock, like all deadlines
	pace   int       // bytes since the deadline last moved

	begun    bool
	file     *os.File
	document io.Reader // the body after it has arrived; nil if it is read as it arrives
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
		} else if b.size > 0 && !b.foreign {
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

// readForms reads a whole small body and normalizes it for the generated
// server.
func (b *gatedBody) readForms(r io.Reader) error {
	body, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	b.document = bytes.NewReader(NormalizeBody(body))
	return nil
}

// arrive reads from the client, which must keep up the pace. It clears the read
// deadline at the end of the body: net/http keeps reading the connection to
// detect a disconnect, and an expired deadline would cancel the request.
func (b *gatedBody) arrive(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.pace += n
	switch {
	case errors.Is(err, io.EOF):
		_ = b.socket.SetReadDeadline(time.Time{}) // not all connections support deadlines, in tests
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

// await copies the body into a file and waits until there is memory for it.
func (b *gatedBody) await() (err error) {
	if b.file, err = os.CreateTemp(b.chain.cfg.TempDir, "body-*"); err != nil {
		return spoolError(err)
	}
	// Removing the name now deletes the file even after a crash. Where the
	// system does not allow that, release removes it.
	_ = os.Remove(b.file.Name())
	n, err := io.Copy(bodyFile{b.file}, readerFunc(b.arrive))
	if err != nil {
		return err
	}
	b.document = io.NewSectionReader(b.file, 0, n)
	if n <= smallBody && !b.foreign {
		if err := b.readForms(b.document); err != nil {
			return spoolError(err)
		}
	}
	if caller, ok := localOf(b.ctx); ok && caller.counted {
		return nil // it would wait for the call that it is part of
	}
	if err := b.chain.bodies.Acquire(b.ctx, n); err != nil {
		return err
	}
	b.held = n
	return nil
}

// release frees the memory and the file of the body. It is safe on an unread
// body.
func (b *gatedBody) release() error {
	b.chain.bodies.Release(b.held)
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

// releaseBody ends the use of a body and logs a file that it cannot remove.
func (c *Chain) releaseBody(ctx context.Context, b *gatedBody) {
	if err := b.release(); err != nil {
		c.log.WarnContext(ctx, "temporary file not removed", "error", err, "request_id", RequestID(ctx))
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// bodyFile marks write errors of the file, as opposed to errors of the client.
type bodyFile struct{ file *os.File }

func (f bodyFile) Write(p []byte) (int, error) {
	n, err := f.file.Write(p)
	if err != nil {
		err = spoolError(err)
	}
	return n, err
}

func spoolError(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("keep a large body: %w: %w", store.ErrFull, err)
	}
	return fmt.Errorf("keep a large body: %w: %w", store.ErrUnavailable, err)
}
