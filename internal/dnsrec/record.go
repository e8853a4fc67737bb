// Package dnsrec lists the DNS records that a domain needs to send and receive
// mail, and checks which of them exist.
//
// A lookup has three results: the record exists, it does not exist, or the
// lookup failed. A failed lookup never counts as a missing record, so that a
// temporary DNS failure does not affect the status of a domain. A check takes
// at most Timeout.
package dnsrec

import (
	"fmt"
	"strings"
)

// TTL is the suggested time to live of records, in seconds.
const TTL = 3600

// Kind is the purpose of a record.
type Kind string

// The kinds of records.
const (
	Ownership  Kind = "OWNERSHIP"   // proves that the account controls the domain
	DKIM       Kind = "DKIM"        // a public key for signatures (RFC 6376)
	SPF        Kind = "SPF"         // hosts that may send with its return path (RFC 7208)
	ReturnPath Kind = "RETURN_PATH" // receives bounces
	DMARC      Kind = "DMARC"       // the policy for mail that fails authentication (RFC 7489)
	MX         Kind = "MX"          // receives mail
)

// Record is a DNS record to publish.
type Record struct {
	Kind     Kind
	Type     string // "TXT" or "MX"
	Name     string // as A-labels, without a final dot
	Value    string // TXT: the whole value; MX: the host
	Priority int    // MX only
	Required bool   // the domain is verified when all required records exist
}

// ZoneValue returns the value as a zone file has it: a TXT value as strings of at most 255
// bytes, which readers concatenate (RFC 1035 section 3.3.14).
func (r Record) ZoneValue() string {
	if r.Type != "TXT" {
		return fmt.Sprintf("%d %s.", r.Priority, r.Value)
	}
	value, parts := r.Value, []string(nil)
	for len(value) > 255 {
		parts, value = append(parts, value[:255]), value[255:]
	}
	return `"` + strings.Join(append(parts, value), `" "`) + `"`
}

// ZoneLine returns the record as a line of a zone file.
func (r Record) ZoneLine() string {
	return fmt.Sprintf("%s. %d IN %s %s", r.Name, TTL, r.Type, r.ZoneValue())
}

// Key is the public part of a DKIM key.
type Key struct {
	Selector  string
	Algorithm string // "rsa" or "ed25519"
	Public    string // the value of p=
	Required  bool
}

// Name returns the DNS name of the key for a domain (RFC 6376 section 3.6.2.1).
func (k Key) Name(domain string) string { return k.Selector + "._domainkey." + domain }

// Record returns the TXT record of the key for a domain (RFC 6376 section
// 3.6.1).
func (k Key) Record(domain string) Record {
	return Record{
		Kind: DKIM, Type: "TXT", Name: k.Name(domain),
		Value: "v=DKIM1; k=" + k.Algorithm + "; p=" + k.Public, Required: k.Required,
	}
}

// Domain holds the values from which the records of a domain are made.
type Domain struct {
	Name  string // as CheckName returns it
	Token string // verification token of the account
	Keys  []Key
	// MailDomain is the installation's domain, whose SPF record names the
	// sending hosts. Hostname is the host that receives mail.
	MailDomain, Hostname string
}

// returnLabel is the label of the subdomain for return paths. A subdomain
// leaves the domain's own SPF and MX records unchanged, and still aligns with
// the From address for DMARC (RFC 7489 section 3.1.2).
const returnLabel = "bounces"

// Records returns the DNS records to publish for d.
func Records(d Domain) []Record {
	records := []Record{{
		Kind: Ownership, Type: "TXT", Name: "_postroom." + d.Name, Value: "postroom-verification=" + d.Token, Required: true,
	}}
	for _, k := range d.Keys {
		records = append(records, k.Record(d.Name))
	}
	back := returnLabel + "." + d.Name
	return append(records,
		Record{Kind: SPF, Type: "TXT", Name: back, Value: "v=spf1 include:" + d.MailDomain + " -all"},
		Record{Kind: ReturnPath, Type: "MX", Name: back, Value: d.Hostname, Priority: mxPriority},
		Record{Kind: DMARC, Type: "TXT", Name: "_dmarc." + d.Name, Value: "v=DMARC1; p=none"},
		Record{Kind: MX, Type: "MX", Name: d.Name, Value: d.Hostname, Priority: mxPriority},
	)
}

const mxPriority = 10
