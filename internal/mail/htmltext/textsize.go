package htmltext

// textSizes are the elements that set the size of their text, from one without
// any size on: nothing is kept of pages that hide no text in this way.
type textSizes []sizedElement

type sizedElement struct {
	below int // the length of the stack below it
	zero  bool
}

// seen reports whether text at this place is shown.
func (s textSizes) seen() bool { return len(s) == 0 || !s[len(s)-1].zero }

// open takes an element with so many others open around it.
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
