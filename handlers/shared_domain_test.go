package handlers_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// TestSendersOnTheSharedDomain sends emails from addresses on the mail domain of the
// installation. The first account uses any address that is not another account's
// inbox. Every other account uses those of its own inboxes.
func TestSendersOnTheSharedDomain(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		mine := s.newInbox(t)
		first := as(s.key)
		s.account = storetest.Account(t, s.store).Seq
		second, theirs := as(s.newKey(t)), s.newInbox(t)
		suspect := s.newInbox(t, func(in *store.Inbox) { in.Address = "bounce@" + mailDomain }) // older than the reservation of the name
		send := func(from string, key option) response {
			return s.do(t, http.MethodPost, "/v1/emails", `{"from":"`+from+`","to":"ann@out.example","subject":"s","text":"t"}`, key)
		}
		batch := func(from string, key option) response {
			return s.do(t, http.MethodPost, "/v1/emails/batch", `{"from":"`+from+`","recipients":[{"to":"ann@out.example"}],"subject":"s","text":"t"}`, key)
		}
		for _, name := range []string{
			"postmaster", "abuse", "security", "admin", "root", "mailer-daemon", "hostmaster", "webmaster", "noreply", "no-reply", "bounce", "hello",
			"POSTMASTER", "admin+tag", "bounce+tag",
		} {
			from := name + "@" + mailDomain
			if lower := strings.ToLower(name); lower != "bounce" && lower != "bounce+tag" { // the inbox of the second account in this test
				send(from, first).want(t, http.StatusCreated)
				batch(from, first).want(t, http.StatusCreated)
			}
			send(from, second).wantError(t, http.StatusForbidden, "domain_not_verified from")
			batch("Support <"+from+">", second).wantError(t, http.StatusForbidden, "domain_not_verified from")
		}
		send(suspect.Address, second).wantError(t, http.StatusForbidden, "domain_not_verified from")
		for _, from := range []string{theirs.Address, strings.Replace(theirs.Address, "@", "+tag@", 1), strings.ToUpper(theirs.Address)} {
			send(from, second).want(t, http.StatusCreated)
			send(from, first).wantError(t, http.StatusForbidden, "domain_not_verified from")
		}
		send(mine.Address, first).want(t, http.StatusCreated)
		send(mine.Address, second).wantError(t, http.StatusForbidden, "domain_not_verified from")
		s.do(t, http.MethodPost, "/v1/inboxes", `{"name":"bounce"}`, first).wantError(t, http.StatusBadRequest, "invalid_request name")
	})
}
