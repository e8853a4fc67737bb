package mcp

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
)

// wait implements wait_for_email: the operation with a shorter timeout, and with
// progress notifications if the client asked for them.
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
	return callOperation(ctx, s, t, args, req)
}

// waitForCode implements wait_for_code: a wait that returns only the code. The
// server remembers which codes it returned to the caller.
func waitForCode(ctx context.Context, s *server, t *tool, args arguments, req *sdk.CallToolRequest) (map[string]any, error) {
	args["view"] = json.RawMessage(`"code"`)
	ctx = httpapi.WithSpecial(ctx, func(s *httpapi.Special) { s.EachCodeOnce = true })
	return wait(ctx, s, t, args, req)
}

// tellProgress sends progress notifications until done is called.
func (s *server) tellProgress(ctx context.Context, session *sdk.ServerSession, token any, seconds int) (done func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	start, tick := time.Now(), time.NewTicker(s.progress)
	go func() {
		defer close(ended)
		defer tick.Stop()
		for now := start; ; {
			// If the notification fails, the client has disconnected and the wait
			// ends too.
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

// listDrafts implements list_drafts, which lists the drafts of one inbox or of
// all.
func listDrafts(ctx context.Context, s *server, t *tool, args arguments, req *sdk.CallToolRequest) (map[string]any, error) {
	if raw := args["inbox_id"]; len(raw) == 0 || string(raw) == "null" {
		delete(args, "inbox_id")
		return callOperation(ctx, s, t, args, req)
	}
	return s.api.call(ctx, s.also[gen.ListInboxDraftsOperation], args, "", false)
}
