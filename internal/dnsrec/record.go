// Package dnsrec says which DNS records a domain needs so that mail can be sent
// and received for it, and which of them it has.
//
// What the DNS answers is one of three things: a record is there, it is not, or
// nobody knows, because a server did not answer. The third is never taken for
// the second: trouble of the DNS that passes costs no domain its standing. A
// whole look-up takes at most Timeout.
package dnsrec

// TTL is the time to live, in seconds, that records are proposed with.
const TTL = 3600

// Kind is what a record is for.
type Kind string

// The kinds of records.
const (
	Ownership  Kind = "OWNERSHIP"   // that the domain is the account's
	DKIM       Kind = "DKIM"        // a key that its mail is signed with (RFC 6376)
	SPF        Kind = "SPF"         // which hosts send with its return path (RFC 7208)
	ReturnPath Kind = "RETURN_PATH" // where bounces of its mail go
	DMARC      Kind = "DMARC"       // what receivers do with mail that fails (RFC 7489)
	MX         Kind = "MX"          // where its mail goes
)

// Record is a DNS record to publish.
type Record struct {
	Kind     Kind
	Type     string // "TXT" or "MX"
	Name     string // in A-labels, without a dot at the end
	Value    string // of TXT the whole value, of MX the host
	Priority int    // of MX
	Required bool   // the domain is verified once all required records are there
}

// Key is the public half of a DKIM key.
type Key struct {
	Selector  string
	Algorithm string // "rsa" or "ed25519"
	Public    string // what stands in p=
	Required  bool
}

// Name is where the key is published for a domain (RFC 6376 section 3.6.2.1).
func (k Key) Name(domain string) string { return k.Selector + "._domainkey." + domain }

// Record is the TXT record that publishes the key for a domain (RFC 6376 section
// 3.6.1).
func (k Key) Record(domain string) Record {
	return Record{
		Kind: DKIM, Type: "TXT", Name: k.Name(domain),
		Value: "v=DKIM1; k=" + k.Algorithm + "; p=" + k.Public, Required: k.Required,
	}
}

// Domain is what the records of a domain follow from.
type Domain struct {
	Name  string // as CheckName returns it
	Token string // of the account
	Keys  []Key
	// MailDomain is the install's own domain, whose SPF record names the hosts
	// that send; Hostname is the host that takes mail.
	MailDomain, Hostname string
}

// returnLabel is the label below a domain that its return paths are in. A name
// of its own keeps the domain's SPF record and MX hosts as they are, and is
// still aligned with the From address for DMARC (RFC 7489 section 3.1.2).
const returnLabel = "bounces"

// Records returns what is to be published for d.
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
