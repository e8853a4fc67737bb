package inbound

import (
	"bytes"
	"strings"

	"github.com/postroom/postroom/smtp"
)

// command is one command line of a client.
type command struct {
	verb string // in upper case
	args string // without surrounding spaces
}

// parseCommand parses a line with its line end. It returns a reply if the line is
// malformed.
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

// prefixed removes a prefix such as "FROM:" from the arguments. Spaces after it
// are common, though not allowed.
func (c command) prefixed(word string) (rest string, ok bool) {
	if len(c.args) < len(word) || !strings.EqualFold(c.args[:len(word)], word) {
		return "", false
	}
	return strings.TrimLeft(c.args[len(word):], " "), true
}

// commandCounts counts a client's commands since its last accepted message.
type commandCounts struct {
	junk, rcptCommands, errors int
}

// countCommand counts cmd, and returns a reply if a limit is exceeded.
func (g *guard) countCommand(cmd command) *smtp.Reply {
	switch cmd.verb {
	case "RCPT":
		g.rcptCommands++
		if g.rcptCommands > g.server.cfg.MaxRecipients+maxOverRcpts {
			return replyRcptFlood
		}
		return nil
	case "BDAT":
		if g.session.rcpts > 0 {
			if size, _, ok := chunkSize(cmd.args); ok && size > 0 {
				return nil
			}
		}
	}
	if g.junk++; g.junk >= maxJunk {
		return replyJunk
	}
	return nil
}
