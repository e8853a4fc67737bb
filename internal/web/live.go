package web

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/postroom/postroom/gen"
)

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
// refuses, for example because the user has too many streams open, the browser does not
// reconnect, and the page stays unchanged.
func (d *Dashboard) live(p *page) error {
	_ = http.NewResponseController(p.w).SetReadDeadline(time.Time{}) // a read deadline would end the stream; test writers do not support one
	r := p.r.Clone(p.ctx())
	r.URL.Path = "/v1/events/stream"
	r.URL.RawPath, r.RequestURI = "", r.URL.RequestURI()
	r.Header.Del("Cookie")
	r.Header.Set("Authorization", "Bearer local") // the caller is in the context
	d.cfg.API.ServeHTTP(p.w, r)
	return nil
}
