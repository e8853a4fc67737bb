package handlers

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/postroom/postroom/store"
)

var errSeek = errors.New("seek outside the file")

// lazySeeker gives random access to a stream that can only be read from its
// beginning: it opens it again when a read is behind.
type lazySeeker struct {
	open func() (io.ReadCloser, error)
	size int64

	want int64 // where the next read begins
	at   int64 // where r stands
	r    io.ReadCloser
}

// Seek implements io.Seeker.
func (s *lazySeeker) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += s.want
	case io.SeekEnd:
		offset += s.size
	}
	if offset < 0 {
		return 0, errSeek
	}
	s.want = offset
	return offset, nil
}

// Read implements io.Reader.
func (s *lazySeeker) Read(p []byte) (int, error) {
	if s.r == nil || s.at > s.want {
		if err := s.reopen(); err != nil {
			return 0, err
		}
	}
	if s.at < s.want {
		n, err := io.CopyN(io.Discard, s.r, s.want-s.at)
		s.at += n
		if err != nil {
			return 0, err
		}
	}
	n, err := s.r.Read(p)
	s.at += int64(n)
	s.want = s.at
	return n, err
}

func (s *lazySeeker) reopen() error {
	if err := s.Close(); err != nil {
		return err
	}
	r, err := s.open()
	if err != nil {
		return err
	}
	s.r, s.at = r, 0
	return nil
}

// Close implements io.Closer.
func (s *lazySeeker) Close() error {
	if s.r == nil {
		return nil
	}
	r := s.r
	s.r = nil
	return r.Close()
}

// signedRaw is a raw message with the header lines that signing put before it:
// the bytes as sent.
func signedRaw(raw *store.Raw) io.ReadSeekCloser {
	if raw.Signature == "" {
		return raw
	}
	return &lazySeeker{
		size: int64(len(raw.Signature)) + raw.Size,
		open: func() (io.ReadCloser, error) {
			if _, err := raw.Seek(0, io.SeekStart); err != nil {
				return nil, fmt.Errorf("read raw message: %w", err)
			}
			return readCloser{io.MultiReader(strings.NewReader(raw.Signature), raw), nopCloser{}}, nil
		},
	}
}

type nopCloser struct{}

func (nopCloser) Close() error { return nil }
