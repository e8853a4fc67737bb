package mail

import "strings"

const (
	sesDomain = "@amazonses.com>"
	sesRegion = ".amazonses.com>"
)

// SESMessageID returns the Message-ID that a message gets from Amazon SES when its
// server names id in the reply. The domain lacks the region, which the reply does not
// name.
func SESMessageID(id string) string { return "<" + id + sesDomain }

// IsSESMessageID reports whether an identifier is of the form of SESMessageID, which
// no message has.
func IsSESMessageID(id string) bool { return strings.HasSuffix(id, sesDomain) }

// WithoutSESRegion returns a Message-ID of Amazon SES, such as
// <0100-1@eu-central-1.amazonses.com>, in the form of SESMessageID. It returns "" for
// other identifiers.
func WithoutSESRegion(id string) string {
	if !strings.HasSuffix(id, sesRegion) {
		return ""
	}
	return id[:strings.LastIndexByte(id, '@')+1] + sesDomain[1:]
}
