// Package spool holds messages while they arrive: in memory, or in a temporary file if
// they are large.
package spool

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
)

const (
	// small is the size up to which each spool may use memory.
	small = 16 << 10
	// large is the size up to which a spool uses memory if the budget has room for it.
	large = 256 << 10

	pattern = "spool-*"
)

// Folder creates spools that share a folder for temporary files and a memory budget.
type Folder struct {
	dir    string
	space  func() error
	budget atomic.Int64 // remaining bytes for spools that are not small
}

// Open returns a Folder at dir, which no other process may use. It creates dir if it is
// missing, and removes files that a crash left behind. memory is the memory in bytes for
// all spools, not counting the first 16 KiB of each. space, if not nil, returns an error
// while the disk has no space for another file.
func Open(dir string, memory int64, space func() error) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of temporary files: %w", err)
	}
	left, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		return nil, fmt.Errorf("look for temporary files: %w", err)
	}
	for _, name := range left {
		if err := remove(name); err != nil {
			return nil, fmt.Errorf("remove a temporary file: %w", err)
		}
	}
	f := &Folder{dir: dir, space: space}
	f.budget.Store(memory)
	return f, nil
}

// remove removes a file that may not exist.
func remove(name string) error {
	if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Left returns how many bytes of the memory budget are unused.
func (f *Folder) Left() int64 { return f.budget.Load() }

// New returns an empty spool. The caller closes it.
func (f *Folder) New() *Spool { return &Spool{from: f} }

// Spool holds an arriving message: up to 256 KiB in memory, a larger one in a temporary
// file. It is not safe for concurrent use and must be closed.
type Spool struct {
	from     *Folder
	buf      []byte // the message, or the part that is not in the file yet
	reserved int64  // bytes of the budget
	file     *os.File
	named    string // name of the file, if it could not be removed while open
	size     int64
}

// Write appends to the message.
func (s *Spool) Write(b []byte) (int, error) {
	if s.file == nil && len(s.buf)+len(b) > small && !s.fits(len(b)) {
		if err := s.create(); err != nil {
			return 0, err
		}
	}
	if s.file != nil && len(s.buf)+len(b) > small {
		if err := s.flush(); err != nil {
			return 0, err
		}
		if len(b) > small {
			if _, err := s.file.Write(b); err != nil {
				return 0, fmt.Errorf("write a temporary file: %w", err)
			}
			s.size += int64(len(b))
			return len(b), nil
		}
	}
	s.buf = append(s.buf, b...)
	s.size += int64(len(b))
	return len(b), nil
}

// fits reports whether n more bytes may stay in memory.
func (s *Spool) fits(n int) bool {
	if len(s.buf)+n > large {
		return false
	}
	if s.reserved == 0 {
		if s.from.budget.Add(-large) < 0 {
			s.from.budget.Add(large)
			return false
		}
		s.reserved = large
	}
	return true
}

// create creates the file.
func (s *Spool) create() error {
	f, err := os.CreateTemp(s.from.dir, pattern)
	if err != nil {
		return fmt.Errorf("make a temporary file: %w", err)
	}
	s.file = f
	// A file without a name disappears even after a crash.
	if err := remove(f.Name()); err != nil {
		s.named = f.Name()
	}
	return nil
}

// flush moves the buffer to the file.
func (s *Spool) flush() error {
	if s.from.space != nil {
		if err := s.from.space(); err != nil {
			return fmt.Errorf("write a temporary file: %w", err)
		}
	}
	if _, err := s.file.Write(s.buf); err != nil {
		return fmt.Errorf("write a temporary file: %w", err)
	}
	s.buf = s.buf[:0]
	return nil
}

// Size returns the number of bytes written.
func (s *Spool) Size() int64 { return s.size }

// Bytes returns the message if it is in memory. The slice is valid until Close.
func (s *Spool) Bytes() (raw []byte, ok bool) { return s.buf, s.file == nil }

// Reader returns a reader over the whole message, valid until the next Write or Close.
func (s *Spool) Reader() (io.ReadSeeker, error) {
	if s.file == nil {
		return bytes.NewReader(s.buf), nil
	}
	if err := s.flush(); err != nil {
		return nil, err
	}
	return io.NewSectionReader(s.file, 0, s.size), nil
}

// Close frees the memory or the file. It may be called twice.
func (s *Spool) Close() error {
	s.from.budget.Add(s.reserved)
	s.buf, s.reserved = nil, 0
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	if s.named != "" {
		err = errors.Join(err, remove(s.named))
	}
	s.file = nil
	if err != nil {
		return fmt.Errorf("remove a temporary file: %w", err)
	}
	return nil
}
