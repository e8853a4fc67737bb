package main

import (
	"log/slog"
	"net/http"
	"sync"
)

// whenAsked returns a handler that is built on the first request. The MCP tools
// need memory that many installations can save.
func whenAsked(log *slog.Logger, build func() (http.Handler, error)) http.Handler {
	made := sync.OnceValues(build)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, err := made()
		if err != nil {
			log.ErrorContext(r.Context(), "create handler failed", "path", r.URL.Path, "error", err)
			http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
			return
		}
		h.ServeHTTP(w, r)
	})
}
