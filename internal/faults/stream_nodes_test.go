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
	// mostToEnd is how long a stream may continue after its key was revoked.
	mostToEnd = 5 * time.Second
	// mostToArrive is how long after the call that makes it an event may take to
	// be heard at another node when nothing is lost on the way.
	mostToArrive = 500 * time.Millisecond
)

// sideBySide runs two nodes on one PostgreSQL database.
func sideBySide(t *testing.T) (a, b *installation) {
	t.Helper()
	database := testpg.Schema(t)
	for _, in := range []**installation{&a, &b} {
		*in = installationAt(t, storetest.PostgreSQL, t.TempDir(), database)
		(*in).settings = []string{"POSTROOM_SECRET=" + strings.Repeat("the same on both nodes ", 2)}
		(*in).start()
	}
	return a, b
}

// TestStreamGetsEventsOfAnotherNode receives mail at one node and streams events from
// another. Row N2 of docs/testing.md.
func TestStreamGetsEventsOfAnotherNode(t *testing.T) {
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
			t.Fatalf("the other node streamed %+v, %v, want %s", e, err, id)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	t.Logf("messages received at one node reached a stream of the other within %s (half) and %s (99 %%)", seconds(at(took, 50)), seconds(at(took, 99)))
	if p99 := at(took, 99); full && p99 > mostToArrive {
		t.Errorf("99 %% within %v, want %v", p99, mostToArrive)
	}
}

// TestRevokedKeyEndsStreamsOnAllNodes revokes a key at one node while it has the most
// streams allowed at two nodes. All of them end, the streams of another key continue,
// and both nodes refuse the next call. Row H3 of docs/testing.md.
func TestRevokedKeyEndsStreamsOnAllNodes(t *testing.T) {
	t.Parallel()
	a, b := sideBySide(t)
	keys := a.newKeys(t, 2)
	var ending []*eventStream
	for _, in := range []*installation{a, b} {
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
	for _, in := range []*installation{a, b} {
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
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, other.close)()
	if e, err := other.next(); err != nil || e.Data.Subject != id {
		t.Errorf("the stream of another key got %+v, %v", e, err)
	}
}
