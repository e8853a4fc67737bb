package s3blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/postroom/postroom/store"
)

// maxSkip is the distance, in bytes, up to which reading and discarding is
// cheaper than a new request.
const maxSkip = 64 << 10

var errSeek = errors.New("seek before the beginning of a blob")

// object reads an object. It makes a new range request if a read is at another
// position.
type object struct {
	ctx   context.Context //nolint:containedctx // for as long as the blob is open
	blobs *Blobs
	name  string
	size  int64

	want int64 // position of the next read
	at   int64 // position of body
	body io.ReadCloser
}

// get requests the object from an offset on and returns the size of the
// response.
func (o *object) get(from int64) (int64, error) {
	res, err := o.blobs.do(o.ctx, request{method: http.MethodGet, object: o.name, from: from})
	if err != nil {
		return 0, err
	}
	o.body, o.at = res.Body, from
	return res.ContentLength, nil
}

// Seek implements io.Seeker.
func (o *object) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += o.want
	case io.SeekEnd:
		offset += o.size
	}
	if offset < 0 {
		return 0, errSeek
	}
	o.want = offset
	return offset, nil
}

// Read implements io.Reader.
func (o *object) Read(p []byte) (int, error) {
	if o.want >= o.size {
		return 0, io.EOF
	}
	if err := o.move(); err != nil {
		return 0, err
	}
	n, err := o.body.Read(p)
	o.at += int64(n)
	o.want = o.at
	switch {
	case errors.Is(err, io.EOF) && o.at < o.size:
		return n, fmt.Errorf("blob storage: %w: %w", store.ErrUnavailable, io.ErrUnexpectedEOF)
	case err != nil && !errors.Is(err, io.EOF):
		return n, fault(err)
	}
	return n, err
}

// move moves body to the position of the next read.
func (o *object) move() error {
	ahead := o.want - o.at
	if o.body != nil && ahead >= 0 && ahead <= maxSkip {
		n, err := io.CopyN(io.Discard, o.body, ahead)
		o.at += n
		if err != nil {
			return fault(err)
		}
		return nil
	}
	if err := o.Close(); err != nil {
		return err
	}
	_, err := o.get(o.want)
	return err
}

// Close implements io.Closer.
func (o *object) Close() error {
	if o.body == nil {
		return nil
	}
	body := o.body
	o.body = nil
	if err := body.Close(); err != nil {
		return fault(err)
	}
	return nil
}
