package inbound

import (
	"github.com/postroom/postroom/smtp"
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
