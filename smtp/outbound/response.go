package outbound

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"github.com/postroom/postroom/internal/mail/plaintext"
)

// errGarbled means that the server does not speak SMTP.
var errGarbled = errors.New("the reply is not SMTP")

// Response is a server's reply to a command (RFC 5321 section 4.2).
type Response struct {
	Code  int
	lines []string
}

func (r Response) Positive() bool  { return r.Code/100 == 2 }
func (r Response) Permanent() bool { return r.Code/100 == 5 }

// closing reports whether the server is closing the connection.
func (r Response) closing() bool { return r.Code == 421 || r.Code == 521 }

// String returns the reply on one line: the code, the enhanced code once, and the
// text.
func (r Response) String() string {
	words := make([]string, 0, len(r.lines)+1)
	words = append(words, strconv.Itoa(r.Code))
	var enhanced string
	for i, line := range r.lines {
		first, _, _ := strings.Cut(line, " ")
		switch {
		case i == 0 && isEnhancedCode(first):
			enhanced = first
		case enhanced != "" && first == enhanced:
			line = strings.TrimPrefix(line, enhanced)
		}
		words = append(words, line)
	}
	return printable(strings.Join(words, " "))
}

// ResponseError is a reply that ends the dialog.
type ResponseError struct{ Response }

func (e *ResponseError) Error() string { return "server said: " + e.String() }

// readResponse reads one reply, which may have several lines.
func readResponse(br *bufio.Reader) (Response, error) {
	var r Response
	for range maxResponseLines {
		line, err := br.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			return Response{}, fmt.Errorf("line too long: %w", errGarbled)
		}
		if errors.Is(err, io.EOF) {
			return Response{}, io.ErrUnexpectedEOF
		}
		if err != nil {
			return Response{}, err
		}
		line = bytes.TrimRight(line, "\r\n")
		code, more, err := responseCode(line)
		if err != nil || r.Code != 0 && code != r.Code {
			return Response{}, errGarbled
		}
		r.Code = code
		r.lines = append(r.lines, string(line[min(len(line), 4):]))
		if !more {
			return r, nil
		}
	}
	return Response{}, fmt.Errorf("too many lines: %w", errGarbled)
}

// responseCode parses "250 ...", "250-..." and a bare "250".
func responseCode(line []byte) (code int, more bool, err error) {
	if len(line) < 3 || len(line) > 3 && line[3] != ' ' && line[3] != '-' {
		return 0, false, errGarbled
	}
	code, err = strconv.Atoi(string(line[:3]))
	if err != nil || code < 200 || code > 599 {
		return 0, false, errGarbled
	}
	return code, len(line) > 3 && line[3] == '-', nil
}

// isEnhancedCode reports whether s is an enhanced status code such as 5.1.1 (RFC
// 3463).
func isEnhancedCode(s string) bool {
	parts := strings.Split(s, ".")
	if len(parts) != 3 || len(parts[0]) != 1 || !strings.Contains("245", parts[0]) {
		return false
	}
	for _, p := range parts[1:] {
		if n, err := strconv.Atoi(p); err != nil || n < 0 || n > 999 {
			return false
		}
	}
	return true
}

// printable makes text from a server safe to store and show: valid UTF-8 on one
// line, without control characters, of limited length.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return plaintext.Truncate(strings.Join(strings.Fields(s), " "), maxResponseText)
}
