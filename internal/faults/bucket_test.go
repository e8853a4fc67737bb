package faults_test

import (
	"bytes"
	"errors"
	"net/http"
	"testing"

	"github.com/postroom/postroom/internal/s3test"
)

// useBucket stores the large mail of an installation in a bucket on a server that
// the test starts.
func useBucket(t *testing.T, in *installation) *s3test.Server {
	t.Helper()
	s3 := s3test.Start(t)
	in.settings = append(in.settings, "POSTROOM_BLOBS="+s3.Address())
	in.settings = append(in.settings, s3.Environment()...)
	return s3
}

// TestLargeMailIsDeferredWhileTheBucketIsUnreachable stops the object storage and starts it
// again. Meanwhile large mail is deferred with 451 and 503, and small mail is not
// affected. Afterwards the service recovers by itself, and everything it accepted
// can be read byte for byte. Row S22 of docs/testing.md.
func TestLargeMailIsDeferredWhileTheBucketIsUnreachable(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, in *installation) {
		s3 := useBucket(t, in)
		p := newPair(in)
		for range pick(1, 10) {
			p.want(small, 250, http.StatusCreated)
			p.want(large, 250, http.StatusCreated)
			in.settle() // the retry of large mail in transit would come much later
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

// wantLargeUnreadable checks that large messages are listed but cannot be downloaded now.
func (p *pair) wantLargeUnreadable() {
	p.t.Helper()
	c := p.in.current().caller()
	defer c.close()
	for _, m := range p.in.messages("in") {
		_, err := c.raw(p.t.Context(), m.ID)
		no, refused := errors.AsType[*unwanted](err)
		if away := m.Size > large/2; away != refused || refused && no.status != http.StatusServiceUnavailable {
			p.t.Errorf("a message of %d bytes: %v", m.Size, err)
		}
	}
}

// wantReadable downloads every message that arrived.
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
