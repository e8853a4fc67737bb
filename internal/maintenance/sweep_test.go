package maintenance_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/maintenance"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// clock is a clock that a test advances.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time       { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) move(d time.Duration) { c.ahead.Add(int64(d)) }

func newSweeper(t *testing.T, s *store.Store, every time.Duration) *maintenance.Sweeper {
	t.Helper()
	return maintenance.NewSweeper(maintenance.SweeperConfig{
		Store: s, Every: every, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
}

func orphan(t *testing.T, s *store.Store) {
	t.Helper()
	if _, _, err := s.PutBlob(t.Context(), strings.NewReader("mail of a crash"), 15); err != nil {
		t.Fatal(err)
	}
}

func TestRunOnceRemovesOnlyWhatHasExpired(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(string(e), func(t *testing.T) {
			t.Parallel()
			var c clock
			removesOnlyWhatHasExpired(t, storetest.Open(t, e, storetest.WithNow(c.now)), &c)
		})
	}
}

func removesOnlyWhatHasExpired(t *testing.T, s *store.Store, c *clock) {
	t.Helper()
	ctx := t.Context()
	in := storetest.Inbox(t, s)
	key, _, err := s.PutBlob(t.Context(), strings.NewReader("mail of a message"), 17)
	if err != nil {
		t.Fatal(err)
	}
	m := storetest.Received(t, s, in, func(m *store.NewMessage) { m.Content.BlobKey, m.Size = &key, 17 })
	orphan(t, s)
	once := &store.Once{
		AccountID: in.AccountID, Operation: "POST /v1/inboxes", Key: "k", BodyHash: []byte("h"),
		Render: func(any) (store.CachedResponse, error) {
			return store.CachedResponse{Status: 201, Kind: "inbox", Body: []byte(`{}`)}, nil
		},
	}
	if _, err := s.CreateInbox(ctx, storetest.NewInbox(func(n *store.Inbox) { n.AccountID = in.AccountID }), once); err != nil {
		t.Fatal(err)
	}
	sweeper := newSweeper(t, s, 0)

	if n, err := sweeper.RunOnce(ctx); n != 0 || err != nil {
		t.Fatalf("the first round removed %d items, error %v: want none", n, err)
	}
	c.move(25 * time.Hour)
	if n, err := sweeper.RunOnce(ctx); n != 2 || err != nil {
		t.Fatalf("a round a day later removed %d items, error %v: want the blob and the cached response", n, err)
	}
	if n, err := sweeper.RunOnce(ctx); n != 0 || err != nil {
		t.Fatalf("another round removed %d items, error %v: want none", n, err)
	}

	raw, err := s.Raw(ctx, m.Seq)
	if err != nil {
		t.Fatalf("the content of the message was deleted: %v", err)
	}
	if err := raw.Close(); err != nil {
		t.Error(err)
	}
	if _, err := s.CachedResponse(ctx, in.AccountID, once.Operation, once.Key); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the old response is still returned: %v", err)
	}
}

func TestRunOnceReportsFailures(t *testing.T) {
	t.Parallel()
	var c clock
	s := storetest.OpenSQLite(t, storetest.WithNow(c.now))
	orphan(t, s)
	c.move(25 * time.Hour)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := newSweeper(t, s, 0).RunOnce(t.Context())
	if err == nil || !strings.Contains(err.Error(), "sweep blobs") || !strings.Contains(err.Error(), "sweep idempotency") {
		t.Errorf("error %v: want both failures", err)
	}
}

func TestRunContinuesAfterAFailure(t *testing.T) {
	t.Parallel()
	s := storetest.OpenSQLite(t)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// Every round of a closed store fails; the third one ends the test.
	failed := &countingHandler{after: 3, then: cancel}
	sweeper := maintenance.NewSweeper(maintenance.SweeperConfig{Store: s, Every: time.Millisecond, Log: slog.New(failed)})
	if err := sweeper.Run(ctx); err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
	if n := failed.n.Load(); n < 3 {
		t.Errorf("%d failures logged, want 3 or more", n)
	}
}

// countingHandler counts log records and calls then after some of them.
type countingHandler struct {
	n     atomic.Int64
	after int64
	then  func()
}

func (h *countingHandler) Enabled(context.Context, slog.Level) bool { return true }
func (h *countingHandler) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h *countingHandler) WithGroup(string) slog.Handler            { return h }
func (h *countingHandler) Handle(context.Context, slog.Record) error {
	if h.n.Add(1) == h.after {
		h.then()
	}
	return nil
}
