// Package mtasts reads the MTA Strict Transport Security policies of domains
// (RFC 8461), which name the servers that receive their mail. A TXT record
// announces the policy and its id. The policy itself is fetched over https and
// trusted because of the certificate.
//
// A policy is ignored if the record or the policy has a syntax error, the
// response is not 200, or the certificate is not valid for the policy host. The
// sender then follows an older policy that is still valid, if it has one.
package mtasts

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Mode is how a sender treats a server that does not match the policy.
type Mode string

// The modes of RFC 8461 section 5.
const (
	Enforce Mode = "enforce" // do not deliver
	Testing Mode = "testing" // deliver and report
	None    Mode = "none"    // the domain has withdrawn its policy
)

// Policy is the policy of a domain. The zero value has no requirements.
type Policy struct {
	Mode   Mode
	MX     []string      // host names, or "*." and a name, in lower case
	MaxAge time.Duration // how long the policy may be cached
}

// maxAge is the maximum caching time of a policy: a year (RFC 8461 section
// 3.2).
const maxAge = 31557600 * time.Second

// recordVersion starts a TXT record, and policyVersion is the version of a
// policy.
const (
	recordVersion = "v=STSv1"
	policyVersion = "STSv1"
)

var (
	recordField = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,31}=[\x21-\x3a\x3c\x3e-\x7e]+$`)
	policyID    = regexp.MustCompile(`^[A-Za-z0-9]{1,32}$`)
)

// RecordName returns the name of the TXT records that announce the policy of a
// domain.
func RecordName(domain string) string { return "_mta-sts." + domain }

// ParseRecord returns the policy id in the TXT records of RecordName (RFC 8461
// section 3.1). ok is false if there is no record, more than one, or a
// malformed one.
func ParseRecord(records []string) (id string, ok bool) {
	var found []string
	for _, r := range records {
		if version, _, more := strings.Cut(r, ";"); more && strings.TrimRight(version, " \t") == recordVersion {
			found = append(found, r)
		}
	}
	if len(found) != 1 {
		return "", false
	}
	fields := strings.Split(found[0], ";")
	if strings.Trim(fields[len(fields)-1], " \t") == "" {
		fields = fields[:len(fields)-1]
	}
	for _, f := range fields[1:] {
		f = strings.Trim(f, " \t")
		if !recordField.MatchString(f) {
			return "", false
		}
		if value, is := strings.CutPrefix(f, "id="); is && id == "" {
			id = value
		}
	}
	return id, policyID.MatchString(id)
}

// ParsePolicy parses a policy (RFC 8461 section 3.2).
func ParsePolicy(text []byte) (Policy, error) {
	var p Policy
	given := map[string]string{}
	for line := range bytes.Lines(text) {
		key, value, ok := strings.Cut(strings.TrimRight(string(line), " \t\r\n"), ":")
		if !ok {
			if key == "" {
				continue
			}
			return Policy{}, fmt.Errorf("policy has the line %.40q", key)
		}
		value = strings.Trim(value, " \t")
		if key == "mx" {
			name := strings.ToLower(value)
			if !isPattern(name) {
				return Policy{}, fmt.Errorf("policy has mx %.80q", value)
			}
			p.MX = append(p.MX, name)
		} else if _, twice := given[key]; !twice {
			given[key] = value
		}
	}
	if given["version"] != policyVersion {
		return Policy{}, fmt.Errorf("policy has version %.20q", given["version"])
	}
	seconds, err := strconv.ParseUint(given["max_age"], 10, 32)
	if err != nil {
		return Policy{}, fmt.Errorf("policy has max_age %.20q", given["max_age"])
	}
	p.MaxAge = min(time.Duration(seconds)*time.Second, maxAge)
	p.Mode = Mode(given["mode"])
	if !slices.Contains([]Mode{Enforce, Testing, None}, p.Mode) {
		return Policy{}, fmt.Errorf("policy has mode %.20q", given["mode"])
	}
	if len(p.MX) == 0 && p.Mode != None {
		return Policy{}, errors.New("policy names no mx")
	}
	return p, nil
}

var domainName = regexp.MustCompile(`^([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// isPattern reports whether s is a valid value of mx.
func isPattern(s string) bool {
	name := strings.TrimPrefix(s, "*.")
	return len(name) <= 253 && domainName.MatchString(name) && net.ParseIP(name) == nil
}

// Allows reports whether the policy allows host as a server. A wildcard matches
// one label (RFC 8461 section 4.1).
func (p Policy) Allows(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	_, parent, _ := strings.Cut(host, ".")
	return slices.ContainsFunc(p.MX, func(pattern string) bool {
		suffix, wild := strings.CutPrefix(pattern, "*.")
		return wild && parent == suffix || pattern == host
	})
}
