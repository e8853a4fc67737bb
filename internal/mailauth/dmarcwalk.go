package mailauth

import (
	"context"
	"strings"

	"github.com/postroom/postroom/internal/dns"
)

// maxWalk is the maximum number of labels of the names queried after the name
// itself (RFC 9989 section 4.10).
const maxWalk = 7

// walker finds policy records and organizational domains for one message. It
// looks up each name once.
type walker struct {
	resolver dns.Resolver
	asked    map[string]dmarcLookup
}

type dmarcLookup struct {
	record dmarcRecord
	ok     bool
	err    error
}

// at returns the record of domain itself, or false if there is none. The error
// is a DNS failure.
func (w *walker) at(ctx context.Context, domain string) (dmarcRecord, bool, error) {
	lookup, known := w.asked[domain]
	if !known {
		if name := "_dmarc." + domain; isQueryable(name) {
			var texts []string
			texts, lookup.err = lookupTXT(ctx, w.resolver, name)
			lookup.record, lookup.ok = chooseDMARC(texts, domain)
		}
		if w.asked == nil {
			w.asked = map[string]dmarcLookup{}
		}
		w.asked[domain] = lookup
	}
	return lookup.record, lookup.ok, lookup.err
}

// walk returns the records found between domain and the root, longest name
// first. It stops after a record with psd=.
func (w *walker) walk(ctx context.Context, domain string) ([]dmarcRecord, error) {
	var found []dmarcRecord
	for name := domain; name != ""; name = parent(name) {
		rec, ok, err := w.at(ctx, name)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		found = append(found, rec)
		if rec.psd != 'u' {
			break
		}
	}
	return found, nil
}

// parent returns the next name of a walk, or "" after the last one.
func parent(name string) string {
	labels := strings.Split(name, ".")
	return strings.Join(labels[max(1, len(labels)-maxWalk):], ".")
}

// organization returns the organizational domain of domain, given the records
// that its walk found (RFC 9989 section 4.10.2).
func organization(domain string, found []dmarcRecord) string {
	for _, rec := range found {
		if rec.psd == 'n' {
			return rec.domain
		}
		if rec.psd == 'y' && rec.domain != domain {
			return oneBelow(domain, rec.domain)
		}
	}
	if len(found) > 0 {
		return found[len(found)-1].domain
	}
	return domain
}

// oneBelow returns the ancestor of domain with one label more than suffix.
func oneBelow(domain, suffix string) string {
	rest := strings.TrimSuffix(domain, "."+suffix)
	return rest[strings.LastIndexByte(rest, '.')+1:] + "." + suffix
}

// policy returns the record that applies to mail from domain: that of domain,
// of its organizational domain or of the public suffix above (RFC 9989 section
// 4.10.1). It returns false if there is none.
func (w *walker) policy(ctx context.Context, domain string) (dmarcRecord, bool, error) {
	rec, ok, err := w.at(ctx, domain)
	if ok || err != nil {
		return rec, ok, err
	}
	found, err := w.walk(ctx, domain)
	if err != nil || len(found) == 0 {
		return dmarcRecord{}, false, err
	}
	org := organization(domain, found)
	for _, rec := range found {
		if rec.domain == org || rec.psd == 'y' {
			return rec, true, nil
		}
	}
	return dmarcRecord{}, false, nil
}

// sameOrganization reports whether two domains have the same organizational
// domain.
func (w *walker) sameOrganization(ctx context.Context, a, b string) (bool, error) {
	if a == b {
		return true, nil
	}
	if lastLabel(a) != lastLabel(b) {
		return false, nil // no common ancestor
	}
	ofA, err := w.walk(ctx, a)
	if err != nil {
		return false, err
	}
	ofB, err := w.walk(ctx, b)
	if err != nil {
		return false, err
	}
	return organization(a, ofA) == organization(b, ofB), nil
}

func lastLabel(domain string) string { return domain[strings.LastIndexByte(domain, '.')+1:] }
