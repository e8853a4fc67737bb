// Package reply separates the new text of a reply from quoted text, and
// compares the subjects of a thread.
package reply

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/postroom/postroom/internal/cpubudget"
	"github.com/postroom/postroom/internal/mail/plaintext"
)

// Text returns the new part of a reply: the text without the quoted message and
// the signature. It keeps new lines below or between quoted lines. A text
// without a quotation loses only its signature. A forwarded message without a
// note above it is kept.
//
// When the budget runs out, the rest counts as unquoted. A nil budget sets no
// limit.
func Text(text string, budget *cpubudget.Budget) string {
	r := replyReader{lines: strings.Split(text, "\n"), mayAsk: mayAskAbove(text), budget: budget}
	for i, line := range r.lines {
		if line != "" && (line[len(line)-1] <= ' ' || line[len(line)-1] >= utf8.RuneSelf) {
			r.lines[i] = strings.TrimRight(line, " \t\r\u00a0")
		}
	}
	start, end, kind := r.findQuote()
	var kept []string
	switch above := cutSignature(dropQuoted(r.lines[:start])); {
	case kind == noQuote:
		kept = above
	case !isBlank(above):
		kept = append(trimLines(above), r.interleaved(end, isGreeting(above))...)
	case kind == forwardQuote:
		kept = r.lines
	default:
		kept = cutSignature(dropQuoted(r.lines[end:]))
	}
	return strings.Join(trimLines(kept), "\n")
}

// replyReader holds the lines of a message without trailing white space.
type replyReader struct {
	lines  []string
	mayAsk bool // the text may have a line that asks to reply above it
	budget *cpubudget.Budget
}

// quoteKind is how a message introduces the quoted message.
type quoteKind int

const (
	noQuote      quoteKind = iota
	replyQuote             // "On ... wrote:", "-----Original Message-----"
	forwardQuote           // "---------- Forwarded message ---------"
)

// findQuote returns the lines that introduce the quoted message. If there are
// none, start and end are the number of lines.
func (r *replyReader) findQuote() (start, end int, kind quoteKind) {
	for i, line := range r.lines {
		if line == "" || isQuoted(line) {
			if isArrowed(line) {
				return i, i + 1, replyQuote
			}
			continue
		}
		if r.budget.Spent() {
			break
		}
		if r.mayAsk && asksAbove(line) {
			return i, i + 1, replyQuote
		}
		if kind := separatorKind(line); kind != noQuote {
			return i, i + 1, kind
		}
		if isDashed(line) && i+1 < len(r.lines) && r.headerBlock(i+1) > 0 {
			return i, i + 1, replyQuote
		}
		if n := r.attribution(i); n > 0 {
			return i, i + n, replyQuote
		}
		if n := r.headerBlock(i); n > 0 {
			return i, i + n, replyQuote
		}
	}
	return len(r.lines), len(r.lines), noQuote
}

// shortQuote is the length of a quoted line in bytes below which the next line is not
// its wrapped end, if it ends a sentence.
const shortQuote = 60

// endsSentence reports whether a line ends with a full stop, or a mark like it.
func endsSentence(line string) bool {
	return slices.ContainsFunc([]string{".", "?", "!", "。", "？"}, func(mark string) bool { return strings.HasSuffix(line, mark) })
}

// interleaved returns the paragraphs written between the quoted lines from line
// from on. Text after the last quoted line counts only if other paragraphs were
// found, or if below is set; otherwise it is a footer.
func (r *replyReader) interleaved(from int, below bool) []string {
	last := len(r.lines)
	for last > from && !isQuoted(r.lines[last-1]) {
		last--
	}
	var kept []string
	seenQuote, afterBlank, inReply := false, false, false
	for i, line := range r.lines[from:] {
		if from+i >= last && (kept == nil && !below || isSignature(line) || isDeviceLine(line)) {
			break
		}
		switch {
		case isQuoted(line):
			seenQuote, inReply = true, false
		case line == "":
		case seenQuote && (afterBlank || inReply):
			if !inReply || afterBlank {
				kept = append(kept, "")
			}
			kept = append(kept, line)
			inReply = true
		}
		afterBlank = line == "" || isQuoteMark(line) || isQuoted(line) && len(line) < shortQuote && endsSentence(line)
	}
	return kept
}

// isQuoted reports whether a line is quoted. A ">:" alone ends a wrapped "On
// ... <ann@example.com>:".
func isQuoted(line string) bool {
	line = strings.TrimLeft(line, " ")
	return strings.HasPrefix(line, ">") && line != ">:"
}

// isArrowed reports whether a line has arrows at both ends, as GroupWise writes
// above a quoted message: ">>> Ann <ann@example.com> 13.11.2026 09:14 >>>".
func isArrowed(line string) bool {
	return strings.HasPrefix(line, ">>> ") && strings.HasSuffix(line, " >>>") && len(line) <= maxAttribution && hasDate(line)
}

// isQuoteMark reports whether a line is quoted and empty.
func isQuoteMark(line string) bool {
	return line != "" && strings.Trim(line, "> ") == ""
}

// dropQuoted returns the lines that are not quoted, and the examples of the author.
func dropQuoted(lines []string) []string {
	kept, dropped, example, last := make([]string, 0, len(lines)), false, false, ""
	for i, line := range lines {
		quoted := isQuoted(line)
		if quoted && (i == 0 || !isQuoted(lines[i-1])) {
			example = introducesExample(last)
		}
		if line != "" {
			last = line
		}
		switch {
		case quoted && example:
		case quoted:
			dropped = true
			continue
		case line == "" && dropped && (len(kept) == 0 || kept[len(kept)-1] == ""):
			continue // merge the empty lines around a quotation
		}
		kept, dropped = append(kept, line), dropped && line == ""
	}
	return kept
}

// introducesExample reports whether the line above a quotation says that the author
// quotes something else than the message that they answer, as in "The log says:".
func introducesExample(line string) bool {
	if !plaintext.EndsWithColon(line) || isQuoted(line) || len(line) > maxAttribution {
		return false
	}
	low := strings.ToLower(line)
	return !hasDate(low) && !endsWithWrote(low) && !hasAny(low, addressWords)
}

// cutSignature returns the lines before the signature.
func cutSignature(lines []string) []string {
	for i, line := range lines {
		if isSignature(line) || i > 0 && lines[i-1] == "" && isDeviceLine(line) {
			return lines[:i]
		}
	}
	return lines
}

// isGreeting reports whether lines are a salutation alone, as in "Hi Ann,". The
// reply then follows the quoted message.
func isGreeting(lines []string) bool {
	lines = trimLines(lines)
	return len(lines) == 1 && len(lines[0]) <= 60 && !moreWords(lines[0], 4) &&
		(strings.HasSuffix(lines[0], ",") || strings.HasSuffix(lines[0], "，"))
}

func isBlank(lines []string) bool {
	return !slices.ContainsFunc(lines, func(line string) bool { return line != "" && !isRule(line) })
}

// trimLines removes empty lines at both ends, and rules at the end.
func trimLines(lines []string) []string {
	for len(lines) > 0 && lines[0] == "" {
		lines = lines[1:]
	}
	for len(lines) > 0 && (lines[len(lines)-1] == "" || isRule(lines[len(lines)-1])) {
		lines = lines[:len(lines)-1]
	}
	return lines
}
