package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// TestTraces: a collector gets a span for each API call and delivery attempt. None has
// an address.
func TestTraces(t *testing.T) {
	t.Parallel()
	type seen struct {
		name, trace string
		attributes  []string
	}
	spans := make(chan seen, 1000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		var req collector.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(b, &req)
		}
		if err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL, err)
		}
		for _, rs := range req.GetResourceSpans() {
			for _, ss := range rs.GetScopeSpans() {
				for _, s := range ss.GetSpans() {
					one := seen{name: s.GetName(), trace: string(s.GetTraceId())}
					for _, a := range s.GetAttributes() {
						one.attributes = append(one.attributes, a.GetValue().GetStringValue())
					}
					spans <- one
				}
			}
		}
	}))
	t.Cleanup(server.Close)
	s := serve(t, t.TempDir(), "POSTROOM_OTLP="+server.URL)
	_, in := s.call(t, s.key, http.MethodPost, "/v1/inboxes", `{"name":"signup"}`)
	_, sent := s.call(t, s.key, http.MethodPost, "/v1/inboxes/"+in["id"].(string)+"/messages", `{"to":"signup@postroom.localhost","subject":"s","text":"t"}`)
	want := []string{"createInbox", "sendMessage", "deliver"}
	timeout := time.After(patience)
	for len(want) > 0 {
		select {
		case got := <-spans:
			want = slices.DeleteFunc(want, func(name string) bool { return name == got.name })
			if slices.Contains(got.attributes, "signup@postroom.localhost") {
				t.Errorf("a span has an address: %+v", got)
			}
			if got.name == "deliver" && !slices.Contains(got.attributes, sent["id"].(string)) {
				t.Errorf("the delivery is not about the message: %+v", got)
			}
		case <-timeout:
			t.Fatalf("no span %v", want)
		}
	}
}

// TestTracesWithoutACollector: a collector that is gone costs neither calls nor the
// shutdown.
func TestTracesWithoutACollector(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), "POSTROOM_OTLP=http://127.0.0.1:1")
	if status, in := s.call(t, s.key, http.MethodPost, "/v1/inboxes", `{}`); status != http.StatusCreated {
		t.Fatalf("%d %v", status, in)
	}
	begun := time.Now()
	s.stop(t)
	if took := time.Since(begun); took > lastSpans+patience/2 {
		t.Errorf("the shutdown took %v", took)
	}
}
