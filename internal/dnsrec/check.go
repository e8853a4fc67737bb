package dnsrec

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/postroom/postroom/internal/dns"
)

// Timeout is the maximum duration of Check.
const Timeout = 10 * time.Second

// Finding is the result of looking up a record.
type Finding int

// The findings.
const (
	Unknown Finding = iota // the lookup failed
	Missing                // the record does not exist, or has another value
	Found
)

// maxAtOnce is the maximum number of concurrent lookups of one Check.
const maxAtOnce = 4

// Check looks up all records and returns the findings in the same order.
func Check(ctx context.Context, r dns.Resolver, records []Record) []Finding {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	found := make([]Finding, len(records))
	var wg sync.WaitGroup
	slots := make(chan struct{}, maxAtOnce)
	for i, rec := range records {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			found[i] = look(ctx, r, rec)
		})
	}
	wg.Wait()
	return found
}

// look looks up one record.
func look(ctx context.Context, r dns.Resolver, rec Record) Finding {
	switch {
	case rec.Type == "MX":
		return lookMX(ctx, r, rec)
	case rec.Kind == DMARC:
		return lookDMARC(ctx, r, rec)
	}
	return lookTXT(ctx, r, rec.Name, func(texts []string) bool { return matchTXT(rec, texts) })
}

func lookTXT(ctx context.Context, r dns.Resolver, name string, match func([]string) bool) Finding {
	texts, err := r.LookupTXT(ctx, name+".")
	return finding(err, match(texts))
}

// lookMX looks for our host among the MX hosts of the name. net.Resolver
// returns valid hosts together with an error about invalid ones.
func lookMX(ctx context.Context, r dns.Resolver, rec Record) Finding {
	hosts, err := r.LookupMX(ctx, rec.Name+".")
	for _, h := range hosts {
		if strings.EqualFold(strings.TrimSuffix(h.Host, "."), rec.Value) {
			return Found
		}
	}
	if len(hosts) > 0 {
		return Missing
	}
	return finding(err, false)
}

// lookDMARC also accepts a policy of a parent domain, which applies to this
// domain too (RFC 7489 section 6.6.3).
func lookDMARC(ctx context.Context, r dns.Resolver, rec Record) Finding {
	const prefix = "_dmarc."
	all := Missing
	for d := strings.TrimPrefix(rec.Name, prefix); strings.Contains(d, "."); _, d, _ = strings.Cut(d, ".") {
		switch lookTXT(ctx, r, prefix+d, hasDMARC) {
		case Found:
			return Found
		case Unknown:
			all = Unknown
		case Missing:
		}
	}
	return all
}

// finding distinguishes a missing record from a failed lookup.
func finding(err error, match bool) Finding {
	e, ok := errors.AsType[*net.DNSError](err)
	switch {
	case match:
		return Found
	case err == nil, ok && e.IsNotFound:
		return Missing
	}
	return Unknown
}
