package inbound

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestOutageIsLoggedOncePerSecond(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	l := newFaultLog(textLog(&out))
	now := time.Now()
	l.now = func() time.Time { return now }
	for range 250_000 {
		l.log(t.Context(), "store", errors.New("database away"), 451)
	}
	l.log(t.Context(), "look up recipient", errors.New("database away"), 451)
	now = now.Add(time.Second)
	l.log(t.Context(), "store", errors.New("database away"), 451)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d lines, want 3: %.500s", len(lines), out.String())
	}
	for i, want := range []string{"step=store", "recipient", "count=250000"} {
		if !strings.Contains(lines[i], want) || !strings.Contains(lines[i], "level=WARN") {
			t.Errorf("line %d is %s, want %s", i, lines[i], want)
		}
	}
}
