package bounce

import (
	"strings"

	"github.com/postroom/postroom/internal/mail/mime"
)

// originalMarks are what mail servers write above the message that they return,
// in lower case.
var originalMarks = []string{
	"below this line is a copy", "enclosed is a copy", "this is a copy of", "included is a copy", "below is a copy",
	"copy of the original message", "copy of your message", "copy of the message",
	"header of the original message", "headers of the original message", "headers follow", "message follows",
	"original message", "original mail", "unsent message", "undelivered message", "returned message", "message header follow",
	"message text follows", "rejected message",
}

// originalStart returns the number of the line at which a message that is
// returned begins, or that of all lines.
func originalStart(lines []string) int {
	for i, line := range lines {
		if isOriginalMark(line) && !tellsMore(lines[i+1:]) || startsOriginal(lines, i) {
			return i
		}
	}
	return len(lines)
}

// isOriginalMark reports whether a line introduces the message that is returned:
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
	for _, mark := range originalMarks {
		if strings.Contains(line, mark) {
			return true
		}
	}
	return false
}

// tellsMore reports whether a server goes on telling below the header of
// the original, as some do that give it first.
func tellsMore(lines []string) bool {
	for _, line := range lines[:min(len(lines), 40)] {
		line = strings.ToLower(strings.TrimLeft(line, " \t"))
		if strings.HasPrefix(line, "final-recipient:") || strings.HasPrefix(line, "did not reach the following") {
			return true
		}
	}
	return false
}

// startsOriginal reports whether a message without any introduction begins at
// line i: a header with a trace of its way, or three of the fields that every
// mail has.
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

// mailField returns the name of a field that messages have and a server's
// words hardly begin with, in lower case; "" for any other line.
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
	if strings.HasPrefix(name, "x-") && !strings.HasPrefix(name, "x-postfix-") { // those are of a status
		return name
	}
	return ""
}
