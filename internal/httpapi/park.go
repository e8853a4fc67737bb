package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpserver"
)

// Pause describes what a request waits for. See httpserver.Pause.
type Pause struct {
	Left   time.Duration
	OnWake func(continueNow func())
	// Ended is called if the request does not continue.
	Ended func()
	// State is what Resumed returns when the request continues.
	State any
}

// errParked is what a handler returns for a request that does not respond yet.
var errParked = errors.New("the request is parked")

// ErrStopping ends a wait when the service shuts down.
var ErrStopping = &Error{
	Status: http.StatusServiceUnavailable, Code: gen.ErrorCodeUnavailable, RetryAfter: 1,
	Message: "the server is shutting down: send the request again",
}

// CanPark reports whether the request can wait without its goroutine and buffers. A
// call from within this process cannot, and neither can a request over TLS.
func CanPark(ctx context.Context) bool {
	info := infoOf(ctx)
	return info.w != nil && info.r != nil && httpserver.CanPark(info.w, info.r)
}

// Park pauses a request for which CanPark is true. The handler must return the error.
// When the pause ends, the request runs again, without counting again: the key and the
// parameters are checked, and the handler finds its state with Resumed.
func Park(ctx context.Context, p Pause) error {
	info := infoOf(ctx)
	info.pause, info.sw.muted = &p, true
	return errParked
}

// Resumed returns the state of a request that was paused, or nil.
func Resumed(ctx context.Context) any {
	again := infoOf(ctx).resumed
	if again == nil {
		return nil
	}
	again.ended = nil // the handler's concern again
	return again.state
}

// resumed is what a request that continues has from before its pause.
type resumed struct {
	id    string
	start time.Time
	rate  [len(rateHeaders)]string
	state any
	ended func() // of the pause; nil after the handler has taken the state
}

// drop ends a request that continues, unless it reached its handler.
func (r *resumed) drop() {
	if r != nil && r.ended != nil {
		r.ended()
	}
}

// resume takes over what the request had before its pause.
func (i *requestInfo) resume(again *resumed) {
	i.id, i.resumed = again.id, again
	for n, name := range rateHeaders {
		if value := again.rate[n]; value != "" {
			i.w.Header().Set(name, value)
		}
	}
}

// park parks the connection after the handler has returned.
func (c *Chain) park(ctx context.Context, info *requestInfo) {
	again := &resumed{id: info.id, start: info.start, state: info.pause.State, ended: info.pause.Ended}
	for n, name := range rateHeaders {
		again.rate[n] = info.w.Header().Get(name)
	}
	// What outlives the handler holds neither the request nor its buffers.
	ended, response, start := info.pause.Ended, info.response(), info.start
	err := httpserver.Park(info.w, info.r, httpserver.Pause{
		Left: info.pause.Left, OnWake: info.pause.OnWake, State: again,
		Ended: func(status int) {
			ended()
			if status != 0 {
				c.report(context.Background(), response, start, status)
			}
		},
	})
	if err != nil {
		info.sw.muted = false
		ended()
		c.WriteError(ctx, info.sw, c.Classify(ctx, err))
	}
}
