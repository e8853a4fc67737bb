package htmltext

// textSizes is the stack of open elements that set a font size, from the first
// one of size zero on. It is empty on pages that hide no text by size.
type textSizes []sizedElement

type sizedElement struct {
	below int // length of the element stack below it
	zero  bool
}

// seen reports whether text is visible here.
func (s textSizes) seen() bool { return len(s) == 0 || !s[len(s)-1].zero }

// open records the font size of an element with below open elements around it.
func (s *textSizes) open(below int, size fontSize) {
	if size == zeroSize || size == someSize && !s.seen() {
		*s = append(*s, sizedElement{below, size == zeroSize})
	}
}

// cut closes all elements above the first n.
func (s *textSizes) cut(n int) {
	for len(*s) > 0 && (*s)[len(*s)-1].below >= n {
		*s = (*s)[:len(*s)-1]
	}
}
