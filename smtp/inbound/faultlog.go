package inbound

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// faultLog logs why messages are refused for now. While a fault lasts, such as a
// database outage, every message fails: the log has one line per second and step,
// with the number of faults since the line before.
type faultLog struct {
	out *slog.Logger
	now func() time.Time

	mu   sync.Mutex
	last map[string]*faultCount // by step; there are few steps
}

type faultCount struct {
	logged time.Time
	unsaid int // faults since then
}

func newFaultLog(out *slog.Logger) *faultLog {
	return &faultLog{out: out, now: time.Now, last: map[string]*faultCount{}}
}

func (l *faultLog) log(ctx context.Context, step string, err error, code int) {
	n := l.count(step)
	if n == 0 {
		return
	}
	l.out.WarnContext(ctx, "messages refused for now", "step", step, "error", err, "smtp_code", code, "count", n)
}

// count counts a fault. It returns how many to log, or 0 if the last line is less
// than a second old.
func (l *faultLog) count(step string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.last[step]
	if c == nil {
		c = &faultCount{}
		l.last[step] = c
	}
	c.unsaid++
	now := l.now()
	if now.Sub(c.logged) < time.Second {
		return 0
	}
	n := c.unsaid
	c.logged, c.unsaid = now, 0
	return n
}
