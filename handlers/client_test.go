package handlers_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/handlers"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// The key in these tests allows only ownAddress. The caller is at otherAddress
// and pretends to be the owner.
const (
	ownAddress   = "203.0.113.7"
	otherAddress = "198.51.100.9"
	proxyAddress = "10.0.0.2"
)

// spoofs are headers, as pairs of name and value, that claim to come from
// ownAddress.
var spoofs = map[string][]string{
	"alone":                  {"X-Forwarded-For", ownAddress},
	"left-most":              {"X-Forwarded-For", ownAddress + ", 192.0.2.1, 192.0.2.2"},
	"in two headers":         {"X-Forwarded-For", ownAddress, "X-Forwarded-For", ownAddress},
	"first of two headers":   {"X-Forwarded-For", ownAddress, "X-Forwarded-For", "192.0.2.1"},
	"in lower case":          {"x-forwarded-for", ownAddress},
	"mapped into IPv6":       {"X-Forwarded-For", "::ffff:" + ownAddress},
	"mapped, in hex":         {"X-Forwarded-For", "::ffff:cb00:7107"},
	"with a port":            {"X-Forwarded-For", ownAddress + ":443"},
	"in brackets":            {"X-Forwarded-For", "[::ffff:" + ownAddress + "]:443"},
	"as a proxy's client":    {"X-Forwarded-For", ownAddress + ", " + proxyAddress},
	"Forwarded":              {"Forwarded", "for=" + ownAddress},
	"Forwarded, with a host": {"Forwarded", `for="` + ownAddress + `:80";proto=https;by=` + proxyAddress},
	"X-Real-IP":              {"X-Real-IP", ownAddress},
	"X-Client-IP":            {"X-Client-IP", ownAddress},
	"True-Client-IP":         {"True-Client-IP", ownAddress},
	"CF-Connecting-IP":       {"CF-Connecting-IP", ownAddress},
	"with spaces":            {"X-Forwarded-For", "  " + ownAddress + "\t,  "},
	"empty entries":          {"X-Forwarded-For", ownAddress + ",,"},
	"no address at the end":  {"X-Forwarded-For", ownAddress + ", unknown"},
	"10 KB":                  {"X-Forwarded-For", strings.Repeat(ownAddress+", ", 700) + ownAddress},
}

// addressed returns a request from the peer with a key and headers.
func addressed(peer, key string, headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/v1/inboxes", nil)
	r.RemoteAddr = netip.AddrPortFrom(netip.MustParseAddr(peer), 40000).String()
	r.Header.Set("Authorization", "Bearer "+key)
	for pair := range slices.Chunk(headers, 2) {
		r.Header.Add(pair[0], pair[1])
	}
	return r
}

func status(h http.Handler, r *http.Request) int {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}

func behindProxies(c *handlers.Config) {
	c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/64")}
}

// ownerKey returns a key of a new account that allows only these addresses.
func ownerKey(t *testing.T, st *store.Store, blocks ...string) string {
	t.Helper()
	name := fmt.Sprintf("owner %d", count.Add(1))
	storetest.Key(t, st, storetest.Account(t, st).Seq, name, ips(blocks...))
	return storetest.Secret(name)
}

// H4: 20 spoofs, each sent directly to the service, which may trust other
// proxies, and through two kinds of proxy: one that appends to the header and
// one that adds another header.
func TestHeadersDoNotChangeTheAddress(t *testing.T) {
	t.Parallel()
	st := storetest.OpenSQLite(t)
	key := ownerKey(t, st, ownAddress+"/32")
	open, trusting := newHandler(t, st), newHandler(t, st, behindProxies)
	for name, headers := range spoofs {
		tries := map[string]*http.Request{"direct": addressed(otherAddress, key, headers...)}
		for name, h := range map[string]http.Handler{"trusting no proxy": open, "trusting proxies": trusting} {
			if got := status(h, tries["direct"].Clone(t.Context())); got != http.StatusForbidden {
				t.Errorf("%s, %s: %d", name, headers, got)
			}
		}
		appended := addressed(proxyAddress, key, headers...)
		line := strings.Join(append(appended.Header.Values("X-Forwarded-For"), otherAddress), ", ")
		appended.Header.Set("X-Forwarded-For", line)
		added := addressed(proxyAddress, key, append(slices.Clip(headers), "X-Forwarded-For", otherAddress)...)
		for _, r := range []*http.Request{appended, added} {
			if got := status(trusting, r); got != http.StatusForbidden {
				t.Errorf("%s, behind a proxy, %q: %d", name, r.Header.Values("X-Forwarded-For"), got)
			}
		}
	}
}

// H4: trusted proxies determine the client address.
func TestTrustedProxiesForwardTheClientAddress(t *testing.T) {
	t.Parallel()
	st := storetest.OpenSQLite(t)
	key := ownerKey(t, st, ownAddress+"/32", "2001:db8:1::/48")
	h := newHandler(t, st, behindProxies)
	tests := []struct {
		peer, header string
		want         int
	}{
		{ownAddress, "", 200},
		{"::ffff:" + ownAddress, "", 200},
		{proxyAddress, "", 403}, // the proxy as the client
		{proxyAddress, ownAddress, 200},
		{"::ffff:" + proxyAddress, ownAddress, 200},
		{"fd00::1", ownAddress, 200},
		{"fd00::1%eth0", ownAddress, 200},
		{proxyAddress, "::ffff:" + ownAddress, 200},
		{proxyAddress, ownAddress + ":1234", 200},
		{proxyAddress, "2001:db8:1::5", 200},
		{proxyAddress, "[2001:db8:1::5]", 200},
		{proxyAddress, "[2001:db8:1::5]:443", 200},
		{proxyAddress, otherAddress + ", " + ownAddress, 200}, // right-most untrusted address
		{proxyAddress, ownAddress + ", 10.1.2.3, fd00::9", 200},
		{proxyAddress, ownAddress + ",10.1.2.3", 200},
		{proxyAddress, "10.9.9.9, 10.1.2.3", 403}, // only proxies
		{proxyAddress, otherAddress + ", 10.1.2.3", 403},
		{proxyAddress, ownAddress + ", garbage, 10.1.2.3", 403},
		{"192.0.2.1", ownAddress, 403}, // an untrusted proxy
	}
	for _, tt := range tests {
		var headers []string
		if tt.header != "" {
			headers = []string{"X-Forwarded-For", tt.header}
		}
		if got := status(h, addressed(tt.peer, key, headers...)); got != tt.want {
			t.Errorf("from %s for %q: %d, want %d", tt.peer, tt.header, got, tt.want)
		}
	}
}

// H5: a caller without a valid key gets at most 60 attempts per minute,
// regardless of headers and of other addresses in the same IPv6 network.
func TestBadKeysCannotChangeTheirAddress(t *testing.T) {
	t.Parallel()
	now := func() time.Time { return begin }
	h := newHandler(t, storetest.OpenSQLite(t, storetest.WithNow(now)), limited, behindProxies)
	passed := func(request func(i int) *http.Request) (n int) {
		for i := range 100 {
			switch got := status(h, request(i)); got {
			case http.StatusUnauthorized:
				n++
			case http.StatusTooManyRequests:
			default:
				t.Fatalf("status %d", got)
			}
		}
		return n
	}
	tests := map[string]struct {
		request func(i int) *http.Request
		want    int
	}{
		"a spoofed header": {func(i int) *http.Request {
			return addressed(otherAddress, "wrong", "X-Forwarded-For", fmt.Sprintf("192.0.2.%d", i))
		}, 60},
		"an IPv6 network": {func(i int) *http.Request { return addressed(fmt.Sprintf("2001:db8::%x:%x", i, i), "wrong") }, 60},
		"a spoofed header through a proxy": {func(i int) *http.Request {
			return addressed(proxyAddress, "wrong", "X-Forwarded-For", fmt.Sprintf("192.0.2.%d, 198.51.100.77", i))
		}, 60},
		"an IPv6 network through a proxy": {func(i int) *http.Request {
			return addressed(proxyAddress, "wrong", "X-Forwarded-For", fmt.Sprintf("2001:db8:0:1::%x", i))
		}, 60},
		"mapped and plain": {func(i int) *http.Request {
			return addressed([]string{"192.0.2.200", "::ffff:192.0.2.200"}[i%2], "wrong")
		}, 60},
		"many networks": {func(i int) *http.Request { return addressed(fmt.Sprintf("2001:db8:0:%x::1", 100+i), "wrong") }, 100},
	}
	for name, tt := range tests {
		if got := passed(tt.request); got != tt.want {
			t.Errorf("%s: %d passed, want %d", name, got, tt.want)
		}
	}
}
