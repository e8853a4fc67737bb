package mcp

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/postroom/postroom/gen"
)

// wait is wait_for_email: the operation, with other bounds of the time, which
// tells a client that asked for it that it goes on.
func wait(ctx context.Context, s *server, t *tool, args arguments, req *sdk.CallToolRequest) (map[string]any, error) {
	seconds := waitDefault
	if raw := args["timeout"]; len(raw) > 0 && string(raw) != "null" {
		if json.Unmarshal(raw, &seconds) != nil || seconds < 1 || seconds > waitMost {
			return nil, invalid("timeout must be a whole number from 1 to %d", waitMost)
		}
	}
	args["timeout"] = json.RawMessage(strconv.Itoa(seconds))
	if token := req.Params.GetProgressToken(); token != nil {
		done := s.tellProgress(ctx, req.Session, token, seconds)
		defer done()
	}
	return s.callOperation(ctx, t, args)
}

// tellProgress tells how long a wait has been going on, until done is called;
// nothing is told after that.
func (s *server) tellProgress(ctx context.Context, session *sdk.ServerSession, token any, seconds int) (done func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	start, tick := time.Now(), time.NewTicker(s.progress)
	go func() {
		defer close(ended)
		defer tick.Stop()
		for now := start; ; {
			// Whoever does not get it has gone, and the wait with them.
			_ = session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
				ProgressToken: token, Progress: now.Sub(start).Seconds(), Total: float64(seconds), Message: "waiting for a message",
			})
			select {
			case <-ctx.Done():
				return
			case now = <-tick.C:
			}
		}
	}()
	return func() { cancel(); <-ended }
}

// listDrafts is list_drafts: there is one list of all drafts, and one of each
// inbox.
func listDrafts(ctx context.Context, s *server, t *tool, args arguments, _ *sdk.CallToolRequest) (map[string]any, error) {
	if raw := args["inbox_id"]; len(raw) == 0 || string(raw) == "null" {
		delete(args, "inbox_id")
		return s.callOperation(ctx, t, args)
	}
	return s.api.call(ctx, s.also[gen.ListInboxDraftsOperation], args, "", false)
}
