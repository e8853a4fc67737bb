package mime

import (
	"bytes"
	"io"
	"strings"

	"github.com/postroom/postroom/internal/mail"
)

// A walker visits the leaf parts of a message in one pass over its lines. It
// uses a stack of boundaries instead of recursion, so nesting costs only the
// comparison of lines that begin with "--".
//
// A part ends at a delimiter of any enclosing multipart, even if inner ones are
// not closed. A multipart without a boundary parameter uses the first line that
// looks like a delimiter. A multipart deeper than the limit is a leaf.
type walker struct {
	lines *lineReader
	lim   mail.Limits

	stack      []openMultipart // outermost first
	index      map[string]int  // delimiter to index of the innermost multipart in stack
	header     []byte          // of the current part; reused
	headerAt   int64           // where it begins in the message
	headerLeft int             // bytes left for headers
	parts      int             // leaf parts returned so far
	at         place
	truncated  bool

	// preamble receives the text before the first part. If no delimiter is
	// found, this is the text of the message.
	preamble func([]byte)
}

// openMultipart is a multipart that is not closed.
type openMultipart struct {
	delimiter string // "--boundary", empty until one is found
	hides     int    // index of an outer multipart with the same delimiter, or -1
	subtype   string // "mixed", "alternative", ...
	start     string // Content-ID of the root of a related multipart, or ""
	parts     int    // parts started so far
	plain     bool   // it has, at any depth, a plain text that may be shown
	html      bool   // and an HTML text
}

// place is the position of the walker.
type place int

const (
	atHeader  place = iota // a header follows
	atPart                 // the header of a part was read
	atBody                 // the body of a leaf follows
	atBetween              // a preamble or an epilogue follows
	atEnd
)

// usualHeader is the typical maximum length of a header in bytes.
const usualHeader = 2 << 10

func newWalker(r io.Reader, lim mail.Limits) *walker {
	return &walker{
		lines: newLineReader(r), lim: lim, preamble: discard,
		header: make([]byte, 0, usualHeader), headerLeft: lim.HeaderBytes,
	}
}

// next moves to the next leaf part; read it with body. The error is io.EOF
// after the last part, or that of the reader.
func (w *walker) next() (leafPart, error) {
	for {
		switch w.at {
		case atHeader:
			if err := w.readHeader(); err != nil {
				return leafPart{}, err
			}
		case atPart:
			w.at = atBody
			part := readPartHeader(w.header)
			if w.open(&part) {
				continue
			}
			return w.leaf(part)
		case atBody:
			if err := w.body(discard); err != nil {
				return leafPart{}, err
			}
		case atBetween:
			sink := discard
			if w.parts == 0 {
				sink = w.preamble
			}
			if err := w.body(sink); err != nil {
				return leafPart{}, err
			}
		case atEnd:
			return leafPart{}, io.EOF
		}
	}
}

// open pushes a multipart onto the stack. It returns false for a leaf.
func (w *walker) open(part *leafPart) bool {
	subtype, ok := strings.CutPrefix(part.media.Kind, "multipart/")
	if !ok {
		return false
	}
	if len(w.stack) >= w.lim.Depth {
		w.truncated = true
		return false
	}
	w.stack = append(w.stack, openMultipart{subtype: subtype, start: cleanContentID(part.media.Raw("start"))})
	if boundary := strings.TrimRight(part.media.Raw("boundary"), " \t"); boundary != "" {
		w.name(len(w.stack)-1, "--"+boundary)
	}
	w.at = atBetween
	return true
}

// leaf sets the number and the position of a leaf part.
func (w *walker) leaf(part leafPart) (leafPart, error) {
	if w.parts >= w.lim.Parts {
		w.truncated, w.at = true, atEnd
		return leafPart{}, io.EOF
	}
	if n := len(w.stack); n > 0 {
		part.parent = w.stack[n-1].subtype
		part.root = part.isRoot(&w.stack[n-1])
		part.first = !w.stack[0].plain && !w.stack[0].html
		w.note(&part)
	}
	part.number = w.parts
	w.parts++
	return part, nil
}

// note notes in the multiparts around a leaf that it may be their text.
func (w *walker) note(part *leafPart) {
	kind := part.kind()
	if !isText(kind) || part.disposition.Kind == "attachment" || part.parent == "related" && !part.root {
		return
	}
	for i := range w.stack {
		w.stack[i].html = w.stack[i].html || kind == "text/html"
		w.stack[i].plain = w.stack[i].plain || kind == "text/plain"
	}
}

// body passes the body of the current leaf to sink in pieces, still
// transfer-encoded, and moves past the delimiter that ends it.
func (w *walker) body(sink func([]byte)) error {
	var held []byte
	for {
		if w.lim.Budget.Spent() {
			w.truncated, w.at = true, atEnd
			return nil
		}
		more, err := w.bodyLines(&held, sink)
		if !more {
			return err
		}
	}
}

// bodyLines passes some lines to sink and reports whether more may follow. The
// line ending before a delimiter belongs to the delimiter (RFC 2046 section
// 5.1.1), so it is held until the next line is read.
func (w *walker) bodyLines(held *[]byte, sink func([]byte)) (more bool, err error) {
	line, first, err := w.lines.run()
	if err != nil {
		w.at = atEnd
		sink(*held)
		return false, readError(err)
	}
	if first && w.delimiter(line) {
		return false, nil
	}
	if len(*held) > 0 {
		sink(*held)
	}
	text, end := cutLineEnd(line)
	if len(text) > 0 {
		sink(text)
	}
	*held = nil
	switch len(end) {
	case 1:
		*held = lf
	case 2:
		*held = crlf
	}
	return true, nil
}

var lf, crlf, byteOrderMark = []byte("\n"), []byte("\r\n"), []byte("\xef\xbb\xbf")

func discard([]byte) {}

// readHeader reads the header of a part into w.header. It ends at an empty
// line, at a delimiter, before a first line that cannot start a header, or where
// headerEnd says.
func (w *walker) readHeader() error {
	w.header, w.headerAt = w.header[:0], w.lines.read
	w.at = atPart
	top := w.parts == 0 && len(w.stack) == 0
	end := headerEnd{odd: -1}
	for {
		line, first, err := w.lines.next()
		if err != nil {
			if len(w.header) == 0 {
				w.at = atEnd
			}
			if err = readError(err); err == nil {
				w.cutHeader(&end, nil)
			}
			return err
		}
		if first {
			if top && len(w.header) == 0 {
				line = bytes.TrimPrefix(line, byteOrderMark)
			}
			blank := len(bytes.TrimRight(line, "\r\n")) == 0
			if blank && top && len(w.header) == 0 {
				continue // skip empty lines before the message
			}
			starts := len(w.header) > 0 || w.startsHeader(line, top)
			if i, _ := w.findDelimiter(line); blank || i >= 0 || !starts {
				if !w.cutHeader(&end, line) && !blank {
					w.lines.unreadLines(line)
				}
				return nil
			}
			if len(w.header) > 0 && end.read(w.header, line) {
				w.cutHeader(&end, line)
				return nil
			}
		}
		if w.headerLeft -= len(line); w.headerLeft < 0 && !w.cutHeader(&end, line) {
			w.truncated, w.at = true, atEnd
		}
		if w.headerLeft < 0 {
			return nil
		}
		w.header = append(w.header, line...)
		if end.odd >= 0 && len(w.header)-end.odd > maxOdd {
			w.cutHeader(&end, nil)
			return nil
		}
	}
}

// cutHeader moves the body out of a header that no empty line ends, to be read
// again with the line that follows. It returns false if there is none.
func (w *walker) cutHeader(end *headerEnd, line []byte) bool {
	body := end.body(w.header)
	if body < 0 {
		return false
	}
	w.header = append(w.header, line...)
	w.lines.unreadLines(w.header[body:])
	w.header = w.header[:body]
	return true
}

// startsHeader reports whether a line may be the first of a header. The header
// may be missing, or follow an mbox "From " line.
func (w *walker) startsHeader(line []byte, top bool) bool {
	if top && (bytes.HasPrefix(line, []byte("From ")) || bytes.HasPrefix(line, []byte(">From "))) {
		return true
	}
	return IsHeaderLine(line)
}
