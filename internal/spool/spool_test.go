package spool

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// filled returns a spool of n bytes, written in pieces, and the bytes.
func filled(t *testing.T, p *Folder, n, piece int) (*Spool, []byte) {
	t.Helper()
	want := make([]byte, n)
	for i := range want {
		want[i] = byte(i * 7)
	}
	s := p.New()
	for rest := want; len(rest) > 0; {
		k := min(piece, len(rest))
		if written, err := s.Write(rest[:k]); err != nil || written != k {
			t.Fatalf("Write() = %d, %v", written, err)
		}
		rest = rest[k:]
	}
	return s, want
}

func TestSpoolKeepsWhatIsWritten(t *testing.T) {
	t.Parallel()
	const row = 256 << 10
	for _, size := range []int{0, 1, 16 << 10, 16<<10 + 1, 64 << 10, row, row + 1, 3*row + 5} {
		for _, piece := range []int{1000, 16 << 10, 4 << 20} {
			t.Run(fmt.Sprintf("%d bytes in pieces of %d", size, piece), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				p, err := Open(dir, 1<<20, nil)
				if err != nil {
					t.Fatal(err)
				}
				s, want := filled(t, p, size, piece)

				if s.Size() != int64(size) {
					t.Errorf("Size() = %d, want %d", s.Size(), size)
				}
				if b, ok := s.Bytes(); ok != (size <= row) || ok && !bytes.Equal(b, want) {
					t.Errorf("Bytes() = %d bytes, %t", len(b), ok)
				}
				for range 2 {
					r, err := s.Reader()
					if err != nil {
						t.Fatal(err)
					}
					if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, want) {
						t.Errorf("Reader() gave %d bytes, %v, not what was written", len(got), err)
					}
				}
				for range 2 {
					if err := s.Close(); err != nil {
						t.Errorf("Close() = %v", err)
					}
				}
				if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
					t.Errorf("left behind: %v", left)
				}
				if p.Left() != 1<<20 {
					t.Errorf("budget is %d after Close", p.Left())
				}
			})
		}
	}
}

func TestSpoolGoesToAFileWhenMemoryIsSpent(t *testing.T) {
	t.Parallel()
	p, err := Open(t.TempDir(), 300<<10, nil)
	if err != nil {
		t.Fatal(err)
	}
	first, _ := filled(t, p, 20<<10, 4096)
	second, want := filled(t, p, 20<<10, 4096)
	defer func() { _ = first.Close() }()
	defer func() { _ = second.Close() }()

	if _, ok := first.Bytes(); !ok {
		t.Error("the first spool is not in memory")
	}
	if _, ok := second.Bytes(); ok {
		t.Error("the second spool is in memory, beyond the budget")
	}
	r, err := second.Reader()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, want) {
		t.Errorf("Reader() gave %d bytes, %v, not what was written", len(got), err)
	}
}

func TestOpenRemovesWhatACrashLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	other := filepath.Join(dir, "other")
	for _, name := range []string{filepath.Join(dir, "spool-1234"), other} {
		if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(dir, 0, nil); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 1 || left[0] != other {
		t.Errorf("left: %v, want only %s", left, other)
	}
}
