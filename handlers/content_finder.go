package handlers

// minContent is from which size on, in base64, the content of an attachment is
// worth keeping out of memory.
const minContent = 64 << 10

// contentSpan is where in a body the content of an attachment stands, between
// its quotes, and how many bytes it says.
type contentSpan struct{ from, to, size int64 }

// contentFinder finds the large contents of attachments in the JSON document
// that is written to it: the base64 texts attachments[].content. What it is not
// sure of, such as a name or a text with an escape, or text that is not base64,
// it leaves to the decoder, which knows what is wrong with it. Whether the
// document is JSON does not matter: with another text between the quotes it is
// as right or as wrong as before.
type contentFinder struct {
	found []contentSpan

	at     int64 // how much was written
	depth  int   // of open objects and arrays
	opened [3]byte
	names  [3]string // the last name in each of them
	value  bool      // a colon came last

	text jsonString
}

// jsonString is the string that is being read.
type jsonString struct {
	open    bool
	escape  bool // the next character is escaped
	wanted  bool // it is the content of an attachment
	plain   bool // and base64 so far; of names: without escapes
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

// wanted says whether the content of an attachment comes next.
func (f *contentFinder) wanted() bool {
	return f.value && f.depth == 3 && f.opened == [3]byte{'{', '[', '{'} && f.names[0] == "attachments" && f.names[2] == "content"
}

// inside reads on in a string and returns how many bytes it took.
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

// base64Prefix is how much of p, from its beginning, are characters of base64.
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

// inBase64 are the characters of base64 (RFC 4648 section 4), without padding.
var inBase64 = func() (in [256]bool) {
	for _, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/" {
		in[c] = true
	}
	return in
}()
