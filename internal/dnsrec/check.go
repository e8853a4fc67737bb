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

// Timeout is the longest that Check takes.
const Timeout = 10 * time.Second

// Finding is what the DNS says about a record.
type Finding int

// The findings.
const (
	Unknown Finding = iota // the DNS did not say
	Missing                // it is not there, or another is in its place
	Found
)

// maxAtOnce is how many questions one Check asks at the same time.
const maxAtOnce = 4

// Check looks all records up and returns what it found, in their order.
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

// look asks for one record.
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

// lookMX wants our host among those of the name. net.Resolver returns the
// usable hosts beside an error about the others.
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

// lookDMARC is content with a policy of a domain above, which then holds for
// this one (RFC 7489 section 6.6.3).
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

// finding tells what is not there from what nobody knows.
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
