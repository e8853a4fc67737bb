package mime

import "strings"

// unflow joins the lines of format=flowed text (RFC 3676). A line that ends
// with a space continues on the next line of the same quote depth. With delSp
// that space is removed. It also removes space-stuffing.
func unflow(text string, delSp bool) string {
	var b strings.Builder
	b.Grow(len(text))
	open, depth := false, 0 // the paragraph that may continue, and its quote depth
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
