package mime

import "bytes"

// delimiter reports whether a line is a delimiter. If so, it moves the walker
// there.
func (w *walker) delimiter(line []byte) bool {
	i, last := w.findDelimiter(line)
	switch {
	case i < 0:
		return false
	case last:
		w.leave(i)
		w.at = atBetween
	default:
		w.leave(i + 1)
		w.stack[i].parts++
		w.at = atHeader
	}
	return true
}

// findDelimiter returns the index of the multipart that a delimiter line
// belongs to, or -1, and whether it is the closing delimiter.
func (w *walker) findDelimiter(line []byte) (i int, last bool) {
	inner := len(w.stack) - 1
	if inner < 0 || len(line) < 3 || line[0] != '-' || line[1] != '-' {
		return -1, false
	}
	line = bytes.TrimRight(line, " \t\r\n")
	if i, ok := w.index[string(line)]; ok {
		return i, false
	}
	if start, ok := bytes.CutSuffix(line, []byte("--")); ok {
		if i, ok := w.index[string(start)]; ok {
			return i, true
		}
	}
	if w.stack[inner].delimiter == "" && len(line) > 2 {
		w.name(inner, string(line))
		return inner, false
	}
	return -1, false
}

// name sets the delimiter of a multipart.
func (w *walker) name(i int, delimiter string) {
	if w.index == nil {
		w.index = make(map[string]int)
	}
	w.stack[i].delimiter = delimiter
	w.stack[i].hides = -1
	if outer, ok := w.index[delimiter]; ok {
		w.stack[i].hides = outer
	}
	w.index[delimiter] = i
}

// leave closes all but the outermost n multiparts.
func (w *walker) leave(n int) {
	for i := len(w.stack) - 1; i >= n; i-- {
		switch m := w.stack[i]; {
		case m.delimiter == "":
		case m.hides >= 0:
			w.index[m.delimiter] = m.hides
		default:
			delete(w.index, m.delimiter)
		}
	}
	w.stack = w.stack[:n]
}
