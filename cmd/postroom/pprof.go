package main

import (
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"strings"
	"time"
)

// pprofPart serves profiles of the running program. Shutdown aborts a running
// profile.
func pprofPart(l net.Listener) part {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	server := &http.Server{Handler: loopbackHostOnly(mux), ReadHeaderTimeout: 10 * time.Second}
	return serverPart("profile server", l, server)
}

// loopbackHostOnly refuses requests whose Host is not a loopback address or
// localhost. The listener is on loopback, so such a request comes from a web page
// that made its own domain resolve to this machine (DNS rebinding).
func loopbackHostOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
		if (err != nil || !ip.Unmap().IsLoopback()) && !strings.EqualFold(host, "localhost") {
			http.Error(w, "use a loopback address or localhost as the host", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}
