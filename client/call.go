package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

const (
	defaultTries  = 4
	defaultWithin = 90 * time.Second
	// firstPause is the pause before the second attempt, unless the server sets
	// it. Each further pause is twice as long, up to maxPause.
	firstPause = 500 * time.Millisecond
	maxPause   = 20 * time.Second
)

// caller sends requests and retries them where that is safe. It implements the
// HTTP client of the generated client.
type caller struct {
	http   *http.Client
	base   *url.URL
	agent  string
	tries  int
	within time.Duration

	now   func() time.Time
	sleep func(context.Context, time.Duration) error
}

func newCaller(base *url.URL) *caller {
	return &caller{
		http: &http.Client{Transport: newTransport()}, base: base, agent: "postroom-go",
		tries: defaultTries, within: defaultWithin, now: time.Now, sleep: sleep,
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Do sends the request. It returns an *Error if the server refuses it. The
// package comment says which requests it retries.
func (c *caller) Do(r *http.Request) (*http.Response, error) {
	path := strings.TrimPrefix(r.URL.EscapedPath(), c.base.EscapedPath())
	r.Header.Set("User-Agent", c.agent)
	if r.Header.Get(idempotencyHeader) == "" && takesIdempotencyKey(r.Method, path) {
		r.Header.Set(idempotencyHeader, newIdempotencyKey())
	}
	start := c.now()
	for try := 1; ; try++ {
		res, err := c.once(r, path)
		if err == nil {
			return res, nil
		}
		pause, again := pauseAfter(err, try)
		if !again || !repeatable(r) || try >= c.tries || !c.fits(r.Context(), start, pause) {
			return nil, err
		}
		if stopped := c.sleep(r.Context(), pause); stopped != nil {
			return nil, fmt.Errorf("%w while waiting to try again after: %w", stopped, err)
		}
		if r, err = fresh(r); err != nil {
			return nil, err
		}
	}
}

// once makes one attempt. It reads a JSON response completely, so that a
// truncated one is an error.
func (c *caller) once(r *http.Request, path string) (*http.Response, error) {
	res, err := c.http.Do(r)
	if err != nil {
		return nil, err
	}
	if !expected(res.StatusCode, path) {
		defer func() { _ = res.Body.Close() }() // only the bytes read matter
		return nil, errorOf(res, c.now())
	}
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
		return res, nil
	}
	body, err := io.ReadAll(res.Body)
	_ = res.Body.Close() // no longer needed
	if err != nil {
		return nil, &brokenOffError{err}
	}
	res.Body = io.NopCloser(bytes.NewReader(body))
	return res, nil
}

// expected reports whether a status is not an error. The raw form of a message
// is a redirect, and 503 is a regular response of the health check.
func expected(status int, path string) bool {
	return status < 300 || status == http.StatusFound && strings.HasSuffix(path, "/raw") ||
		status == http.StatusServiceUnavailable && path == "/health"
}

// brokenOffError is the error for a truncated response.
type brokenOffError struct{ cause error }

func (e *brokenOffError) Error() string {
	return fmt.Sprintf("postroom: the response ended early: %v", e.cause)
}
func (e *brokenOffError) Unwrap() error { return e.cause }

// fits reports whether the next attempt is within the time limits.
func (c *caller) fits(ctx context.Context, start time.Time, pause time.Duration) bool {
	within := c.within
	if w, ok := ctx.Value(withinKey{}).(time.Duration); ok {
		within = min(within, w)
	}
	next := c.now().Add(pause)
	deadline, ok := ctx.Deadline()
	return !next.After(start.Add(within)) && (!ok || next.Before(deadline))
}

// withinKey is the context key of a limit shorter than the client's.
type withinKey struct{}

// repeatable reports whether it is safe to send the request twice.
func repeatable(r *http.Request) bool {
	if r.Body != nil && r.Body != http.NoBody && r.GetBody == nil {
		return false
	}
	return slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodPatch, http.MethodDelete}, r.Method) ||
		r.Header.Get(idempotencyHeader) != ""
}

// fresh returns a copy of the request with its body at the start.
func fresh(r *http.Request) (*http.Request, error) {
	again := r.Clone(r.Context())
	if r.GetBody == nil {
		return again, nil
	}
	body, err := r.GetBody()
	again.Body = body
	return again, err
}

// pauseAfter reports whether to retry after err, and the pause before it.
func pauseAfter(err error, try int) (time.Duration, bool) {
	backoff := min(maxPause, firstPause<<min(try-1, 10))
	backoff = backoff/2 + rand.N(backoff/2+1) //nolint:gosec // clients are not to come back together; nothing is secret
	if refused, ok := errors.AsType[*Error](err); ok {
		if refused.RetryAfter > 0 {
			backoff = refused.RetryAfter
		}
		return backoff, refused.Temporary()
	}
	return backoff, lost(err)
}

// lost reports whether the error is due to the network or a stopped server, so
// that the response may be missing, and not due to the request itself.
func lost(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	if name, ok := errors.AsType[*net.DNSError](err); ok && name.IsNotFound {
		return false
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Op == "dial" || op.Op == "read" || op.Op == "write"
	}
	if _, ok := errors.AsType[*brokenOffError](err); ok {
		return true
	}
	timeout, ok := errors.AsType[net.Error](err)
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || ok && timeout.Timeout()
}
