package mime

import "strings"

// unflow puts the lines of a text in the format of RFC 3676 together again. A
// line that ends with a space goes on in the next one of the same depth of
// quotation; with delSp that space is only there to say so. A space before a
// line keeps it from being taken for something else and goes.
func unflow(text string, delSp bool) string {
	var b strings.Builder
	b.Grow(len(text))
	open, depth := false, 0 // of the paragraph that may go on
	for line := range strings.Lines(text) {
		line, end := strings.CutSuffix(line, "\n")
		quotes := len(line) - len(strings.TrimLeft(line, ">"))
		content := strings.TrimPrefix(line[quotes:], " ")
		signature := content == "-- "
		if open && (quotes != depth || signature) {
			b.WriteByte('\n')
			open = false
		}
		if !open && quotes > 0 {
			b.WriteString(line[:quotes])
			b.WriteByte(' ')
		}
		open, depth = strings.HasSuffix(content, " ") && !signature && end, quotes
		if open && delSp {
			content = content[:len(content)-1]
		}
		b.WriteString(content)
		if !open && end {
			b.WriteByte('\n')
		}
	}
	return b.String()
}
