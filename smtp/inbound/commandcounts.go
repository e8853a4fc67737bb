package inbound

import (
	"github.com/postroom/postroom/smtp"
)

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
