package faults_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/testpg"
	"github.com/postroom/postroom/store/storetest"
)

const (
	// mostToEnd is how long after its key was revoked a stream may go on.
	mostToEnd = 5 * time.Second
	// mostToHear is how long after the call that makes it an event may take to
	// be heard at another node when nothing is lost on the way.
	mostToHear = 500 * time.Millisecond
)

// sideBySide serves one PostgreSQL database by two nodes.
func sideBySide(t *testing.T) (a, b *install) {
	t.Helper()
	database := testpg.Schema(t)
	for _, in := range []**install{&a, &b} {
		*in = installAt(t, storetest.PostgreSQL, t.TempDir(), database)
		(*in).settings = []string{"POSTROOM_SECRET=" + strings.Repeat("the same on both nodes ", 2)}
		(*in).start()
	}
	return a, b
}

// TestN2StreamOfAnotherNode receives mail at one node and listens at another.
func TestN2StreamOfAnotherNode(t *testing.T) {
	t.Parallel()
	a, b := sideBySide(t)
	r := &receiving{in: a, size: 2 << 10, book: newLedger("far"), boxes: a.createInboxes("far")}
	s := b.listenSlowly(t)
	var took []time.Duration
	for range pick(50, 1000) {
		id, began := r.book.next(), time.Now()
		r.deliver(t, id)
		e, err := s.next()
		if err != nil || e.Data.Subject != id {
			t.Fatalf("the other node told of %+v, %v, want %s", e, err, id)
		}
		took = append(took, time.Since(began))
	}
	t.Logf("mail at one node, heard at the other, %s", spread(took))
	slices.Sort(took)
	if p99 := took[len(took)*99/100]; full && p99 > mostToHear {
		t.Errorf("99 %% within %v, want %v", p99, mostToHear)
	}
}

// TestH3RevokedKeyEndsStreams revokes a key at one node while it has as many
// streams as it may at two: all end, those of another key go on, and the next
// call is refused at both.
func TestH3RevokedKeyEndsStreams(t *testing.T) {
	t.Parallel()
	a, b := sideBySide(t)
	keys := a.newKeys(t, 2)
	var ending []*eventStream
	for _, in := range []*install{a, b} {
		for range streamsPerKey {
			s, err := in.current().listen(t.Context(), keys[0].Key, "", "")
			if err != nil {
				t.Fatal(err)
			}
			defer s.close()
			ending = append(ending, s)
		}
	}
	other, err := b.current().listen(t.Context(), keys[1].Key, "", "")
	if err != nil {
		t.Fatal(err)
	}
	defer other.close()
	api := a.current().caller()
	defer api.close()
	began := time.Now()
	if err := api.call(t.Context(), http.StatusOK, nil, http.MethodDelete, "/v1/keys/"+keys[0].ID, nil); err != nil {
		t.Fatal(err)
	}
	for _, in := range []*install{a, b} {
		_, err := in.current().listen(t.Context(), keys[0].Key, "", "")
		if no, ok := errors.AsType[*unwanted](err); !ok || no.status != http.StatusUnauthorized {
			t.Errorf("a stream for a revoked key: %v", err)
		}
	}
	for i, s := range ending {
		if e, err := s.next(); !errors.Is(err, io.EOF) {
			t.Errorf("stream %d of a revoked key: %+v, %v", i, e, err)
		}
	}
	took := time.Since(began)
	t.Logf("%d streams of a revoked key, on two nodes, ended within %v", len(ending), took)
	if took > mostToEnd {
		t.Errorf("they ended within %v, want %v", took, mostToEnd)
	}
	r := &receiving{in: a, size: 2 << 10, book: newLedger("on"), boxes: a.createInboxes("on")}
	id := r.book.next()
	r.deliver(t, id)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	defer context.AfterFunc(ctx, other.close)()
	if e, err := other.next(); err != nil || e.Data.Subject != id {
		t.Errorf("the stream of another key told of %+v, %v", e, err)
	}
}
