package main

import (
	"bytes"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net"
	netmail "net/mail"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/dns"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mailauth"
	"github.com/postroom/postroom/smtp/outbound"
	"github.com/postroom/postroom/smtp/smtptest"
)

// bulkMessages is how many messages are checked.
const bulkMessages = min(100, signedMessages)

// O10: messages meet the requirements of the large mailbox providers for bulk
// senders since 2024 ("Email sender guidelines" of Gmail, "Sender Best Practices"
// of Yahoo), with the records that `postroom domain show` prints. The PTR record
// of the sending host is checked when a domain is verified; complaints are
// counted in the store.
func TestMailKeepsTheRulesForBulkSenders(t *testing.T) {
	t.Parallel()
	o, data := newOutside(t), t.TempDir()
	s := o.serve(t, data)
	records := txtRecords(t, waitForSigningKeys(t, data, o.env))
	zones := smtptest.Zones{"out.example.com.": smtptest.A("127.0.0.1")}
	for name, value := range records {
		zones[name+"."] = smtptest.Zone{TXT: []string{value}}
	}
	own := zones["agents.example.com."]
	own.MX = []net.MX{{Host: "out.example.com.", Pref: 10}}
	zones["agents.example.com."] = own
	l := &linter{
		records: records, resolver: outbound.NewResolver(smtptest.NewDNS(t, zones)),
	}

	messages := o.take(t, sendVaried(t, s, bulkMessages))

	if len(messages) != bulkMessages {
		t.Fatalf("%d of %d messages arrived", len(messages), bulkMessages)
	}
	for _, m := range messages {
		for _, fault := range l.faults(t, m) {
			t.Errorf("%s: %s", headerID(t, m), fault)
		}
	}
}

// linter checks messages against the rules.
type linter struct {
	records  map[string]string
	resolver dns.Resolver
}

// faults lists the rules that a message breaks.
func (l *linter) faults(t *testing.T, m smtptest.Message) (faults []string) {
	t.Helper()
	parsed, err := netmail.ReadMessage(bytes.NewReader(m.Data))
	if err != nil {
		return []string{err.Error()}
	}
	header := parsed.Header
	from, err := header.AddressList("From")
	if err != nil || len(from) != 1 {
		return []string{fmt.Sprintf("From is %q", header["From"])}
	}
	_, domain, _ := strings.Cut(from[0].Address, "@")
	rule := func(holds bool, fault string, values ...any) {
		if !holds {
			faults = append(faults, fmt.Sprintf(fault, values...))
		}
	}
	// Gmail: "Use a TLS connection for transmitting email."
	rule(m.TLS, "came without TLS")
	// Gmail: "Ensure that sending domains or IPs have valid forward and reverse
	// DNS records." The name of the greeting is the sender's (RFC 5321 4.1.1.1).
	addrs, err := l.resolver.LookupNetIP(t.Context(), "ip4", m.HELO)
	client, _, _ := net.SplitHostPort(m.Peer)
	rule(err == nil && slices.Contains(addrs, netip.MustParseAddr(client)), "the host is called %s, which is %v", m.HELO, addrs)

	l.authenticated(t, m, domain, client, rule)
	l.wellFormed(m, header, domain, rule)
	l.unsubscribable(isMarketing(numberOf(t, m.To[0])), header, rule)
	return faults
}

type rule func(holds bool, fault string, values ...any)

// authenticated is: Gmail "Set up SPF and DKIM email authentication", "DMARC ...
// your enforcement policy can be set to none" and "the domain in the sender's
// From: header must be aligned with either the SPF domain or the DKIM domain":
// both are here; keys of 1024 bits or more, 2048 recommended.
func (l *linter) authenticated(t *testing.T, m smtptest.Message, domain, client string, rule rule) {
	t.Helper()
	check := mailauth.NewChecker(l.resolver, 0, nil).Start(t.Context(), mailauth.Envelope{
		Client: netip.MustParseAddr(client), HELO: m.HELO, MailFrom: m.From,
	})
	if err := check.Read(bytes.NewReader(m.Data), mail.DefaultLimits()); err != nil {
		t.Fatal(err)
	}
	v := check.Wait()
	rule(v.SPF.Result == mailauth.Pass, "SPF of %s is %s: %s", m.From, v.SPF.Result, v.SPF.Reason)
	rule(v.SPF.Domain == domain || strings.HasSuffix(v.SPF.Domain, "."+domain), "SPF is of %s, and From of %s", v.SPF.Domain, domain)
	rule(len(v.DKIM) == 2, "%d signatures", len(v.DKIM))
	for _, sig := range v.DKIM {
		rule(sig.Result == mailauth.Pass && sig.SignsFrom, "the signature %s is %s: %s", sig.Algorithm, sig.Result, sig.Reason)
		rule(sig.Domain == domain, "the signature is of %s, and From of %s", sig.Domain, domain)
	}
	rule(v.DMARC.Result == mailauth.Pass && v.DMARC.Record == domain, "DMARC of %s is %s: %s", v.DMARC.Record, v.DMARC.Result, v.DMARC.Reason)
	for name, value := range l.records {
		if _, public, ok := strings.Cut(value, "k=rsa; p="); ok {
			der, err := base64.StdEncoding.DecodeString(public)
			rule(err == nil, "%s: %v", name, err)
			key, err := x509.ParsePKIXPublicKey(der)
			rsaKey, ok := key.(*rsa.PublicKey)
			rule(err == nil && ok && rsaKey.N.BitLen() >= 2048, "%s is a key of too few bits", name)
		}
	}
}

var (
	msgID      = regexp.MustCompile(`^<[^<>@\s]+@([a-z0-9.-]+)>$`)
	singletons = []string{
		"From", "Sender", "Reply-To", "To", "Cc", "Subject", "Date", "Message-Id", "In-Reply-To", "References",
		"Mime-Version", "Content-Type", "Content-Transfer-Encoding",
	}
)

// wellFormed is: Gmail and Yahoo, "Format messages according to the Internet
// Message Format standard (RFC 5322)", with "valid Message-ID" and
// "single-instance message headers should be included only once", and no Bcc
// header.
func (*linter) wellFormed(m smtptest.Message, header netmail.Header, domain string, rule rule) {
	for _, name := range singletons { // RFC 5322 3.6, RFC 2045
		rule(len(header[name]) <= 1, "%d fields %s", len(header[name]), name)
	}
	for _, name := range []string{"From", "To", "Date", "Message-Id", "Subject", "Mime-Version"} {
		rule(len(header[name]) == 1, "no %s", name)
	}
	rule(len(header["Bcc"]) == 0, "Bcc is in the header")
	date, err := header.Date()
	rule(err == nil && time.Since(date).Abs() < time.Hour, "Date is %q", header.Get("Date"))
	id := msgID.FindStringSubmatch(header.Get("Message-Id"))
	rule(id != nil && id[1] == domain, "Message-ID is %q", header.Get("Message-Id")) // RFC 5322 3.6.4
	head, _, _ := bytes.Cut(m.Data, []byte("\r\n\r\n"))
	for line := range bytes.Lines(m.Data) {
		rule(len(line) <= 1000 && bytes.HasSuffix(line, []byte("\r\n")), "a line of %d bytes", len(line)) // RFC 5322 2.1.1
		rule(bytes.IndexByte(line[:max(0, len(line)-2)], '\r') < 0, "a CR alone")
	}
	ascii := strings.IndexFunc(string(head), func(r rune) bool { return r > 126 }) < 0
	rule(ascii || m.UTF8, "bytes of eight bits in the header, without SMTPUTF8") // RFC 5322 2.2, RFC 6531 3.4
}

// unsubscribable is: Gmail and Yahoo, "Marketing messages and subscribed messages
// must support one-click unsubscribe", as RFC 8058 section 3.1 says: one https
// address, and both fields under a signature that holds. Mail that is not
// marketing has none.
func (*linter) unsubscribable(marketing bool, header netmail.Header, rule rule) {
	list, post := header.Get("List-Unsubscribe"), header.Get("List-Unsubscribe-Post")
	if !marketing {
		rule(list == "" && post == "", "List-Unsubscribe on mail that is not marketing: %s", list)
		return
	}
	rule(len(header["List-Unsubscribe"]) == 1 && len(header["List-Unsubscribe-Post"]) == 1, "List-Unsubscribe is not there once: %v", header["List-Unsubscribe"])
	rule(post == "List-Unsubscribe=One-Click", "List-Unsubscribe-Post is %q", post)
	u, err := url.Parse(strings.Trim(strings.TrimSpace(list), "<>"))
	rule(err == nil && u.Scheme == "https" && u.Host == "mail.example.com" && u.Path != "", "List-Unsubscribe is %q", list)
	for _, sig := range header["Dkim-Signature"] {
		signed := strings.ToLower(strings.Join(strings.Fields(sig), ""))
		rule(strings.Contains(signed, ":list-unsubscribe:list-unsubscribe-post"), "List-Unsubscribe is not signed: %s", sig)
	}
}
