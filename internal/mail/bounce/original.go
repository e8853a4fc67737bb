package bounce

import (
	"slices"
	"strings"

	"github.com/postroom/postroom/internal/mail/mime"
)

// originalStart returns the index of the line at which the returned message
// starts, or len(lines).
func originalStart(lines []string) int {
	for i, line := range lines {
		if isOriginalMark(line) && !tellsMore(lines[i+1:]) || startsOriginal(lines, i) {
			return i
		}
	}
	return len(lines)
}

// isOriginalMark reports whether a line introduces the returned message, as in
// "------ This is a copy of the message, including all the headers. ------".
func isOriginalMark(line string) bool {
	line = strings.TrimLeft(line, " \t")
	if len(line) > 100 {
		return false
	}
	ruled := strings.HasPrefix(line, "--") || strings.HasPrefix(line, "==") || strings.HasPrefix(line, "|--")
	line = strings.ToLower(strings.Trim(line, "-= \t*|"))
	if !ruled && !strings.HasSuffix(line, "follows.") && !strings.HasSuffix(line, "follow.") && !strings.HasSuffix(line, ":") {
		return false
	}
	return slices.ContainsFunc(phrases().original, func(mark string) bool { return strings.Contains(line, mark) })
}

// tellsMore reports whether the server's words continue after the returned
// header. Some servers put the header first.
func tellsMore(lines []string) bool {
	for _, line := range lines[:min(len(lines), 40)] {
		line = strings.ToLower(strings.TrimLeft(line, " \t"))
		if strings.HasPrefix(line, "final-recipient:") || strings.HasPrefix(line, "did not reach the following") {
			return true
		}
	}
	return false
}

// startsOriginal reports whether a returned message without an introduction
// starts at line i: a trace field, or at least four fields that messages
// usually have.
func startsOriginal(lines []string, i int) bool {
	name := mailField(lines[i])
	if name == "" {
		return false
	}
	if name == "received" || name == "return-path" {
		return true
	}
	seen := 0
	for _, line := range lines[i:min(len(lines), i+12)] {
		switch {
		case line == "":
			return seen >= 4
		case line[0] == ' ', line[0] == '\t': // continues a field
		case mailField(line) != "":
			seen++
		case !mime.IsHeaderLine([]byte(line)):
			return false
		}
	}
	return seen >= 4
}

// mailField returns, in lower case, the name of a message field that is
// unlikely in a server's words, or "" for any other line.
func mailField(line string) string {
	name, _, ok := strings.Cut(line, ":")
	if !ok || len(name) > len("content-transfer-encoding") {
		return ""
	}
	switch name = strings.ToLower(name); name {
	case "received", "return-path", "message-id", "mime-version", "content-type", "dkim-signature", "content-transfer-encoding",
		"from", "to", "subject", "date", "x-mailer", "user-agent":
		return name
	}
	if strings.HasPrefix(name, "x-") && !strings.HasPrefix(name, "x-postfix-") { // those belong to a delivery status
		return name
	}
	return ""
}
