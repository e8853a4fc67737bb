package faults_test

import (
	"bytes"
	"errors"
	"net/http"
	"testing"

	"github.com/postroom/postroom/internal/s3test"
)

// useBucket keeps the large mail of an install in a bucket of a server of the
// test's own.
func useBucket(t *testing.T, in *install) *s3test.Server {
	t.Helper()
	s3 := s3test.Start(t)
	in.settings = append(in.settings, "POSTROOM_BLOBS="+s3.Address())
	in.settings = append(in.settings, s3.Environment()...)
	return s3
}

// TestS22BucketAway takes the storage of large mail away and gives it back.
// Meanwhile large mail is put off with 451 and 503; small mail does not notice.
// Afterwards the service goes on by itself, and what it promised is there byte
// for byte.
func TestS22BucketAway(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, in *install) {
		s3 := useBucket(t, in)
		p := newPair(in)
		for range pick(1, 10) {
			p.want(small, 250, http.StatusCreated)
			p.want(large, 250, http.StatusCreated)
			in.settle() // large mail on its way would be tried again much later
			s3.Stop()
			p.want(small, 250, http.StatusCreated)
			p.want(large, 451, http.StatusServiceUnavailable)
			p.wantLargeUnreadable()
			s3.Resume()
			p.recover()
		}
		p.audit()
		p.wantReadable()
	})
}

// wantLargeUnreadable says that large mail is there, and cannot be had now.
func (p *pair) wantLargeUnreadable() {
	p.t.Helper()
	c := p.in.current().caller()
	defer c.close()
	for _, m := range p.in.messages("in") {
		_, err := c.raw(p.t.Context(), m.ID)
		no, refused := errors.AsType[*unwanted](err)
		if away := m.Size > large/2; away != refused || refused && no.status != http.StatusServiceUnavailable {
			p.t.Errorf("a mail of %d bytes: %v", m.Size, err)
		}
	}
}

// wantReadable downloads all that arrived.
func (p *pair) wantReadable() {
	p.t.Helper()
	c := p.in.current().caller()
	defer c.close()
	for _, m := range p.in.messages("in") {
		raw, err := c.raw(p.t.Context(), m.ID)
		if err != nil || len(raw) != m.Size || !bytes.Contains(raw, []byte(bodyMark(m.Subject))) {
			p.t.Errorf("%d bytes of %d: %v", len(raw), m.Size, err)
		}
	}
}
