package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/netguard"
	"github.com/postroom/postroom/store"
)

// sends lists the operations that also count against Rates.Sends.
var sends = map[gen.OperationName]bool{
	gen.SendMessageOperation: true, gen.ReplyToMessageOperation: true, gen.ForwardMessageOperation: true, gen.SendDraftOperation: true,
}

// limitKey counts a call of k, unless it is counted already, and sets the rate
// limit headers for the tighter limit.
func (c *Chain) limitKey(ctx context.Context, k store.Key, counted bool, op gen.OperationName) error {
	if !c.cfg.RateLimits || infoOf(ctx).rewritten {
		return nil
	}
	limit, rate := 0, store.Rate{}
	take := func(kind store.RateKind, of int) error {
		r, err := c.store.TakeRate(ctx, kind, k.ID, of)
		if limit == 0 || r.Refused || r.Left < rate.Left {
			limit, rate = of, r
		}
		return err
	}
	if !counted {
		if err := take(store.RateCalls, c.rates.Calls); err != nil {
			return err
		}
	}
	if !rate.Refused && sends[op] {
		if err := take(store.RateSends, c.rates.Sends); err != nil {
			return err
		}
	}
	if w := infoOf(ctx).w; w != nil && limit != 0 {
		writeRate(w.Header(), limit, rate, c.now())
	}
	if rate.Refused {
		return errTooMany(limit, rate, c.now())
	}
	return nil
}

var rateHeaders = [...]string{"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"}

func writeRate(h http.Header, limit int, r store.Rate, now time.Time) {
	for i, n := range []int{limit, r.Left, secondsUntil(r.Ends, now)} {
		h.Set(rateHeaders[i], strconv.Itoa(n))
	}
}

// LimitAddress counts a call against the client's address and writes what is left
// into the response's headers. A call from within this process counts against its
// caller instead.
func (c *Chain) LimitAddress(ctx context.Context) error {
	if _, local := localOf(ctx); local || !c.cfg.RateLimits {
		return nil
	}
	rate, err := c.store.TakeRate(ctx, store.RateAddress, netguard.ClientNetwork(infoOf(ctx).ip).String(), c.rates.Refused)
	if w := infoOf(ctx).w; w != nil && err == nil {
		writeRate(w.Header(), c.rates.Refused, rate, c.now())
	}
	if err == nil && rate.Refused {
		err = errTooMany(c.rates.Refused, rate, c.now())
	}
	return err
}
