package smtp

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
)

// maxCommands is how many commands a client may give without getting a mail
// accepted, recipients and chunks of data not counted.
const maxCommands = 100

// commandWatch counts what a client asks for without getting a mail accepted.
type commandWatch struct {
	commands int
	rcpts    int
}

// nextCommand waits for a command line and hands it to go-smtp, or deals with
// it itself.
func (w *wire) nextCommand() {
	line, err := w.readLine()
	if err == nil && w.isStopping() {
		err = errStopping
	}
	switch {
	case errors.Is(err, errStopping):
		w.hangUp(421, "4.3.2", "Shutting down, try again later")
	case errors.Is(err, errLineTooLong):
		w.unread = true
		w.hangUp(500, "5.5.2", "Line too long, closing connection")
	case err != nil:
		w.lost(err)
	case !w.mayGoOn(line):
		w.hangUp(421, "4.7.0", "Too many commands, closing connection")
	case !bytes.HasSuffix(line, []byte("\r\n")):
		w.say(500, "5.5.2", "Lines must end with <CR><LF>")
	case bytes.ContainsFunc(line[:len(line)-2], isControl):
		w.say(501, "5.5.2", "Control characters are not allowed")
	default:
		w.dispatch(line)
	}
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// dispatch looks at the commands that change how the connection is read.
func (w *wire) dispatch(line []byte) {
	switch verb(line) {
	case "STAR": // STARTTLS
		if w.server.cfg.TLS == nil || w.conn != w.raw {
			break
		}
		w.startTLS(line)
		return
	case "BDAT":
		w.expectChunk(line)
	}
	w.handed = line
}

// verb returns the first four letters of a command, in upper case.
func verb(line []byte) string { return strings.ToUpper(string(line[:min(4, len(line))])) }

// mayGoOn counts the command and reports whether there were not too many.
func (w *wire) mayGoOn(line []byte) bool {
	switch verb(line) {
	case "RCPT":
		w.watch.rcpts++
		return w.watch.rcpts <= w.server.cfg.MaxRecipients+maxCommands
	case "BDAT":
		if size, _, ok := chunkSize(line); ok && size > 0 && w.open {
			return true
		}
	}
	w.watch.commands++
	return w.watch.commands <= maxCommands
}

// startTLS answers STARTTLS and ends the session in clear.
func (w *wire) startTLS(line []byte) {
	if !strings.EqualFold(strings.TrimSpace(string(line)), "STARTTLS") {
		w.say(501, "5.5.4", "STARTTLS takes no parameters")
		return
	}
	w.say(220, "2.0.0", "Ready to start TLS")
	w.upgrade = true
	w.ended.Store(true)
}

// expectChunk prepares for the data behind a BDAT command (RFC 3030), which
// comes whether the command is accepted or not. The connection ends with a
// command whose chunk cannot be told from the commands after it, and with one
// that is too large to read over.
func (w *wire) expectChunk(line []byte) {
	size, last, ok := chunkSize(line)
	w.chunk, w.chunks = size, w.chunks+size
	if !ok || w.chunks > w.server.cfg.MaxSize {
		w.unread = true
		w.ended.Store(true) // after go-smtp has answered the line
	}
	if last {
		w.chunks = 0
	}
}

// chunkSize reads the arguments of BDAT as go-smtp does.
func chunkSize(line []byte) (size int64, last, ok bool) {
	args := strings.Fields(string(line[min(4, len(line)):]))
	if len(args) == 0 || len(args) > 2 {
		return 0, false, false
	}
	if last = len(args) == 2; last && !strings.EqualFold(args[1], "LAST") {
		return 0, false, false
	}
	n, err := strconv.ParseUint(args[0], 10, 32)
	if err != nil {
		return 0, false, false
	}
	return int64(n), last, true
}
