package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/httpserver"
	"github.com/postroom/postroom/internal/webhook"
	"github.com/postroom/postroom/smtp/queue"
	"github.com/postroom/postroom/store"
)

// Metrics of a node. The counters start at 0 with the process; the queue metrics
// cover all nodes.
var (
	metricReceived = prometheus.NewDesc("postroom_received_messages_total", "Messages received, without test mode.", nil, nil)
	metricAccepted = prometheus.NewDesc("postroom_accepted_recipients_total", "Recipients of mail accepted for sending, without test mode.", nil, nil)
	metricAttempts = prometheus.NewDesc("postroom_delivery_attempts_total", "Delivery attempts, by the resulting status of the recipient.", []string{"result"}, nil)
	metricRequests = prometheus.NewDesc("postroom_http_requests_total", "Requests to the API, by response status.", []string{"code"}, nil)
	metricDoubt    = prometheus.NewDesc("postroom_deliveries_in_doubt_total", "Messages passed to a server that did not reply. It may receive them twice.", nil, nil)
	metricUnmet    = prometheus.NewDesc("postroom_mta_sts_unmet_total", "Servers that do not meet the MTA-STS policy of their domain, by policy mode.", []string{"mode"}, nil)
	metricDue      = prometheus.NewDesc("postroom_queue_due_recipients", "Recipients that are due and not yet claimed, of all nodes.", nil, nil)
	metricHeld     = prometheus.NewDesc("postroom_held", "Mail and webhooks held by a restore, of all nodes.", []string{"kind"}, nil)
	metricPaused   = prometheus.NewDesc("postroom_paused", "1 while this node neither claims nor deletes, by reason.", []string{"reason"}, nil)
	metricClock    = prometheus.NewDesc("postroom_clock_ahead_seconds", "How far the clock of this node is ahead of the clock of the database server.", nil, nil)
	metricWaits    = prometheus.NewDesc("postroom_deletions_held", "1 while deletion waits for confirmation of the clock.", nil, nil)
	metricAge      = prometheus.NewDesc("postroom_queue_age_seconds", "How long the oldest due recipient has been due.", nil, nil)
)

// metrics collects the metrics of a node. They contain no secrets, addresses or
// message content.
type metrics struct {
	store *store.Store
	queue func() queue.Tally

	mu       sync.Mutex
	requests map[int]int64 // by HTTP status

	build                        prometheus.Gauge
	took                         *prometheus.HistogramVec
	stored, delivery, webhookLag prometheus.Histogram
}

// Buckets of the histograms in seconds. Requests and receiving take milliseconds,
// waits up to 120 seconds; mail may be retried for days.
var (
	quick = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 120}
	slow  = []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600, 6 * 3600, 24 * 3600, 72 * 3600}
)

func newMetrics() *metrics {
	histogram := func(name, help string, buckets []float64) prometheus.HistogramOpts {
		return prometheus.HistogramOpts{Name: "postroom_" + name, Help: help, Buckets: buckets}
	}
	m := &metrics{
		requests: map[int]int64{},
		build: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "postroom_build_info", Help: "Always 1. The labels have the version of the program and of Go.",
			ConstLabels: prometheus.Labels{"version": programVersion(), "goversion": runtime.Version()},
		}),
		took: prometheus.NewHistogramVec(histogram("http_request_duration_seconds",
			"How long requests to the API took, by operation. Waits and streams last as long as the client waits.", quick), []string{"operation"}),
		stored: prometheus.NewHistogram(histogram("receive_duration_seconds",
			"Time from the last byte of a message until it is available in its inboxes.", quick)),
		delivery: prometheus.NewHistogram(histogram("delivery_duration_seconds",
			"Time from the acceptance of a message until a recipient's server or inbox took it, also for scheduled emails.", slow)),
		webhookLag: prometheus.NewHistogram(histogram("webhook_lag_seconds", "Time from an event until an endpoint took it.", slow)),
	}
	m.build.Set(1)
	return m
}

// responded counts a response of the API.
func (m *metrics) responded(r httpapi.Response) {
	m.mu.Lock()
	m.requests[r.Status]++
	m.mu.Unlock()
	m.took.WithLabelValues(cmp.Or(r.Operation, "none")).Observe(r.Took.Seconds())
}

// received records how long a message took until it was available. The clocks of two
// nodes may differ, so no duration is negative.
func (m *metrics) received(_ []store.Message, took time.Duration) {
	if took > 0 { // not mail of our own queue
		m.stored.Observe(took.Seconds())
	}
}

// attempted records the result of a delivery attempt.
func (m *metrics) attempted(r queue.AttemptReport) {
	if r.Status == store.RecipientDelivered {
		m.delivery.Observe(max(0, r.Age.Seconds()))
	}
}

// posted records a request to a webhook endpoint.
func (m *metrics) posted(r webhook.AttemptReport) {
	if r.Taken {
		m.webhookLag.Observe(max(0, r.Lag.Seconds()))
	}
}

func (*metrics) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{metricReceived, metricAccepted, metricAttempts, metricRequests, metricDoubt, metricUnmet, metricDue, metricAge, metricHeld, metricPaused, metricClock, metricWaits} {
		descs <- d
	}
}

// queueTimeout bounds the database query for the queue metrics. If it fails, the
// other metrics are still exported.
const queueTimeout = 2 * time.Second

func (m *metrics) Collect(out chan<- prometheus.Metric) {
	counter := func(d *prometheus.Desc, n int64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	t := m.store.Totals()
	counter(metricReceived, t.Received)
	counter(metricAccepted, t.Accepted)
	for status, n := range t.Attempts {
		counter(metricAttempts, n, string(status))
	}
	met := m.queue()
	counter(metricDoubt, met.InDoubt)
	counter(metricUnmet, met.UnmetEnforced, "enforce")
	counter(metricUnmet, met.UnmetTesting, "testing")
	m.mu.Lock()
	for status, n := range m.requests {
		counter(metricRequests, n, strconv.Itoa(status))
	}
	m.mu.Unlock()
	gauge := func(d *prometheus.Desc, is bool, labels ...string) {
		v := 0.0
		if is {
			v = 1
		}
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	paused := m.store.Paused()
	for _, why := range []string{store.PausedClock, store.PausedSchema} {
		gauge(metricPaused, slices.Contains(paused, why), why)
	}
	out <- prometheus.MustNewConstMetric(metricClock, prometheus.GaugeValue, m.store.ClockAhead().Seconds())
	ctx, cancel := context.WithTimeout(context.Background(), queueTimeout)
	defer cancel()
	waits, err := m.store.DeletionsPaused(ctx)
	if err != nil {
		return
	}
	gauge(metricWaits, waits != nil)
	due, age, err := m.store.QueueLag(ctx)
	if err != nil {
		return
	}
	out <- prometheus.MustNewConstMetric(metricDue, prometheus.GaugeValue, float64(due))
	out <- prometheus.MustNewConstMetric(metricAge, prometheus.GaugeValue, age.Seconds())
	held, err := m.store.Held(ctx)
	if err != nil {
		return
	}
	out <- prometheus.MustNewConstMetric(metricHeld, prometheus.GaugeValue, float64(held.Recipients), "recipients")
	out <- prometheus.MustNewConstMetric(metricHeld, prometheus.GaugeValue, float64(held.Scheduled), "scheduled")
	out <- prometheus.MustNewConstMetric(metricHeld, prometheus.GaugeValue, float64(held.Deliveries), "webhooks")
}

// idleTimeout is how long a server for operators keeps an idle connection.
const idleTimeout = 2 * time.Minute

// serverPart serves one of the servers for operators.
func serverPart(name string, l net.Listener, conns *httpserver.Conns, server *http.Server) part {
	l = conns.Limit(server, l)
	return part{
		name: name,
		run: func() error {
			if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				return fmt.Errorf("accept connections: %w", err)
			}
			return nil
		},
		stop: func(context.Context) error { return server.Close() },
	}
}

// metricsPart serves the metrics to Prometheus.
func metricsPart(l net.Listener, conns *httpserver.Conns, m *metrics) part {
	registry := prometheus.NewRegistry()
	registry.MustRegister(m, m.build, m.took, m.stored, m.delivery, m.webhookLag, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, WriteTimeout: time.Minute, IdleTimeout: idleTimeout}
	return serverPart("metrics server", l, conns, server)
}

// pprofPart serves profiles of the running program. Shutdown aborts a running
// profile.
func pprofPart(l net.Listener, conns *httpserver.Conns) part {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	server := &http.Server{Handler: loopbackHostOnly(mux), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: idleTimeout}
	return serverPart("profile server", l, conns, server)
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
