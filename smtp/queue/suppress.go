package queue

import (
	"context"
	"slices"
	"strings"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/store"
)

// suppressionOf returns the reason to suppress a recipient after an attempt, or
// "": a permanent failure of the address, or a complaint. Simulated results do
// not count. Our own refusals do not count either: an inbox may be created later,
// and a server may move to a public address.
func suppressionOf(c store.Claimed, v result) store.SuppressionReason {
	switch {
	case c.Message.TestMode, v.own:
	case v.status == store.RecipientComplained:
		return store.SuppressedComplaint
	case v.status == store.RecipientBounced && aboutRecipient(v.response):
		return store.SuppressedHardBounce
	}
	return ""
}

// aboutRecipient reports whether a permanent failure concerns the recipient's
// address. By the enhanced code (RFC 3463 section 3), failures of content, policy
// or transport do not, nor do 5.1.7 and 5.1.8 (sender's address) and 5.2.3
// (size).
func aboutRecipient(response string) bool {
	if !strings.HasPrefix(response, "5") {
		return false // a soft bounce after the last retry
	}
	enhanced := enhancedOf(response)
	class, isEnhanced := strings.CutPrefix(enhanced, "5.")
	switch subject, _, _ := strings.Cut(class, "."); {
	case !isEnhanced:
		return true
	case enhanced == "5.1.7", enhanced == "5.1.8", enhanced == "5.2.3":
		return false
	default:
		return subject == "0" || subject == "1" || subject == "2"
	}
}

// enhancedOf returns the enhanced status code of a response such as 550 5.1.1 No.
func enhancedOf(response string) string {
	_, rest, _ := strings.Cut(response, " ")
	enhanced, _, _ := strings.Cut(rest, " ")
	return enhanced
}

// splitSuppressed separates the suppressed recipients from the rest. Addresses
// that bounced, complained or unsubscribed after the message was accepted receive
// nothing more, even if it was scheduled or is retried.
func (q *Queue) splitSuppressed(ctx context.Context, claimed []store.Claimed) (send, skip []store.Claimed, err error) {
	about := make([]store.Addressee, 0, len(claimed))
	of := make([]int, 0, len(claimed)) // the index in claimed of each in about
	for i, c := range claimed {
		for _, email := range mail.AddressSpellings(c.Email) {
			about = append(about, store.Addressee{AccountID: c.AccountID, EmailFold: email, Category: c.Category})
			of = append(of, i)
		}
	}
	found, err := q.store.SuppressedAmong(ctx, about)
	if err != nil || !slices.Contains(found, true) {
		return claimed, nil, err
	}
	suppressed := make([]bool, len(claimed))
	for i, is := range found {
		suppressed[of[i]] = suppressed[of[i]] || is
	}
	for i, c := range claimed {
		if suppressed[i] {
			skip = append(skip, c)
		} else {
			send = append(send, c)
		}
	}
	return send, skip, nil
}
