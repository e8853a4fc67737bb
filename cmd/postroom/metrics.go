package main

import (
	"bytes"
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
	"strings"
	"time"

	prom "github.com/VictoriaMetrics/metrics"

	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/httpserver"
	"github.com/postroom/postroom/internal/webhook"
	"github.com/postroom/postroom/smtp/queue"
	"github.com/postroom/postroom/store"
)

// metricHelp explains the metrics of a node. The counters start at 0 with the process;
// the queue metrics cover all nodes.
var metricHelp = map[string]string{
	"received_messages_total":       "Messages received, without test mode.",
	"accepted_recipients_total":     "Recipients of mail accepted for sending, without test mode.",
	"delivery_attempts_total":       "Delivery attempts, by the resulting status of the recipient.",
	"http_requests_total":           "Requests to the API, by response status.",
	"deliveries_in_doubt_total":     "Messages passed to a server that did not reply. It may receive them twice.",
	"mta_sts_unmet_total":           "Servers that do not meet the MTA-STS policy of their domain, by policy mode.",
	"queue_due_recipients":          "Recipients that are due and not yet claimed, of all nodes.",
	"queue_age_seconds":             "How long the oldest due recipient has been due.",
	"held":                          "Mail and webhooks held by a restore, of all nodes.",
	"paused":                        "1 while this node neither claims nor deletes, by reason.",
	"clock_ahead_seconds":           "How far the clock of this node is ahead of the clock of the database server.",
	"deletions_held":                "1 while deletion waits for confirmation of the clock.",
	"build_info":                    "Always 1. The labels have the version of the program and of Go.",
	"http_request_duration_seconds": "How long requests to the API took, by operation. Waits and streams last as long as the client waits.",
	"receive_duration_seconds":      "Time from the last byte of a message until it is available in its inboxes.",
	"delivery_duration_seconds":     "Time from the acceptance of a message until a recipient's server or inbox took it, also for scheduled emails.",
	"webhook_lag_seconds":           "Time from an event until an endpoint took it.",
}

// Buckets of the histograms in seconds. Requests and receiving take milliseconds,
// waits up to 120 seconds; mail may be retried for days.
var (
	quick = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 120}
	slow  = []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600, 6 * 3600, 24 * 3600, 72 * 3600}
)

// metrics collects the metrics of a node. They contain no secrets, addresses or
// message content.
type metrics struct {
	store *store.Store
	queue func() queue.Tally

	own                          *prom.Set // what this node counts by itself
	stored, delivery, webhookLag *prom.PrometheusHistogram
}

func newMetrics() *metrics {
	own := prom.NewSet()
	own.NewGauge(fmt.Sprintf("postroom_build_info{goversion=%q,version=%q}", runtime.Version(), programVersion()), nil).Set(1)
	return &metrics{
		own:        own,
		stored:     own.NewPrometheusHistogramExt("postroom_receive_duration_seconds", quick),
		delivery:   own.NewPrometheusHistogramExt("postroom_delivery_duration_seconds", slow),
		webhookLag: own.NewPrometheusHistogramExt("postroom_webhook_lag_seconds", slow),
	}
}

// responded counts a response of the API.
func (m *metrics) responded(r httpapi.Response) {
	m.own.GetOrCreateCounter(fmt.Sprintf(`postroom_http_requests_total{code="%d"}`, r.Status)).Inc()
	took := fmt.Sprintf("postroom_http_request_duration_seconds{operation=%q}", cmp.Or(r.Operation, "none"))
	m.own.GetOrCreatePrometheusHistogramExt(took, quick).Update(r.Took.Seconds())
}

// received records how long a message took until it was available. The clocks of two
// nodes may differ, so no duration is negative.
func (m *metrics) received(_ []store.Message, took time.Duration) {
	if took > 0 { // not mail of our own queue
		m.stored.Update(took.Seconds())
	}
}

// attempted records the result of a delivery attempt.
func (m *metrics) attempted(r queue.AttemptReport) {
	if r.Status == store.RecipientDelivered {
		m.delivery.Update(max(0, r.Age.Seconds()))
	}
}

// posted records a request to a webhook endpoint.
func (m *metrics) posted(r webhook.AttemptReport) {
	if r.Taken {
		m.webhookLag.Update(max(0, r.Lag.Seconds()))
	}
}

// queueTimeout bounds the database query for the queue metrics. If it fails, the
// other metrics are still exported.
const queueTimeout = 2 * time.Second

// read reads the metrics that others count: the store, the queue and the database.
func (m *metrics) read(ctx context.Context) *prom.Set {
	now := prom.NewSet()
	counter := func(name string, n int64) { now.NewCounter("postroom_" + name).Set(uint64(max(0, n))) }
	gauge := func(name string, v float64) { now.NewGauge("postroom_"+name, nil).Set(v) }
	flag := func(name string, is bool) {
		v := 0.0
		if is {
			v = 1
		}
		gauge(name, v)
	}
	t := m.store.Totals()
	counter("received_messages_total", t.Received)
	counter("accepted_recipients_total", t.Accepted)
	for status, n := range t.Attempts {
		counter(fmt.Sprintf("delivery_attempts_total{result=%q}", status), n)
	}
	met := m.queue()
	counter("deliveries_in_doubt_total", met.InDoubt)
	counter(`mta_sts_unmet_total{mode="enforce"}`, met.UnmetEnforced)
	counter(`mta_sts_unmet_total{mode="testing"}`, met.UnmetTesting)
	paused := m.store.Paused()
	for _, why := range []string{store.PausedClock, store.PausedSchema} {
		flag(fmt.Sprintf("paused{reason=%q}", why), slices.Contains(paused, why))
	}
	gauge("clock_ahead_seconds", m.store.ClockAhead().Seconds())
	ctx, cancel := context.WithTimeout(ctx, queueTimeout)
	defer cancel()
	waits, err := m.store.DeletionsPaused(ctx)
	if err != nil {
		return now
	}
	flag("deletions_held", waits != nil)
	due, age, err := m.store.QueueLag(ctx)
	if err != nil {
		return now
	}
	gauge("queue_due_recipients", float64(due))
	gauge("queue_age_seconds", age.Seconds())
	held, err := m.store.Held(ctx)
	if err != nil {
		return now
	}
	gauge(`held{kind="recipients"}`, float64(held.Recipients))
	gauge(`held{kind="scheduled"}`, float64(held.Scheduled))
	gauge(`held{kind="webhooks"}`, float64(held.Deliveries))
	return now
}

// ServeHTTP writes all metrics in the text format of Prometheus.
func (m *metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var all bytes.Buffer
	m.read(r.Context()).WritePrometheus(&all)
	m.own.WritePrometheus(&all)
	prom.WriteProcessMetrics(&all)
	prom.WriteFDMetrics(&all)
	var help []string // the library writes these lines without a text
	for name, text := range metricHelp {
		help = append(help, "# HELP postroom_"+name+"\n", "# HELP postroom_"+name+" "+text+"\n")
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = strings.NewReplacer(help...).WriteString(w, all.String()) // the client may be gone
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
	prom.ExposeMetadata(true)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m)
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
