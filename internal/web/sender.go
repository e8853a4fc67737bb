package web

import (
	"strings"

	"github.com/postroom/postroom/gen"
)

// sender is who a mail says it is from. Anybody can write any name, so the
// address always stands with it.
type sender struct {
	Name  string // empty when the address says it all
	Email string // empty when the mail names nobody
	// Claim says that the name looks like an address: it is only quoted.
	Claim bool
	Doubt doubt
}

// doubt is what speaks against the sender of a received mail; the zero doubt is
// none.
type doubt struct{ Text, Why, Tone string }

// senderOf describes the sender of a message. auth is null for a message that was
// not checked: our own, and one that has expired.
func senderOf(from gen.NilMailAddress, auth gen.NilAuthResults) sender {
	s := sender{Doubt: doubtOf(auth)}
	if from.Null {
		return s
	}
	s.Email = from.Value.Email
	if name := strings.TrimSpace(from.Value.Name.Or("")); !strings.EqualFold(name, s.Email) {
		s.Name, s.Claim = name, looksLikeAddress(name)
	}
	return s
}

// looksLikeAddress says whether a name could be taken for an address: it has an
// "@", or a character that is drawn like one.
func looksLikeAddress(name string) bool { return strings.ContainsAny(name, "@\uff20\ufe6b") }

// doubtOf reads the authentication results of a message. Only DMARC confirms the
// address that people see: SPF and DKIM may pass for another domain than that of
// From. An internal message is marked with the account that sent it.
func doubtOf(auth gen.NilAuthResults) doubt {
	if auth.Null || auth.Value.Dmarc == "pass" {
		return doubt{}
	}
	if auth.Value.Internal.Value == "pass" {
		return doubt{"Internal", "Sent by the account " + auth.Value.InternalAccount.Value + " of this installation.", ""}
	}
	if auth.Value.Dmarc == "fail" {
		return doubt{"sender may be forged", "The domain of the address says that it does not send such mail (DMARC fails).", "bad"}
	}
	tone := "" // amber only for a mismatch: SPF or DKIM passes for another domain
	if auth.Value.Spf == "pass" || auth.Value.Dkim == "pass" {
		tone = "warn"
	}
	return doubt{"Unverified sender", "Nothing shows that the message is from the domain of the address (DMARC does not pass).", tone}
}

// Initial is the letter that stands for the sender.
func (s sender) Initial() string {
	if s.Name == "" || s.Claim {
		return initial(s.Email)
	}
	return initial(s.Name)
}

// verdict says in words what came of a check of RFC 8601.
func verdict(result string) string {
	switch result {
	case "pass":
		return "passes"
	case "fail":
		return "fails"
	case "softfail":
		return "probably fails"
	case "none":
		return "is not set up"
	case "neutral":
		return "says nothing"
	case "policy":
		return "is correct, but too weak"
	case "temperror":
		return "could not be checked: the DNS did not answer"
	case "permerror":
		return "is set up wrongly"
	}
	return result
}
