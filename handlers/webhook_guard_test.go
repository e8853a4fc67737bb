package handlers_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/postroom/postroom/handlers"
	"github.com/postroom/postroom/internal/netguard"
)

// hostTable resolves names from a table.
type hostTable struct {
	*net.Resolver
	addrs map[string]string
}

func (h hostTable) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	if addr, ok := h.addrs[host]; ok {
		return []netip.Addr{netip.MustParseAddr(addr)}, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

// URLs that lead to a private address are refused on create and update, with an
// error that names no address (W1).
func TestPrivateWebhookTargetsAreRefused(t *testing.T) {
	text, err := os.ReadFile("../internal/netguard/testdata/refused.txt")
	must(t, err)
	targets := strings.Fields(string(text))
	guard := netguard.New(netguard.Config{Own: []netip.Addr{netip.MustParseAddr("9.9.9.9")}})
	names := hostTable{addrs: map[string]string{"hooks.example": "1.1.1.1", "private.example": "10.0.0.1", "loop6.example": "::1", "own.example": "9.9.9.9"}}
	s := serve(t, func(cfg *handlers.Config) { cfg.WebhookTargets = netguard.NewTargets(guard, names) })
	path := "/v1/webhooks/" + s.newWebhook(t, ``).str(t, "id")
	refused := 0
	for _, target := range targets {
		body, err := json.Marshal(map[string]string{"url": target})
		must(t, err)
		for method, at := range map[string]string{http.MethodPost: "/v1/webhooks", http.MethodPatch: path} {
			res := s.do(t, method, at, string(body), broken).want(t, http.StatusBadRequest)
			if got := res.str(t, "error.code") + " " + res.str(t, "error.param"); got != "invalid_request url" {
				t.Errorf("%s %s: %s", method, target, res.body)
			}
			if strings.Contains(string(res.body), "10.0.0.1") {
				t.Errorf("%s %s: the response contains an address: %s", method, target, res.body)
			}
			refused++
		}
	}
	if refused != 2*64 {
		t.Errorf("%d calls were refused", refused)
	}
	s.do(t, http.MethodGet, path, "").want(t, http.StatusOK).wantAt(t, "url", `"https://hooks.example/mail"`)
}
