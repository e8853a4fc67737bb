package mailauth

import (
	"context"
	"strings"

	"github.com/postroom/postroom/internal/dns"
)

// maxWalk is how many labels of a long name are looked at after the name itself
// (RFC 9989 section 4.10).
const maxWalk = 7

// walker finds policy records and organizational domains for one mail. It asks
// for a name once.
type walker struct {
	resolver dns.Resolver
	asked    map[string]dmarcAnswer
}

type dmarcAnswer struct {
	record dmarcRecord
	ok     bool
	err    error
}

// at returns the record of a domain itself; false when there is none. The error
// is trouble of the DNS.
func (w *walker) at(ctx context.Context, domain string) (dmarcRecord, bool, error) {
	answer, known := w.asked[domain]
	if !known {
		if name := "_dmarc." + domain; isQueryable(name) {
			var texts []string
			texts, answer.err = lookupTXT(ctx, w.resolver, name)
			answer.record, answer.ok = chooseDMARC(texts, domain)
		}
		if w.asked == nil {
			w.asked = map[string]dmarcAnswer{}
		}
		w.asked[domain] = answer
	}
	return answer.record, answer.ok, answer.err
}

// walk returns the records found on the way from domain up to the root, the
// longest name first. One with psd= ends it.
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

// parent is the name that a walk asks for next, empty after the last one.
func parent(name string) string {
	labels := strings.Split(name, ".")
	return strings.Join(labels[max(1, len(labels)-maxWalk):], ".")
}

// organization is the organizational domain of domain, by the records that its
// walk has found (section 4.10.2).
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

// oneBelow is the name with one label more than suffix on the way to domain.
func oneBelow(domain, suffix string) string {
	rest := strings.TrimSuffix(domain, "."+suffix)
	return rest[strings.LastIndexByte(rest, '.')+1:] + "." + suffix
}

// policy returns the record that applies to mail from domain: its own, that of
// its organizational domain, or that of the public suffix above that (section
// 4.10.1). False when there is none.
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
		return false, nil // they have no domain in common
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
