// Package dropin serves the APIs of other products, so that a program can move to
// Postroom by changing an address and a key. Each vendor has a folder; removing it and
// its line in vendors removes the vendor.
package dropin

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/postroom/postroom/internal/dropin/mailosaur"
	"github.com/postroom/postroom/internal/dropin/mailpit"
	"github.com/postroom/postroom/internal/dropin/postmark"
	"github.com/postroom/postroom/internal/dropin/resend"
	"github.com/postroom/postroom/internal/dropin/sendgrid"
	"github.com/postroom/postroom/internal/dropin/vendorapi"
	"github.com/postroom/postroom/internal/httpapi"
)

var vendors = []vendorapi.Vendor{
	mailosaur.Vendor,
	mailpit.Vendor,
	postmark.Vendor,
	resend.Vendor,
	sendgrid.Vendor,
}

// All returns the names of all vendors, for `postroom dev`.
func All() []string { return names(true) }

func names(dev bool) []string {
	var all []string
	for _, v := range vendors {
		if dev || !v.Dev {
			all = append(all, v.Name)
		}
	}
	return all
}

// Parse reads the value of the setting, names separated by commas.
func Parse(list string) ([]string, error) {
	var all []string
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		if !slices.Contains(names(false), name) {
			why := "no such API"
			if slices.Contains(All(), name) {
				why = "only `postroom dev` has this API"
			}
			return nil, fmt.Errorf("%q: %s; there are %s", name, why, strings.Join(names(false), ", "))
		}
		all = append(all, name)
	}
	return all, nil
}

// Config configures the handler.
type Config struct {
	// Names are the vendors to serve.
	Names []string
	// API is what the vendors call. Its BaseURL is that of the server.
	API vendorapi.API
	// Front puts the HTTP layer before an API, as in httpapi.Chain.
	Front func(key func(*http.Request) string, refuse func(http.ResponseWriter, *httpapi.Error), next http.Handler) http.Handler
}

// Handler returns a handler that serves the APIs below their prefixes, and passes all other
// requests to next.
func Handler(cfg Config, next http.Handler) http.Handler {
	fronts := map[string]http.Handler{}
	for _, v := range vendors {
		if !slices.Contains(cfg.Names, v.Name) {
			continue
		}
		api := cfg.API
		api.BaseURL = strings.TrimSuffix(api.BaseURL, "/") + "/" + v.Name
		fronts[v.Name] = cfg.Front(vendorapi.Key, v.WriteError, http.StripPrefix("/"+v.Name, v.Handler(api)))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h := fronts[vendorOf(r)]; h != nil {
			h.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// vendorOf returns the first segment of the path if there are more.
func vendorOf(r *http.Request) string {
	name, _, more := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if !more {
		return ""
	}
	return name
}

// NeedsKey reports whether a request is for the API of a vendor and has no key that begins
// with prefix. It is for development: programs come with a key of the vendor, or with none.
func NeedsKey(r *http.Request, prefix string) bool {
	return slices.Contains(All(), vendorOf(r)) && !strings.HasPrefix(vendorapi.Key(r), prefix)
}

// Event converts the body of one of our events for a webhook endpoint that the API of a
// vendor made, as webhook.Config.Shape describes.
func Event(format string, body []byte) (shaped []byte, prefix string, err error) {
	i := slices.IndexFunc(vendors, func(v vendorapi.Vendor) bool { return v.Name == format && v.Event != nil })
	if i < 0 { // the vendor was removed: the endpoint gets our form
		return body, "Webhook", nil
	}
	return vendors[i].Event(body)
}
