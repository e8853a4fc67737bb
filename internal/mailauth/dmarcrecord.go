package mailauth

import (
	"net/url"
	"strings"
)

// dmarcRecord is a DMARC policy record (RFC 9989 section 4.7). Policies are
// "none", "quarantine" or "reject".
type dmarcRecord struct {
	domain string // domain that publishes the record

	policy     string // p=
	subdomains string // sp=, or empty
	missing    string // np=, the policy of subdomains that do not exist, or empty
	strictDKIM bool   // adkim=s
	strictSPF  bool   // aspf=s
	testing    bool   // t=y
	psd        byte   // 'y', 'n' or 'u'
	useless    bool   // the policy cannot be read; DMARC does not apply
}

// chooseDMARC returns the only policy record among TXT records; several count
// as none (RFC 9989 section 4.10).
func chooseDMARC(texts []string, domain string) (rec dmarcRecord, ok bool) {
	found := 0
	for _, text := range texts {
		if r, isDMARC := parseDMARC(text); isDMARC {
			rec, found = r, found+1
		}
	}
	rec.domain = domain
	return rec, found == 1
}

// parseDMARC parses a record. It returns false if text is not a DMARC1 record.
// It ignores malformed tags other than policies (RFC 9989 section 4.10.1).
func parseDMARC(text string) (rec dmarcRecord, ok bool) {
	rec = dmarcRecord{policy: "none", psd: 'u'}
	seen := map[string]bool{}
	broken, reports := false, false
	for i, item := range strings.Split(text, ";") {
		name, value, _ := strings.Cut(item, "=")
		name, value = strings.ToLower(strings.Trim(name, " \t")), strings.Trim(value, " \t")
		if i == 0 {
			if name != "v" || value != "DMARC1" {
				return rec, false
			}
			continue
		}
		if seen[name] {
			continue
		}
		seen[name] = true
		switch name {
		case "p":
			broken = !readPolicy(&rec.policy, value) || broken
		case "sp":
			broken = !readPolicy(&rec.subdomains, value) || broken
		case "np":
			broken = !readPolicy(&rec.missing, value) || broken
		case "rua":
			reports = hasReportAddress(value)
		default:
			rec.readFlag(name, strings.ToLower(value))
		}
	}
	if broken {
		rec.policy, rec.subdomains, rec.missing = "none", "", ""
		rec.useless = !reports
	}
	return rec, true
}

func readPolicy(place *string, value string) bool {
	value = strings.ToLower(value)
	switch value {
	case "none", "quarantine", "reject":
		*place = value
		return true
	}
	return false
}

func (rec *dmarcRecord) readFlag(name, value string) {
	switch name {
	case "adkim":
		rec.strictDKIM = value == "s"
	case "aspf":
		rec.strictSPF = value == "s"
	case "t":
		rec.testing = value == "y"
	case "psd":
		if value == "y" || value == "n" {
			rec.psd = value[0]
		}
	}
}

// hasReportAddress reports whether rua= contains a valid address. If it does, a
// malformed policy counts as none; otherwise the record is useless.
func hasReportAddress(list string) bool {
	for item := range strings.SplitSeq(list, ",") {
		if u, err := url.Parse(strings.Trim(item, " \t")); err == nil && u.Scheme != "" {
			return true
		}
	}
	return false
}

// lowered returns the policy of a domain that is only testing: one step weaker
// (RFC 9989 section 4.7, t=).
func lowered(policy string) string {
	if policy == "reject" {
		return "quarantine"
	}
	return "none"
}
