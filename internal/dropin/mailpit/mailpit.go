// Package mailpit is the API of Mailpit, a mail catcher for development and tests.
package mailpit

import (
	"net/http"

	"github.com/postroom/postroom/internal/dropin/vendorapi"
	"github.com/postroom/postroom/internal/httpapi"
)

// Vendor is the API.
var Vendor = vendorapi.Vendor{Name: "mailpit", New: newHandler, Refuse: refuse}

type server struct{ vendorapi.API }

func newHandler(api vendorapi.API) http.Handler {
	s, m := server{api}, api.NewMux(refuse)
	m.Handle("GET /api/v1/info", s.info)
	return m
}

// refuse writes an error as Mailpit does.
func refuse(w http.ResponseWriter, e *httpapi.Error) {
	_ = vendorapi.JSON(w, e.Status, map[string]string{"Error": e.Message}) // strings always encode
}

func (s server) info(w http.ResponseWriter, _ *http.Request) error {
	return vendorapi.JSON(w, http.StatusOK, map[string]any{"Version": "Postroom " + s.Version})
}
