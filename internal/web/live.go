package web

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/work"
)

// sessionLook is how often a stream checks that its session still exists.
const sessionLook = 5 * time.Second

// livePath returns the URL of the events of these types, for one inbox or, if
// inbox is empty, for all.
func livePath(inbox string, types ...gen.EventType) string {
	names := textsOf(types, func(t gen.EventType) string { return string(t) })
	q := url.Values{"events": {strings.Join(names, ",")}}
	if inbox != "" {
		q.Set("inbox_id", inbox)
	}
	return "/live?" + q.Encode()
}

// live passes the API's event stream to a page until the session ends. If the API
// refuses, for example because the user has too many streams open, the response
// is 204: the browser does not reconnect, and the page stays unchanged.
func (d *Dashboard) live(p *page) error {
	ctx, cancel := context.WithCancel(p.ctx())
	var looking sync.WaitGroup
	looking.Go(func() { p.watchSession(ctx, cancel) })
	defer looking.Wait()
	defer cancel()
	_ = http.NewResponseController(p.w).SetReadDeadline(time.Time{}) // a read deadline would end the stream; test writers do not support one
	r := p.r.Clone(ctx)
	r.URL.Path = "/v1/events/stream"
	r.URL.RawPath, r.RequestURI = "", r.URL.RequestURI()
	r.Header.Del("Cookie")
	r.Header.Set("Authorization", "Bearer local") // the caller is in the context
	refused := func(status int) bool { return status >= http.StatusBadRequest }
	d.cfg.API.ServeHTTP(&replacing{ResponseWriter: p.w, drops: refused, instead: http.StatusNoContent}, r)
	return nil
}

// watchSession calls end when the session has ended.
func (p *page) watchSession(ctx context.Context, end func()) {
	hash := p.session()
	work.Every(ctx, sessionLook, func(ctx context.Context) {
		if _, err := p.d.store.SessionUser(ctx, hash); err != nil {
			end()
		}
	})
}
