package web

import (
	"strings"

	"github.com/postroom/postroom/gen"
)

// sender is the From of a message. A sender can write any name, so pages always
// show the address with it.
type sender struct {
	Name  string // empty if the message has no display name
	Email string // empty when the message has no sender
	// Claim reports that the name looks like an address. Pages then show it in
	// quotes.
	Claim     bool
	AuthBadge authBadge
}

// authBadge is the badge beside the sender of a received message; the zero value
// shows none.
type authBadge struct{ Text, Why, Tone string }

// senderOf describes the sender of a message. auth is null for a message that was
// not checked: our own, and one that has expired.
func senderOf(from gen.NilMailAddress, auth gen.NilAuthResults) sender {
	s := sender{AuthBadge: authBadgeOf(auth)}
	if from.Null {
		return s
	}
	s.Email = from.Value.Email
	if name := strings.TrimSpace(from.Value.Name.Or("")); !strings.EqualFold(name, s.Email) {
		s.Name, s.Claim = name, looksLikeAddress(name)
	}
	return s
}

// looksLikeAddress reports whether a name could be mistaken for an address: it
// contains an "@" or a character that looks like one.
func looksLikeAddress(name string) bool { return strings.ContainsAny(name, "@\uff20\ufe6b") }

// authBadgeOf reads the authentication results of a message. Only DMARC confirms
// the From address: SPF and DKIM may pass for another domain. An internal message
// is marked with the account that sent it.
func authBadgeOf(auth gen.NilAuthResults) authBadge {
	if auth.Null || auth.Value.Dmarc == "pass" {
		return authBadge{}
	}
	if auth.Value.Internal.Value == "pass" {
		return authBadge{"Internal", "Sent by the account " + auth.Value.InternalAccount.Value + " of this installation.", ""}
	}
	if auth.Value.Dmarc == "fail" {
		return authBadge{"Sender may be forged", "The message fails the DMARC check of the sender's domain.", "bad"}
	}
	tone := "" // amber only for a mismatch: SPF or DKIM passes for another domain
	if auth.Value.Spf == "pass" || auth.Value.Dkim == "pass" {
		tone = "warn"
	}
	return authBadge{"Unverified sender", "DMARC did not confirm that the message is from the sender's domain.", tone}
}

// authSummary describes the authentication results of a message in a few words.
// It is amber or red only for a failure or a mismatch.
func authSummary(auth gen.NilAuthResults) authBadge {
	if auth.Value.Dmarc == "pass" {
		return authBadge{Text: "Verified sender", Tone: "good"}
	}
	return authBadgeOf(auth)
}

// Initial returns the letter that represents the sender.
func (s sender) Initial() string {
	if s.Name == "" || s.Claim {
		return initial(s.Email)
	}
	return initial(s.Name)
}

// results describe the authentication results of RFC 8601 that need words.
var results = map[string]string{
	"none": "not set up", "policy": "valid but too weak", "temperror": "not checked: DNS lookup failed", "permerror": "invalid setup",
}
