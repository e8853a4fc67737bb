package httpapi

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

const (
	// A mark replaces each content that stays in the file: markBytes random
	// bytes that no client can predict, then indexBytes with its index. Both
	// lengths are multiples of three, so their base64 has no padding.
	markBytes  = 18
	indexBytes = 6
)

// keptContents holds the attachment contents of a large body, which stay in its
// file. The decoded document has a mark in place of each content; behind maps a
// mark back to its content.
type keptContents struct {
	file  *os.File
	mark  [markBytes]byte
	spans []contentSpan
}

// held returns how many bytes of the body stay in the file.
func (k *keptContents) held() (n int64) {
	for _, s := range k.spans {
		n += s.to - s.from
	}
	return n
}

// document returns the body of the given size with marks in place of the
// contents.
func (k *keptContents) document(size int64) io.Reader {
	var parts []io.Reader
	from := int64(0)
	for i, s := range k.spans {
		mark := base64.StdEncoding.EncodeToString(k.markOf(i))
		parts = append(parts, io.NewSectionReader(k.file, from, s.from-from), bytes.NewReader([]byte(mark)))
		from = s.to
	}
	return io.MultiReader(append(parts, io.NewSectionReader(k.file, from, size-from))...)
}

func (k *keptContents) markOf(i int) []byte {
	mark := binary.BigEndian.AppendUint64(bytes.Clone(k.mark[:]), uint64(i)) //nolint:gosec // an index
	return append(mark[:markBytes], mark[len(mark)-indexBytes:]...)
}

// behind returns the content that a decoded mark stands for.
func (k *keptContents) behind(decoded []byte) (s contentSpan, ok bool) {
	index, isMark := bytes.CutPrefix(decoded, k.mark[:])
	if !isMark || len(index) != indexBytes {
		return s, false
	}
	i := binary.BigEndian.Uint64(append(make([]byte, 8-indexBytes), index...))
	if i >= uint64(len(k.spans)) {
		return s, false
	}
	return k.spans[i], true
}

// KeptContent returns a large attachment content that is in a file, if content is
// the mark that stands for it in the decoded request. open returns a reader of
// the decoded content; it works until the request ends.
func KeptContent(ctx context.Context, content []byte) (size int64, open func() (io.ReadCloser, error), kept bool) {
	k := infoOf(ctx).kept
	s, kept := k.behind(content)
	return s.size, func() (io.ReadCloser, error) { return k.open(s), nil }, kept
}

// text returns the base64 text of a content as received.
func (k *keptContents) text(s contentSpan) io.Reader {
	return io.NewSectionReader(k.file, s.from, s.to-s.from)
}

// open returns a reader of the decoded content.
func (k *keptContents) open(s contentSpan) io.ReadCloser {
	return io.NopCloser(&contentReader{text: k.text(s)})
}

// contentReader decodes base64 without line breaks. It is four times as fast as
// the decoder of the standard library, which skips line breaks.
type contentReader struct {
	text    io.Reader
	in      [16 << 10]byte // whole groups of four characters
	decoded [12 << 10]byte
	rest    []byte
}

// Read implements io.Reader.
func (r *contentReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		n, err := io.ReadFull(r.text, r.in[:])
		if n == 0 || err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return 0, err
		}
		if n, err = base64.StdEncoding.Decode(r.decoded[:], r.in[:n]); err != nil {
			return 0, err
		}
		r.rest = r.decoded[:n]
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// writeWhole writes a document with each mark replaced by its content.
func (k *keptContents) writeWhole(w io.Writer, doc []byte) error {
	mark := []byte(base64.StdEncoding.EncodeToString(k.mark[:]))
	all := base64.StdEncoding.EncodedLen(markBytes + indexBytes)
	for len(k.spans) > 0 {
		at := bytes.Index(doc, mark)
		if at < 0 || len(doc) < at+all {
			break
		}
		decoded, err := base64.StdEncoding.DecodeString(string(doc[at : at+all]))
		if err != nil {
			return fmt.Errorf("mark of a content: %w", err)
		}
		s, ok := k.behind(decoded)
		if !ok {
			return fmt.Errorf("mark of a content: %q is none", doc[at:at+all])
		}
		if _, err := w.Write(doc[:at]); err != nil {
			return err
		}
		if _, err := io.Copy(w, k.text(s)); err != nil {
			return spoolError(err)
		}
		doc = doc[at+all:]
	}
	_, err := w.Write(doc)
	return err
}
