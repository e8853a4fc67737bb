// Package mailauth authenticates the sender of a received message: SPF (RFC
// 7208) for the client that sent it, DKIM (RFC 6376, 8301, 8463) for the
// domains that signed it, and DMARC (RFC 9989) for the domain in the From
// header field. The results are those of RFC 8601.
//
// It never rejects a message: every fault becomes a result. A DNS failure is
// temperror, not fail. A mistake in a domain's records is permerror. The work
// per message is bounded: at most 10 signatures, the number of lookups that RFC
// 7208 and RFC 9989 allow, and one deadline.
//
// Lookups go through a [Resolver]; *net.Resolver is one. [Cache] is a bounded
// cache in front of a Resolver.
package mailauth

// Result is an authentication result (RFC 8601 section 2.7).
type Result string

// The results. Each method documents which of them it uses.
const (
	None      Result = "none"      // no record, no signature
	Pass      Result = "pass"      // authorised, or verified
	Fail      Result = "fail"      // explicitly not authorised, or forged
	SoftFail  Result = "softfail"  // SPF: probably not authorised
	Neutral   Result = "neutral"   // SPF: the domain makes no claim
	Policy    Result = "policy"    // DKIM: correct, but too weak
	TempError Result = "temperror" // DNS failure; a later attempt may succeed
	PermError Result = "permerror" // malformed record or signature
)
