package store

import (
	"context"
	"slices"
	"time"
)

// Inspection is how the database is.
type Inspection struct {
	Engine  string // "sqlite" or "postgresql"
	Version string // of the engine
	// Latency is how long it takes to answer, the median of some questions.
	Latency time.Duration
	// Ahead is by how much the clock of the server is ahead of ours, nil when it is
	// ours.
	Ahead *time.Duration
	// LogSize is the size of the write-ahead log in bytes, 0 when it is a server's
	// own matter.
	LogSize int64
}

// inspectPings is how often Inspect asks.
const inspectPings = 5

// Inspect looks at the database.
func (s *Store) Inspect(ctx context.Context) (Inspection, error) {
	took := make([]time.Duration, inspectPings)
	for i := range took {
		start := time.Now()
		if err := s.Ping(ctx); err != nil {
			return Inspection{}, err
		}
		took[i] = time.Since(start)
	}
	before := s.clock.Node()
	state, err := s.engine.Inspect(ctx)
	if err != nil {
		return Inspection{}, s.wrap(err, "inspect")
	}
	after := s.clock.Node()
	slices.Sort(took)
	out := Inspection{Engine: s.Engine(), Version: state.Version, Latency: took[len(took)/2], LogSize: state.LogSize}
	if state.Clock != nil {
		ahead := state.Clock.Sub(before.Round(0).Add(after.Sub(before) / 2))
		out.Ahead = &ahead
	}
	return out, nil
}

// FindDomains returns up to n domains of all accounts, newest first: those of a
// name, or all that are verified when it is empty.
func (s *Store) FindDomains(ctx context.Context, name string, n int) ([]Domain, error) {
	const q = `SELECT ` + domainColumns + ` FROM domains
		WHERE ($1 = '' AND status = 'verified') OR domain = $1 ORDER BY seq DESC LIMIT $2`
	var rows []Domain
	err := s.read.SelectContext(ctx, &rows, q, name, n)
	if err == nil {
		err = readDomainKeys(ctx, s.read, rows)
	}
	return rows, s.wrap(err, "find domains")
}

// FailingWebhooks returns up to n webhook endpoints of all accounts, oldest
// first, of which no delivery has succeeded since before that time, or which the
// service has turned off.
func (s *Store) FailingWebhooks(ctx context.Context, before time.Time, n int) ([]Webhook, error) {
	const q = `SELECT ` + webhookColumns + ` FROM webhook_endpoints
		WHERE (active AND failing_since <= $1) OR disabled_reason IS NOT NULL ORDER BY seq LIMIT $2`
	var rows []Webhook
	err := s.read.SelectContext(ctx, &rows, q, NewTime(before), n)
	return rows, s.wrap(err, "failing webhooks")
}
