// Package mailauth says how far the sender of a received mail can be believed:
// SPF (RFC 7208) for the client that handed the mail over, DKIM (RFC 6376,
// 8301, 8463) for the domains that signed it, and DMARC (RFC 9989) for whether
// one of them speaks for the address in the header From. The verdicts are
// those of RFC 8601.
//
// It judges and never refuses: whatever is wrong with a mail, its signatures or
// the DNS becomes a verdict. Trouble with the DNS is temperror, which is not
// fail. What the domain's owner has written wrong is permerror. The work that
// one mail can cause is bounded: at most 10 signatures, the lookups that RFC
// 7208 and RFC 9989 allow, and one deadline for all of it.
//
// Names are asked of a [Resolver], which net.Resolver is. [Cache] puts one
// behind a bounded memory, so that busy senders cost few questions.
package mailauth

// Result is one verdict, as RFC 8601 section 2.7 names them.
type Result string

// The verdicts. Which of them a method can give stands at its result type.
const (
	None      Result = "none"      // nothing to judge: no record, no signature
	Pass      Result = "pass"      // authorised, or verified
	Fail      Result = "fail"      // explicitly not authorised, or forged
	SoftFail  Result = "softfail"  // SPF: probably not authorised
	Neutral   Result = "neutral"   // SPF: nothing is claimed
	Policy    Result = "policy"    // DKIM: correct, but not acceptable to us
	TempError Result = "temperror" // the DNS did not answer; later it may
	PermError Result = "permerror" // what is published or signed cannot be read
)
