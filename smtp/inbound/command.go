package inbound

import (
	"bytes"
	"strings"

	"github.com/postroom/postroom/smtp"
)

// command is one line that a client said.
type command struct {
	verb string // in upper case
	args string // without spaces around
}

// parseCommand reads a line with its line end. It returns what is wrong with
// one that cannot be a command.
func parseCommand(line []byte) (command, *smtp.Reply) {
	text, ok := bytes.CutSuffix(line, smtp.CRLF)
	if !ok {
		return command{}, replyCommandEnd
	}
	if bytes.ContainsFunc(text, isControl) {
		return command{}, replyControl
	}
	verb, args, _ := strings.Cut(strings.TrimRight(string(text), " \t"), " ")
	return command{strings.ToUpper(verb), strings.TrimSpace(args)}, nil
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// prefixed takes a word such as "FROM:" off the arguments. Spaces behind it are
// common, though not allowed.
func (c command) prefixed(word string) (rest string, ok bool) {
	if len(c.args) < len(word) || !strings.EqualFold(c.args[:len(word)], word) {
		return "", false
	}
	return strings.TrimLeft(c.args[len(word):], " "), true
}
