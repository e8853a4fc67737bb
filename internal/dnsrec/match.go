package dnsrec

import "strings"

// matchTXT reports whether one of texts is equivalent to the value of rec. DKIM
// and SPF records may differ in white space, order and additional terms.
func matchTXT(rec Record, texts []string) bool {
	switch rec.Kind {
	case DKIM:
		want := tagsOf(rec.Value)
		for _, text := range texts {
			if sameKey(tagsOf(text), want) {
				return true
			}
		}
		return false
	case SPF:
		return hasSPF(texts, strings.TrimSuffix(strings.TrimPrefix(rec.Value, "v=spf1 "), " -all"))
	}
	for _, text := range texts {
		if strings.TrimSpace(text) == rec.Value {
			return true
		}
	}
	return false
}

// tagsOf parses a list of name=value pairs (RFC 6376 section 3.2) without white
// space, which is not significant in key records.
func tagsOf(text string) map[string]string {
	tags := map[string]string{}
	for part := range strings.SplitSeq(text, ";") {
		if name, value, ok := strings.Cut(part, "="); ok {
			tags[strings.TrimSpace(name)] = strings.Join(strings.Fields(value), "")
		}
	}
	return tags
}

// sameKey compares key records (RFC 6376 section 3.6.1). v= and k= are
// optional.
func sameKey(have, want map[string]string) bool {
	version, key := have["v"], have["k"]
	if key == "" {
		key = "rsa"
	}
	return (version == "" || version == want["v"]) && key == want["k"] && have["p"] == want["p"]
}

// hasSPF reports whether there is exactly one SPF record, as required (RFC 7208
// section 4.5), and it contains the term.
func hasSPF(texts []string, term string) bool {
	var record []string
	for _, text := range texts {
		terms := strings.Fields(text)
		if len(terms) == 0 || !strings.EqualFold(terms[0], "v=spf1") {
			continue
		}
		if record != nil {
			return false
		}
		record = terms
	}
	for _, t := range record {
		if strings.EqualFold(strings.TrimPrefix(t, "+"), term) {
			return true
		}
	}
	return false
}

// hasDMARC reports whether there is exactly one DMARC record (RFC 7489 section
// 6.6.3).
func hasDMARC(texts []string) bool {
	n := 0
	for _, text := range texts {
		if version, _, _ := strings.Cut(text, ";"); strings.Join(strings.Fields(version), "") == "v=DMARC1" {
			n++
		}
	}
	return n == 1
}
