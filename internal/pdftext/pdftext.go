// Package pdftext reads the text of PDF files that strangers sent. It runs nothing
// that a file contains, follows no links and opens no other files.
//
// The work is bounded, whatever the file is: how many bytes of streams are read and
// decoded, how many values are parsed or visited, how deep they nest, and how much
// text is returned. What is read again counts again. A damaged file, or one beyond
// the bounds, gives the text that can be read. Text in images is not read, nor are
// encrypted files.
package pdftext

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// The bounds of the work for one file.
const (
	// MaxBytes is the size of the largest file that is read.
	MaxBytes = 4 << 20

	maxBytes    = 16 << 20 // of streams, and of the strings that they show
	streamBytes = 1 << 10  // what each use of a stream costs besides
	maxValues   = 600_000
	maxObjects  = 50_000
	maxPages    = 100
	maxText     = 200_000
	maxDepth    = 24
	maxForms    = 4 // nested in a page
	maxMapped   = 100_000
)

// ErrNoText means that the file has no text that can be read: it is not a PDF, is too
// large or encrypted, or consists of images.
var ErrNoText = errors.New("the PDF has no text that can be read")

// Text returns the text of a file, a line for each line, or ErrNoText. When ctx ends,
// it stops and returns the error of ctx.
func Text(ctx context.Context, b []byte) (string, error) {
	if len(b) > MaxBytes || !bytes.Contains(b[:min(len(b), 1024)], []byte("%PDF-")) {
		return "", ErrNoText
	}
	f := &file{objects: map[ref]any{}, fonts: map[ref]*font{}, values: maxValues, bytes: maxBytes, mapped: maxMapped}
	f.scan(b)
	if f.encrypted {
		return "", ErrNoText
	}
	f.unpack()
	out := &writer{}
	for _, page := range f.pages() {
		out.page()
		f.show(ctx, out, f.contents(page.dict["Contents"]), page.resources, 0)
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	text := out.String()
	if strings.TrimSpace(text) == "" {
		return "", ErrNoText
	}
	return text, nil
}

// file is a file that is read, with what is left of its bounds.
type file struct {
	objects   map[ref]any // the newest of each number
	fonts     map[ref]*font
	encrypted bool

	values int // still to be parsed or visited
	bytes  int // of streams and shown strings still to be read
	mapped int // characters of fonts still to be mapped
}

// scan finds the objects of the file by their keyword, so that damaged tables of
// contents do no harm. It reads each byte at most twice.
func (f *file) scan(b []byte) {
	endless := false // nothing that follows has the end of a stream
	for i := 0; i < len(b) && len(f.objects) < maxObjects; {
		j := bytes.Index(b[i:], []byte("obj"))
		if j < 0 {
			break
		}
		j += i
		i = j + len("obj")
		n, ok := numberBefore(b, j)
		if !ok {
			continue
		}
		l := &lexer{b: b, i: i, left: &f.values}
		v, ok := l.value(0)
		i = max(i, l.i)
		if !ok {
			continue
		}
		if d, isDict := v.(dict); isDict {
			if start, is := streamStart(b, i); is {
				end := f.streamEnd(b, start, d, &endless)
				v, i = stream{d, b[start:end]}, end
			}
		}
		f.objects[n] = v
	}
	f.encrypted = trailerEncrypts(b)
}

// trailerEncrypts reports whether a trailer, or the dictionary of a table of contents,
// names the encryption.
func trailerEncrypts(b []byte) bool {
	i := bytes.Index(b, []byte("/Encrypt"))
	return i >= 0 && (i+len("/Encrypt") == len(b) || !isRegular(b[i+len("/Encrypt")]))
}

// numberBefore returns the number of the object whose keyword is at i.
func numberBefore(b []byte, i int) (ref, bool) {
	digits := func() (n int, ok bool) {
		for i > 0 && isSpace(b[i-1]) {
			i--
		}
		end := i
		for i > 0 && end-i < 9 && b[i-1] >= '0' && b[i-1] <= '9' {
			i--
		}
		for _, c := range b[i:end] {
			n = n*10 + int(c-'0')
		}
		return n, end > i
	}
	if _, ok := digits(); !ok { // the generation
		return 0, false
	}
	if i == 0 || !isSpace(b[i-1]) {
		return 0, false
	}
	n, ok := digits()
	return ref(n), ok
}

// streamStart returns where the bytes of a stream begin, if the keyword follows at i.
func streamStart(b []byte, i int) (int, bool) {
	for i < len(b) && isSpace(b[i]) {
		i++
	}
	rest, ok := bytes.CutPrefix(b[i:], []byte("stream"))
	if !ok {
		return 0, false
	}
	i = len(b) - len(rest)
	if i < len(b) && b[i] == '\r' {
		i++
	}
	if i < len(b) && b[i] == '\n' {
		i++
	}
	return i, true
}

// streamEnd returns where the bytes of a stream end: by its length if that is right,
// or else by the keyword.
func (f *file) streamEnd(b []byte, start int, d dict, endless *bool) int {
	const end = "endstream"
	if n, ok := d["Length"].(float64); ok && n >= 0 && n <= float64(len(b)-start) {
		at := start + int(n)
		if bytes.HasPrefix(bytes.TrimLeft(b[at:min(len(b), at+len(end)+4)], "\r\n "), []byte(end)) {
			return at
		}
	}
	if !*endless {
		if k := bytes.Index(b[start:], []byte(end)); k >= 0 {
			return start + k
		}
		*endless = true // the file is cut off
	}
	if k := bytes.Index(b[start:], []byte("endobj")); k >= 0 {
		return start + k
	}
	return len(b)
}

// unpack adds the objects that are packed into streams.
func (f *file) unpack() {
	var packed []stream
	for _, n := range f.numbers() {
		if s, ok := f.objects[n].(stream); ok && s.dict["Type"] == name("ObjStm") {
			packed = append(packed, s)
		}
	}
	for _, s := range packed {
		data := f.inflate(s)
		count, _ := f.resolve(s.dict["N"]).(float64)
		first, _ := f.resolve(s.dict["First"]).(float64)
		head := &lexer{b: data, left: &f.values}
		for range int(min(count, maxObjects)) {
			n, ok1 := head.number()
			at, ok2 := head.number()
			if !ok1 || !ok2 || first+at < 0 || first+at >= float64(len(data)) || len(f.objects) >= maxObjects || f.values <= 0 {
				break
			}
			l := &lexer{b: data, i: int(first + at), left: &f.values}
			v, ok := l.value(0)
			f.values -= (l.i - int(first+at)) / 8 // the same bytes may be named many times
			if _, known := f.objects[ref(n)]; ok && !known {
				f.objects[ref(n)] = v
			}
		}
	}
}

// numbers returns the numbers of the objects in order.
func (f *file) numbers() []ref { return slices.Sorted(maps.Keys(f.objects)) }

// resolve follows references.
func (f *file) resolve(v any) any {
	for range maxDepth {
		r, ok := v.(ref)
		if !ok {
			return v
		}
		v = f.objects[r]
	}
	return nil
}

func (f *file) dict(v any) dict {
	switch v := f.resolve(v).(type) {
	case dict:
		return v
	case stream:
		return v.dict
	}
	return nil
}

// inflate returns the bytes of a stream: as far as they can be decompressed and may
// still be read, and nil for other encodings.
func (f *file) inflate(s stream) []byte {
	filter := f.resolve(s.dict["Filter"])
	if list, ok := filter.([]any); ok {
		if len(list) > 1 {
			return nil
		}
		filter = nil
		if len(list) == 1 {
			filter = f.resolve(list[0])
		}
	}
	if f.bytes -= streamBytes; f.bytes <= 0 {
		return nil
	}
	if filter == nil {
		b := s.raw[:min(len(s.raw), f.bytes)]
		f.bytes -= len(b)
		return b
	}
	if filter != name("FlateDecode") && filter != name("Fl") {
		return nil
	}
	if p, ok := f.dict(s.dict["DecodeParms"])["Predictor"].(float64); ok && p > 1 {
		return nil
	}
	raw := bytes.NewReader(s.raw)
	r, err := zlib.NewReader(raw)
	if err != nil {
		return nil
	}
	b, _ := io.ReadAll(io.LimitReader(r, int64(f.bytes))) // the beginning of a damaged stream is of use
	f.bytes -= len(b) + len(s.raw) - raw.Len()            // compressed bytes may give none
	return b
}

// page is a page with the resources that it may have inherited.
type page struct{ dict, resources dict }

// pages returns the pages in the order of their tree, or by number without one.
func (f *file) pages() (all []page) {
	numbers := f.numbers()
	seen := map[ref]bool{}
	var walk func(v any, resources dict, depth int)
	walk = func(v any, resources dict, depth int) {
		if f.values--; f.values < 0 { // many nodes may share their children
			return
		}
		if r, ok := v.(ref); ok {
			if seen[r] {
				return
			}
			seen[r] = true
		}
		d := f.dict(v)
		if d == nil || depth > maxDepth || len(all) >= maxPages {
			return
		}
		if own := f.dict(d["Resources"]); own != nil {
			resources = own
		}
		if kids, ok := f.resolve(d["Kids"]).([]any); ok {
			for _, kid := range kids {
				if f.values < 0 || len(all) >= maxPages {
					return
				}
				walk(kid, resources, depth+1)
			}
			return
		}
		if d["Contents"] != nil {
			all = append(all, page{d, resources})
		}
	}
	for _, n := range slices.Backward(numbers) {
		if d, ok := f.objects[n].(dict); ok && d["Type"] == name("Catalog") && len(all) == 0 {
			walk(d["Pages"], nil, 0)
		}
	}
	for _, n := range numbers {
		if d, ok := f.objects[n].(dict); ok && d["Type"] == name("Page") && len(all) < maxPages && !seen[n] {
			walk(n, nil, 0)
		}
	}
	return all
}

// contents returns the instructions of a page: one stream, or several in a row.
func (f *file) contents(v any) []byte {
	switch v := f.resolve(v).(type) {
	case stream:
		return f.inflate(v)
	case []any:
		var b []byte
		for _, part := range v {
			if f.values--; f.values < 0 {
				break
			}
			if s, ok := f.resolve(part).(stream); ok {
				b = append(append(b, f.inflate(s)...), '\n')
			}
		}
		return b
	}
	return nil
}

// writer collects the text.
type writer struct {
	b       strings.Builder
	newline int // how many to write before the next text
	space   bool
}

func (w *writer) full() bool { return w.b.Len() >= maxText }

func (w *writer) page() { w.newline = 2 }

func (w *writer) line() { w.newline = max(w.newline, 1) }

func (w *writer) write(s string) {
	for _, r := range s {
		switch {
		case w.full():
			return
		case unicode.IsSpace(r):
			w.space = true
			continue
		case unicode.IsControl(r), r == unicode.ReplacementChar, unicode.Is(unicode.Co, r):
			continue
		}
		if w.b.Len() > 0 {
			if w.newline > 0 {
				w.b.WriteString(strings.Repeat("\n", w.newline))
			} else if w.space {
				w.b.WriteByte(' ')
			}
		}
		w.newline, w.space = 0, false
		w.b.WriteRune(r)
	}
}

// ligatures are single characters for several letters.
var ligatures = strings.NewReplacer("ﬀ", "ff", "ﬁ", "fi", "ﬂ", "fl", "ﬃ", "ffi", "ﬄ", "ffl", "ﬅ", "st", "ﬆ", "st")

// String returns the text.
func (w *writer) String() string { return ligatures.Replace(w.b.String()) }
