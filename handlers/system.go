package handlers

import (
	"context"
	"net/http"
	"time"

	"github.com/postroom/postroom/gen"
)

var _ gen.ProbesHandler = (*API)(nil)

// healthTimeout is how long the database may take to answer.
const healthTimeout = 2 * time.Second

// GetHealth implements GET /health.
func (a *API) GetHealth(ctx context.Context) (gen.GetHealthRes, error) {
	h := gen.Health{Status: "ok", Version: a.cfg.Version, Database: gen.HealthDatabase{Engine: a.store.Engine(), State: "ok"}}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	if err := a.store.Ping(ctx); err != nil {
		h.Status, h.Database.State = "unavailable", "unavailable"
	}
	select {
	case <-a.cfg.Stopping:
		h.Status = "unavailable"
	default:
	}
	if h.Status != "ok" {
		out := gen.GetHealthServiceUnavailable(h)
		return &out, nil
	}
	out := gen.GetHealthOK(h)
	return &out, nil
}

// GetOpenapi implements GET /openapi.json.
func (a *API) GetOpenapi(ctx context.Context, w http.ResponseWriter) error {
	w.Header().Set("Content-Type", "application/json")
	a.contract.Serve(w, infoOf(ctx).r)
	return nil
}
