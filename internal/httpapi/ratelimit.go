package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/netguard"
	"github.com/postroom/postroom/store"
)

// sends lists the operations that also count against Rates.Sends.
var sends = map[gen.OperationName]bool{
	gen.SendMessageOperation: true, gen.ReplyToMessageOperation: true, gen.ReplyToInvitationOperation: true, gen.ForwardMessageOperation: true, gen.SendDraftOperation: true,
}

// limitKey counts a call of k, unless it is counted already.
func (c *Chain) limitKey(ctx context.Context, k store.Key, counted bool, op gen.OperationName) error {
	if infoOf(ctx).rewritten {
		return nil
	}
	if !counted {
		if err := c.takeRate(ctx, store.RateCalls, k.ID, c.rates.Calls); err != nil {
			return err
		}
	}
	if sends[op] {
		return c.takeRate(ctx, store.RateSends, k.ID, c.rates.Sends)
	}
	return nil
}

// LimitAddress counts a call against the client's address. A call from within this
// process counts against its caller instead.
func (c *Chain) LimitAddress(ctx context.Context) error {
	if _, local := localOf(ctx); local {
		return nil
	}
	return c.takeRate(ctx, store.RateAddress, netguard.ClientNetwork(infoOf(ctx).IP).String(), c.rates.Refused)
}

// takeRate counts a call. The headers of the response show the tightest limit.
func (c *Chain) takeRate(ctx context.Context, kind store.RateKind, whose string, limit int) error {
	if !c.cfg.RateLimits {
		return nil
	}
	r, err := c.store.TakeRate(ctx, kind, whose, limit)
	if err != nil {
		return err
	}
	ends := secondsUntil(r.Ends, c.now())
	if w := infoOf(ctx).w; w != nil {
		h := w.Header()
		if left, err := strconv.Atoi(h.Get("RateLimit-Remaining")); err != nil || r.Left < left || r.Refused {
			h.Set("RateLimit-Limit", strconv.Itoa(limit))
			h.Set("RateLimit-Remaining", strconv.Itoa(r.Left))
			h.Set("RateLimit-Reset", strconv.Itoa(ends))
		}
	}
	if r.Refused {
		return &Error{
			Status: http.StatusTooManyRequests, Code: gen.ErrorCodeRateLimited, RetryAfter: ends,
			Message: fmt.Sprintf("more than %d requests in 60 seconds", limit),
		}
	}
	return nil
}
