package queue

import (
	"strings"

	"github.com/postroom/postroom/store"
)

// simulate returns the result for a test-mode recipient. The local part, or the
// last tag in it, selects the result. It uses no network.
//
// Inbox messages have no states for "opened" and "clicked": those recipients are
// delivered. "delayed" is deferred once and then delivered. "softbounce" bounces
// at once, as if its retries were used up.
func simulate(r store.Claimed) result {
	local, _, _ := strings.Cut(strings.ToLower(r.Email), "@")
	if i := strings.LastIndexByte(local, '+'); i >= 0 {
		local = local[i+1:]
	}
	switch local {
	case "bounced", "hardbounce":
		return result{status: store.RecipientBounced, response: "550 5.1.1 Simulated: no such mailbox"}
	case "softbounce":
		return result{status: store.RecipientBounced, response: "452 4.2.2 Simulated: mailbox full"}
	case "complained":
		return result{status: store.RecipientComplained, response: "250 2.0.0 Simulated: marked as spam"}
	case "failed":
		return result{status: store.RecipientFailed, response: "554 5.3.0 Simulated: failed"}
	case "opened", "clicked":
		if isEmail := r.Message.InboxSeq == 0; !isEmail {
			break
		}
		if local == "opened" {
			return result{status: store.RecipientOpened, response: "250 2.0.0 Simulated: delivered and opened"}
		}
		return result{status: store.RecipientClicked, response: "250 2.0.0 Simulated: delivered and clicked"}
	case "suppressed":
		return result{status: store.RecipientSuppressed, response: "Simulated: on the suppression list"}
	case "delayed":
		if r.Attempts < 2 {
			return result{status: store.RecipientQueued, response: "451 4.4.1 Simulated: delayed"}
		}
	}
	return result{status: store.RecipientDelivered, response: "250 2.0.0 Simulated: delivered"}
}
