package inbound

import (
	"time"

	"github.com/postroom/postroom/smtp"
)

// What a client may do without getting a mail accepted. The figures are those
// of Postfix: smtpd_junk_command_limit, smtpd_hard_error_limit,
// smtpd_soft_error_limit and smtpd_error_sleep_time.
const (
	// maxJunk is the command that ends the session; recipients, and chunks of
	// data, do not count.
	maxJunk = 100
	// maxErrors is the error that does, and slowErrors the first one whose answer
	// takes errorPause.
	maxErrors  = 20
	slowErrors = 10
	errorPause = time.Second
	// maxOverRcpts is how many recipients beyond the limit are answered. A client
	// that sends many in one go has not seen yet that there are too many (RFC 5321
	// section 4.5.3.1.10).
	maxOverRcpts = 100
)

// commandCounts counts what a client did since its last mail that was accepted.
type commandCounts struct {
	junk, rcptCommands, errors int
}

// countCommand counts cmd, and says what there is to say when it is one too
// many.
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
