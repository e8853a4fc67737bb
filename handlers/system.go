package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
)

// healthTimeout limits the database check of GetHealth.
const healthTimeout = 2 * time.Second

// GetHealth implements GET /health.
func (a *API) GetHealth(ctx context.Context) (gen.GetHealthRes, error) {
	h := gen.Health{Status: "ok", Version: a.cfg.Version, Database: gen.HealthDatabase{Engine: a.store.Engine(), State: "ok"}}
	h.Work = gen.HealthWork{State: "ok", Reasons: []string{}, ClockAheadSeconds: a.store.ClockAhead().Seconds()}
	if why := a.store.Paused(); why != nil {
		h.Work.State, h.Work.Reasons = "paused", why
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	if err := a.store.Healthy(ctx); err != nil {
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

// documentedServer is the server URL in the contract.
const documentedServer = `"url": "http://127.0.0.1:8080"`

// contractOf returns the contract with base as its server URL.
func contractOf(base *url.URL) ([]byte, error) {
	if base == nil {
		return gen.OpenAPI(), nil
	}
	address, err := json.Marshal(strings.TrimSuffix(base.String(), "/"))
	if err != nil {
		return nil, err
	}
	if !bytes.Contains(gen.OpenAPI(), []byte(documentedServer)) {
		return nil, errors.New("the contract states no server")
	}
	return bytes.Replace(gen.OpenAPI(), []byte(documentedServer), append([]byte(`"url": `), address...), 1), nil
}

// GetOpenapi implements GET /openapi.json.
func (a *API) GetOpenapi(ctx context.Context, w http.ResponseWriter) error {
	a.contract.ServeHTTP(w, httpapi.Request(ctx))
	return nil
}
