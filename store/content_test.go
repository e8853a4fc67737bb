package store_test

import (
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

func randomBytes(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(b)
	return b
}

func readRaw(t *testing.T, s *store.Store, m store.Message) []byte {
	t.Helper()
	raw, err := s.Raw(t.Context(), m.Seq)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(raw)
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Close(); err != nil {
		t.Error(err)
	}
	if raw.Size != int64(len(b)) {
		t.Errorf("size is %d, read %d bytes", raw.Size, len(b))
	}
	return b
}

func TestSweepBlobsRemovesWhatNoRowNames(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(string(e), func(t *testing.T) {
			t.Parallel()
			clock := storetest.NewClock(time.Now())
			dir := t.TempDir()
			s := storetest.Open(t, e, storetest.WithNow(clock.Now), storetest.WithBlobs(dir))
			in := storetest.Inbox(t, s)
			var keys []string
			for range 3 {
				key, _, err := s.PutBlob(t.Context(), strings.NewReader("large"), 5)
				if err != nil {
					t.Fatal(err)
				}
				keys = append(keys, key)
			}
			named := storetest.Received(t, s, in, func(m *store.NewMessage) { m.Content.BlobKey, m.Size = &keys[1], 5 })
			leftBehind := filepath.Join(dir, filepath.Dir(keys[0]), "tmp-leftbehind")
			if err := os.WriteFile(leftBehind, []byte("half a message"), 0o600); err != nil {
				t.Fatal(err)
			}
			sweep := func(want int) {
				t.Helper()
				n, err := s.SweepBlobs(t.Context())
				if err != nil || n != want {
					t.Errorf("swept %d, %v, want %d", n, err, want)
				}
			}
			sweep(0) // all of them may still get their rows
			clock.Add(25 * time.Hour)
			sweep(3)
			sweep(0)
			if got := readRaw(t, s, named); string(got) != "large" {
				t.Errorf("the blob with a row reads %q", got)
			}
			if _, err := os.Stat(leftBehind); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the temporary file: %v", err)
			}
		})
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errors.New("the sender disconnected") }

func TestBlobThatCannotBeReadLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := storetest.OpenSQLite(t, storetest.WithBlobs(dir))
	if _, _, err := s.PutBlob(t.Context(), io.MultiReader(strings.NewReader("half"), brokenReader{}), 8); err == nil {
		t.Error("half a blob was stored")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil || len(files) != 0 {
		t.Errorf("left behind: %v, %v", files, err)
	}
}

func TestBlobKeyCannotLeaveTheFolder(t *testing.T) {
	t.Parallel()
	s := storetest.OpenSQLite(t)
	in := storetest.Inbox(t, s)
	key := "../../../../etc/passwd"
	m := storetest.Received(t, s, in, func(m *store.NewMessage) { m.Content.BlobKey = &key })
	if raw, err := s.Raw(t.Context(), m.Seq); err == nil {
		_ = raw.Close()
		t.Error("opened a file outside of the folder")
	}
}

// A blob that waits for its row is either there when the row is committed, or
// the row is refused.
func TestNoRowNamesABlobThatMayBeSwept(t *testing.T) {
	t.Parallel()
	withClock(t, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		in := storetest.Inbox(t, s)
		put := func() string {
			t.Helper()
			key, _, err := s.PutBlob(t.Context(), strings.NewReader("large"), 5)
			if err != nil {
				t.Fatal(err)
			}
			return key
		}
		receive := func(key string) (store.Message, error) {
			m := storetest.NewReceived(in, func(m *store.NewMessage) { m.Content.BlobKey, m.Size = &key, 5 })
			ms, err := s.AddReceived(t.Context(), []*store.NewMessage{m}, nil)
			if err != nil {
				return store.Message{}, err
			}
			return ms[0], nil
		}
		sweep := func(want int) {
			t.Helper()
			if n, err := s.SweepBlobs(t.Context()); n != want || err != nil {
				t.Errorf("swept %d blobs, %v, want %d", n, err, want)
			}
		}

		slow, tooSlow := put(), put()
		clock.Add(2 * time.Hour)
		sweep(0)
		m, err := receive(slow)
		if err != nil {
			t.Fatal(err)
		}
		if got := readRaw(t, s, m); string(got) != "large" {
			t.Errorf("the content reads %q", got)
		}
		clock.Add(10*time.Hour + time.Minute)
		sweep(0)
		var others sync.WaitGroup
		for range 8 { // some of them share the transaction
			others.Go(func() {
				if _, err := s.AddReceived(t.Context(), []*store.NewMessage{storetest.NewReceived(in)}, nil); err != nil {
					t.Error(err)
				}
			})
		}
		if _, err := receive(tooSlow); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("a row with a blob of 12 hours: %v, want %v", err, store.ErrUnavailable)
		}
		others.Wait()
		clock.Add(12 * time.Hour)
		sweep(1)
	})
}

// A clock that is ahead of the one of the storage sweeps nothing that is new,
// and neither does a node whose clock is behind write what looks old.
func TestBlobsAreSweptWhenBothTimesAreOld(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := time.Now().Add(-25 * time.Hour)
	behind, err := store.OpenBlobFolder(dir, func() time.Time { return at })
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = behind.Close() }()
	if _, err := behind.Put(t.Context(), strings.NewReader("mail"), 4); err != nil {
		t.Fatal(err)
	}
	clock := storetest.NewClock(time.Now())
	s := storetest.OpenSQLite(t, storetest.WithNow(clock.Now), storetest.WithBlobs(dir))
	for _, want := range []int{0, 1} {
		if n, err := s.SweepBlobs(t.Context()); n != want || err != nil {
			t.Errorf("swept %d, %v, want %d", n, err, want)
		}
		clock.Add(25 * time.Hour)
	}
}
