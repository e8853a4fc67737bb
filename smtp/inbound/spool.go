package inbound

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
)

// spoolSizes are the sizes of a spool's memory buffer, before it uses a file.
// Nearly all messages fit the first size, of which every connection may have one buffer.
// The larger ones count against a budget.
var spoolSizes = [...]int{16 << 10, 64 << 10, 256 << 10}

const spoolPattern = "spool-*"

// spools creates spools that share a folder for temporary files and a memory
// budget.
type spools struct {
	dir    string
	space  func() error // ReceiverConfig.Space
	budget atomic.Int64 // remaining bytes for buffers above the first size
	pools  [len(spoolSizes)]sync.Pool
}

// newSpools creates dir if it is missing, and removes files that a crash left
// behind.
func newSpools(dir string, memory int64) (*spools, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of temporary files: %w", err)
	}
	left, err := filepath.Glob(filepath.Join(dir, spoolPattern))
	if err != nil {
		return nil, fmt.Errorf("look for temporary files: %w", err)
	}
	for _, name := range left {
		if err := removeFile(name); err != nil {
			return nil, fmt.Errorf("remove a temporary file: %w", err)
		}
	}
	p := &spools{dir: dir}
	p.budget.Store(memory)
	return p, nil
}

// removeFile removes a file that may not exist.
func removeFile(name string) error {
	if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// get returns a buffer of a size class, or nil when the budget is used up.
func (p *spools) get(class int) *[]byte {
	if class > 0 {
		if p.budget.Add(-int64(spoolSizes[class])) < 0 {
			p.budget.Add(int64(spoolSizes[class]))
			return nil
		}
	}
	if b, ok := p.pools[class].Get().(*[]byte); ok {
		return b
	}
	b := make([]byte, 0, spoolSizes[class])
	return &b
}

func (p *spools) put(class int, b *[]byte) {
	*b = (*b)[:0]
	p.pools[class].Put(b)
	if class > 0 {
		p.budget.Add(int64(spoolSizes[class]))
	}
}

// Spool holds an arriving message: up to 256 KiB in memory, a larger one in a
// temporary file. It is not safe for concurrent use and must be closed.
type Spool struct {
	from  *spools
	class int
	buf   *[]byte // the message, or the part that is not in file yet
	file  *os.File
	named string // name of file, if it could not be removed while open
	size  int64
}

func (p *spools) spool() *Spool { return &Spool{from: p, buf: p.get(0)} }

// Write appends to the message.
func (s *Spool) Write(b []byte) (int, error) {
	for rest := b; ; {
		room := cap(*s.buf) - len(*s.buf)
		if len(rest) <= room {
			*s.buf = append(*s.buf, rest...)
			s.size += int64(len(b))
			return len(b), nil
		}
		if s.file == nil && s.grow() {
			continue
		}
		*s.buf = append(*s.buf, rest[:room]...)
		rest = rest[room:]
		if err := s.spill(); err != nil {
			return 0, err
		}
	}
}

// grow moves the message to the next larger buffer, if the budget allows.
func (s *Spool) grow() bool {
	if s.class+1 == len(spoolSizes) {
		return false
	}
	larger := s.from.get(s.class + 1)
	if larger == nil {
		return false
	}
	*larger = append(*larger, *s.buf...)
	s.from.put(s.class, s.buf)
	s.class++
	s.buf = larger
	return true
}

// spill moves the buffer to the file.
func (s *Spool) spill() error {
	if s.from.space != nil {
		if err := s.from.space(); err != nil {
			return fmt.Errorf("write a temporary file: %w", err)
		}
	}
	if s.file == nil {
		f, err := os.CreateTemp(s.from.dir, spoolPattern)
		if err != nil {
			return fmt.Errorf("make a temporary file: %w", err)
		}
		s.file = f
		// A file without a name disappears even after a crash.
		if err := removeFile(f.Name()); err != nil {
			s.named = f.Name()
		}
	}
	if _, err := s.file.Write(*s.buf); err != nil {
		return fmt.Errorf("write a temporary file: %w", err)
	}
	*s.buf = (*s.buf)[:0]
	return nil
}

// Size returns the number of bytes written.
func (s *Spool) Size() int64 { return s.size }

// Bytes returns the message if it is in memory. The slice is valid until Close.
func (s *Spool) Bytes() (raw []byte, ok bool) {
	if s.file != nil {
		return nil, false
	}
	return *s.buf, true
}

// Reader returns a reader over the whole message, valid until the next Write or
// Close.
func (s *Spool) Reader() (io.ReadSeeker, error) {
	if s.file == nil {
		return bytes.NewReader(*s.buf), nil
	}
	if err := s.spill(); err != nil {
		return nil, err
	}
	return io.NewSectionReader(s.file, 0, s.size), nil
}

// Close frees the memory or the file. It may be called twice.
func (s *Spool) Close() error {
	if s.buf == nil {
		return nil
	}
	s.from.put(s.class, s.buf)
	s.buf = nil
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	if s.named != "" {
		err = errors.Join(err, removeFile(s.named))
	}
	if err != nil {
		return fmt.Errorf("remove a temporary file: %w", err)
	}
	return nil
}
