package httpapi

// minContent is the smallest base64 attachment content that is kept out of
// memory.
const minContent = 64 << 10

// contentSpan is the position of an attachment content in a body, between the
// quotes, and its decoded size.
type contentSpan struct{ from, to, size int64 }

// contentFinder finds the large base64 strings attachments[].content in the
// JSON document written to it. It skips names and strings with escapes and
// anything that is not base64; the decoder reports errors in those. The
// document need not be valid JSON: replacing the text between two quotes does
// not change whether it is.
type contentFinder struct {
	found []contentSpan

	at     int64 // bytes written so far
	depth  int   // of open objects and arrays
	opened [3]byte
	names  [3]string // the last name in each
	value  bool      // the last token was a colon

	text jsonString
}

// jsonString is the string that is currently read.
type jsonString struct {
	open    bool
	escape  bool // the next character is escaped
	wanted  bool // it is the content of an attachment
	plain   bool // content: base64 so far; names: no escapes
	padding int64
	from    int64
	name    []byte
}

// Write implements io.Writer; it never fails.
func (f *contentFinder) Write(p []byte) (int, error) {
	for i := 0; i < len(p); {
		n := 1
		if f.text.open {
			n = f.inside(p[i:])
		} else {
			f.outside(p[i])
		}
		i += n
		f.at += int64(n)
	}
	return len(p), nil
}

func (f *contentFinder) outside(c byte) {
	switch c {
	case '"':
		f.text = jsonString{open: true, wanted: f.wanted(), plain: true, from: f.at + 1, name: f.text.name[:0]}
	case '{', '[':
		if f.depth < len(f.opened) {
			f.opened[f.depth], f.names[f.depth] = c, ""
		}
		f.depth++
		f.value = false
	case '}', ']':
		f.depth = max(0, f.depth-1)
		f.value = false
	case ':':
		f.value = true
	case ',':
		f.value = false
	}
}

// wanted reports whether the next string is the content of an attachment.
func (f *contentFinder) wanted() bool {
	return f.value && f.depth == 3 && f.opened == [3]byte{'{', '[', '{'} && f.names[0] == "attachments" && f.names[2] == "content"
}

// inside continues a string and returns how many bytes it used.
func (f *contentFinder) inside(p []byte) int {
	s := &f.text
	for i := 0; i < len(p); i++ {
		if s.wanted && s.plain && s.padding == 0 {
			if i += base64Prefix(p[i:]); i == len(p) {
				break
			}
		}
		switch c := p[i]; {
		case s.escape:
			s.escape = false
		case c == '\\':
			s.escape, s.plain = true, false
		case c == '"':
			f.end(f.at + int64(i))
			return i + 1
		case s.wanted && c == '=':
			s.padding++
		case s.wanted:
			s.plain = s.plain && s.padding == 0 && inBase64[c]
		case !f.value && len(s.name) <= len("attachments"):
			s.name = append(s.name, c)
		}
	}
	return len(p)
}

// base64Prefix returns how many bytes at the start of p are base64 characters.
func base64Prefix(p []byte) int {
	for i, c := range p {
		if !inBase64[c] {
			return i
		}
	}
	return len(p)
}

func (f *contentFinder) end(to int64) {
	s := &f.text
	s.open = false
	n := to - s.from
	switch {
	case s.wanted && s.plain && n >= minContent && n%4 == 0 && s.padding <= 2:
		f.found = append(f.found, contentSpan{s.from, to, n/4*3 - s.padding})
	case !f.value && f.depth >= 1 && f.depth <= len(f.names):
		f.names[f.depth-1] = ""
		if s.plain {
			f.names[f.depth-1] = string(s.name)
		}
	}
}

// inBase64 is the base64 alphabet (RFC 4648 section 4), without padding.
var inBase64 = func() (in [256]bool) {
	for _, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/" {
		in[c] = true
	}
	return in
}()
