package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/webhook"
	"github.com/postroom/postroom/smtp/queue"
	"github.com/postroom/postroom/store"
)

// traces sends spans of API calls, delivery attempts and webhooks to an OpenTelemetry
// collector. The attempts and webhooks of one message are one trace, over all nodes:
// its id is made from that of the message. Spans have ids, operations and results,
// but no addresses and no content. A collector that does not respond costs spans,
// and nothing else. A nil *traces does nothing.
type traces struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// lastSpans limits how long a node that stops waits for the collector.
const lastSpans = 3 * time.Second

// newTraces returns nil without a collector.
func newTraces(collector webURL, log *slog.Logger) (*traces, error) {
	if collector == "" {
		return nil, nil
	}
	exporter, err := otlptracehttp.New(context.Background(), otlptracehttp.WithEndpointURL(string(collector)+"/v1/traces"))
	if err != nil {
		return nil, fmt.Errorf("create the exporter of traces: %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("traces not sent", "error", err) })) // the SDK has no other place for it
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(resource.NewSchemaless(
		attribute.String("service.name", "postroom"), attribute.String("service.version", programVersion()))))
	return &traces{provider, provider.Tracer("github.com/postroom/postroom")}, nil
}

// part sends the last spans when the node stops.
func (t *traces) part() part {
	stopped := make(chan struct{})
	return part{
		name: "traces",
		run:  func() error { <-stopped; return nil },
		stop: func(ctx context.Context) error {
			defer close(stopped)
			ctx, cancel := context.WithTimeout(ctx, lastSpans)
			defer cancel()
			_ = t.provider.Shutdown(ctx) // the collector may be gone
			return nil
		},
	}
}

// span reports work that has ended now. Without a message it is a trace of its own.
func (t *traces) span(name string, kind trace.SpanKind, messageID string, began time.Time, fault string, attrs ...attribute.KeyValue) {
	ctx := context.Background()
	if messageID != "" {
		sum := sha256.Sum256([]byte(messageID))
		ctx = trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: trace.TraceID(sum[:16]), SpanID: trace.SpanID(sum[16:24]), TraceFlags: trace.FlagsSampled, Remote: true,
		}))
		attrs = append(attrs, attribute.String("postroom.message_id", messageID))
	}
	_, span := t.tracer.Start(ctx, name, trace.WithSpanKind(kind), trace.WithTimestamp(began), trace.WithAttributes(attrs...))
	if fault != "" {
		span.SetStatus(codes.Error, fault)
	}
	span.End()
}

func (t *traces) responded(r httpapi.Response) {
	if t == nil {
		return
	}
	fault := ""
	if r.Status >= http.StatusInternalServerError {
		fault = http.StatusText(r.Status)
	}
	t.span(cmp.Or(r.Operation, r.Method), trace.SpanKindServer, "", time.Now().Add(-r.Took), fault,
		attribute.String("http.request.method", r.Method), attribute.Int("http.response.status_code", r.Status),
		attribute.String("postroom.request_id", r.RequestID))
}

func (t *traces) attempted(r queue.AttemptReport) {
	if t == nil {
		return
	}
	fault := ""
	if r.Status != store.RecipientDelivered {
		fault = string(r.Status)
	}
	t.span("deliver", trace.SpanKindClient, r.MessageID, r.Began, fault,
		attribute.String("postroom.rcpt_domain", r.Domain), attribute.Int("postroom.attempt", r.Attempt),
		attribute.String("postroom.status", string(r.Status)), attribute.String("smtp.reply_code", r.Code))
}

// posted reports a request to a webhook endpoint.
func (t *traces) posted(r webhook.AttemptReport) {
	if t == nil {
		return
	}
	fault, message := "", ""
	if !r.Taken {
		fault = "not taken"
	}
	if r.Event.MessageID != nil {
		message = *r.Event.MessageID
	}
	t.span("webhook", trace.SpanKindClient, message, r.Began, fault,
		attribute.String("postroom.event_id", r.Event.ID), attribute.String("postroom.event_type", string(r.Event.Type)),
		attribute.Int("http.response.status_code", r.Status))
}
