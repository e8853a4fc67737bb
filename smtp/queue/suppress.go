package queue

import (
	"context"
	"slices"
	"strings"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/store"
)

// suppressionOf is why a recipient is not to be sent to any more after an
// attempt, and empty when it may be: a permanent answer about the address, or a
// complaint. What is simulated says nothing about anybody, and that we have no such
// inbox holds only until it is made or revived: asking ourselves again costs nobody.
func suppressionOf(c store.Claimed, v verdict) store.SuppressionReason {
	switch {
	case c.Message.TestMode, v.own:
	case v.status == store.RecipientComplained:
		return store.SuppressedComplaint
	case v.status == store.RecipientBounced && aboutRecipient(v.response):
		return store.SuppressedHardBounce
	}
	return ""
}

// aboutRecipient says whether an answer ends the attempts because of the address.
// By the enhanced code (RFC 3463 section 3) what a server has against the mail,
// against us, or against the way that it came says nothing about the address:
// neither does 5.1.7 or 5.1.8, about the sender's, nor 5.2.3, about the size.
func aboutRecipient(response string) bool {
	if !strings.HasPrefix(response, "5") {
		return false // a soft bounce: the retries are used up
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

// enhancedOf is the enhanced status code of a response such as 550 5.1.1 No.
func enhancedOf(response string) string {
	_, rest, _ := strings.Cut(response, " ")
	enhanced, _, _ := strings.Cut(rest, " ")
	return enhanced
}

// splitSuppressed takes those out of what was claimed who are on the list of
// their account: who bounced, complained or unsubscribed after the mail was
// accepted gets it no more, also when it is scheduled or tried again.
func (q *Queue) splitSuppressed(ctx context.Context, claimed []store.Claimed) (send, skip []store.Claimed, err error) {
	about := make([]store.Addressee, len(claimed))
	for i, c := range claimed {
		about[i] = store.Addressee{
			AccountID: c.AccountID, EmailFold: mail.FoldAddress(c.Email), Category: c.Category,
		}
	}
	suppressed, err := q.store.SuppressedAmong(ctx, about)
	if err != nil || !slices.Contains(suppressed, true) {
		return claimed, nil, err
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
