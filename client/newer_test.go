package client

import (
	"testing"
)

// The client passes on a newer event with all its fields.
func TestUnknownEventTypesAreKept(t *testing.T) {
	t.Parallel()
	text := []byte(`{"id":"evt_1","type":"inbox.renamed","created_at":"2026-01-02T03:04:05Z","data":{"object":"inbox","new":[1]},"why":"x"}`)
	e, err := parseEvent(text)
	if err != nil || e.Type != "inbox.renamed" || string(e.JSON) != string(text) {
		t.Errorf("%+v %v", e, err)
	}
	if m, err := e.Message(); err == nil || m != nil {
		t.Errorf("it is read as a message: %v", m)
	}
}
