package dnsrec

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/postroom/postroom/internal/dns"
)

// Timeout is the maximum duration of Check.
const Timeout = 10 * time.Second

// Finding says whether DNS has a record.
type Finding int

// The findings.
const (
	Unknown Finding = iota // the lookup failed
	Missing                // the record does not exist, or has another value
	Found
)

// Result is the result of looking up a record.
type Result struct {
	Finding
	Has []string // the values that DNS has instead of a missing record, at most maxValues
	Err error    // of the lookup; also of a name that does not exist
}

// Values of strangers are shown and stored only up to these limits.
const maxValues, maxValue = 3, 400

// maxAtOnce is the maximum number of concurrent lookups of one Check.
const maxAtOnce = 4

// Check looks up all records and returns the results in the same order.
func Check(ctx context.Context, r dns.Resolver, records []Record) []Result {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	results := make([]Result, len(records))
	var wg sync.WaitGroup
	slots := make(chan struct{}, maxAtOnce)
	for i, rec := range records {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			results[i] = look(ctx, r, rec)
		})
	}
	wg.Wait()
	return results
}

// look looks up one record.
func look(ctx context.Context, r dns.Resolver, rec Record) Result {
	switch {
	case rec.Type == "MX":
		return lookMX(ctx, r, rec)
	case rec.Kind == DMARC:
		return lookDMARC(ctx, r, rec)
	}
	return lookTXT(ctx, r, rec.Name, func(texts []string) bool { return matchTXT(rec, texts) })
}

func lookTXT(ctx context.Context, r dns.Resolver, name string, match func([]string) bool) Result {
	texts, err := r.LookupTXT(ctx, name+".")
	return result(err, texts, match(texts))
}

// lookMX looks for our host among the MX hosts of the name. net.Resolver
// returns valid hosts together with an error about invalid ones.
func lookMX(ctx context.Context, r dns.Resolver, rec Record) Result {
	hosts, err := r.LookupMX(ctx, rec.Name+".")
	match, has := false, []string(nil)
	for _, h := range hosts {
		match = match || strings.EqualFold(strings.TrimSuffix(h.Host, "."), rec.Value)
		has = append(has, fmt.Sprintf("%d %s", h.Pref, h.Host))
	}
	if len(hosts) > 0 {
		err = nil
	}
	return result(err, has, match)
}

// lookDMARC also accepts a policy of a parent domain, which applies to this
// domain too (RFC 7489 section 6.6.3).
func lookDMARC(ctx context.Context, r dns.Resolver, rec Record) Result {
	own := lookTXT(ctx, r, rec.Name, hasDMARC)
	_, parent, _ := strings.Cut(strings.TrimPrefix(rec.Name, dmarcPrefix), ".")
	if own.Finding == Found || !strings.Contains(parent, ".") {
		return own
	}
	above := rec
	above.Name = dmarcPrefix + parent
	if res := lookDMARC(ctx, r, above); res.Finding != Missing {
		return res
	}
	return own
}

const dmarcPrefix = "_dmarc."

// result keeps the values of a missing record.
func result(err error, has []string, match bool) Result {
	r := Result{Finding: finding(err, match), Err: err}
	if r.Finding == Missing {
		for _, v := range has[:min(len(has), maxValues)] {
			r.Has = append(r.Has, strings.ToValidUTF8(v[:min(len(v), maxValue)], ""))
		}
	}
	return r
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
