package handlers_test

import (
	"net/http"
	"testing"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// An address belongs to one inbox, whether as its own or as an alias, and a domain
// has one catch-all inbox, of the account that the domain belongs to.
func TestInboxAddresses(t *testing.T) {
	t.Parallel()
	eachDomain(t, func(t *testing.T, s *server, zone *dns) {
		other := as(s.newKey(t, func(k *store.Key) { k.AccountID = storetest.Account(t, s.store).Seq }))
		d := s.newDomain(t, "ann.example")
		zone.publish(d, "OWNERSHIP", "DKIM")
		s.verify(t, d.ID)
		create := func(body string, opts ...option) response {
			t.Helper()
			return s.do(t, http.MethodPost, "/v1/inboxes", body, opts...)
		}
		patch := func(id, body string, opts ...option) response {
			t.Helper()
			return s.do(t, http.MethodPatch, "/v1/inboxes/"+id, body, opts...)
		}
		plain := create(`{"name":"plain"}`).want(t, http.StatusCreated)
		plain.wantAt(t, "aliases", `[]`)
		plain.wantAt(t, "catch_all", `false`)

		shared := create(`{"name":"first","aliases":["Sales","orders"]}`).want(t, http.StatusCreated)
		shared.wantAt(t, "aliases", `["sales","orders"]`)
		id := shared.str(t, "id")
		create(`{"name":"sales"}`).wantError(t, http.StatusConflict, "address_taken name").
			wantAt(t, "error.message", `"sales@`+mailDomain+` is or was in use: choose another name"`)
		create(`{"name":"sales"}`, other).wantError(t, http.StatusConflict, "address_taken name")
		create(`{"name":"b","aliases":["x","ORDERS"]}`, other).wantError(t, http.StatusConflict, "address_taken aliases[1]")
		create(`{"name":"b","aliases":["plain"]}`).wantError(t, http.StatusConflict, "address_taken aliases[0]")
		create(`{"name":"b"}`).want(t, http.StatusCreated) // the refused ones have left nothing
		for body, want := range map[string]string{
			`{"aliases":["ok","postmaster"]}`: "invalid_request aliases[1]",
			`{"aliases":["bounce"]}`:          "invalid_request aliases[0]",
			`{"aliases":["a","A"]}`:           "invalid_request aliases[1]",
			`{"aliases":["first"]}`:           "invalid_request aliases[0]",
			`{"aliases":["a+b"]}`:             "invalid_request aliases[0]",
			`{"aliases":["*"]}`:               "invalid_request aliases[0]",
			`{"aliases":"sales"}`:             "invalid_request aliases",
			`{"catch_all":true}`:              "invalid_request catch_all",
		} {
			patch(id, body, broken).wantError(t, http.StatusBadRequest, want)
		}
		patch(id, `{"aliases":["orders","later"]}`).want(t, http.StatusOK).wantAt(t, "aliases", `["orders","later"]`)
		patch(id, `{"display_name":"A"}`).want(t, http.StatusOK).wantAt(t, "aliases", `["orders","later"]`)
		narrow := as(s.newKey(t, onlyInboxes(id)))
		patch(id, `{"aliases":["orders","more"]}`, narrow).wantError(t, http.StatusForbidden, "insufficient_scope aliases[1]")
		patch(id, `{"aliases":["orders"]}`, narrow).want(t, http.StatusOK)

		// A removed alias of the shared domain, and one of a deleted inbox, stay with the
		// account: another account neither receives nor sends mail there.
		create(`{"name":"sales"}`, other).wantError(t, http.StatusConflict, "address_taken name")
		create(`{"name":"c","aliases":["sales"]}`, other).wantError(t, http.StatusConflict, "address_taken aliases[0]")
		patch(create(`{"aliases":["passing"]}`, other).want(t, http.StatusCreated).str(t, "id"), `{"aliases":[]}`, other).want(t, http.StatusOK)
		gone := create(`{"name":"gone","aliases":["lost"]}`, other).want(t, http.StatusCreated).str(t, "id")
		s.do(t, http.MethodDelete, "/v1/inboxes/"+gone, "", other).want(t, http.StatusOK)
		for _, name := range []string{"passing", "lost", "gone"} {
			create(`{"name":"`+name+`"}`).wantError(t, http.StatusConflict, "address_taken name")
			create(`{"aliases":["`+name+`"]}`).wantError(t, http.StatusConflict, "address_taken aliases[0]")
			s.do(t, http.MethodPost, "/v1/emails", `{"from":"`+name+`@`+mailDomain+`","to":"x@out.example","subject":"s","text":"t"}`).
				wantError(t, http.StatusForbidden, "domain_not_verified from")
		}
		create(`{"aliases":["passing","lost"]}`, other).want(t, http.StatusCreated)
		create(`{"name":"later"}`).want(t, http.StatusCreated) // was removed

		all := create(`{"name":"all","domain":"ann.example","catch_all":true,"aliases":["sales"]}`).want(t, http.StatusCreated)
		all.wantAt(t, "catch_all", `true`)
		second := create(`{"name":"second","domain":"ann.example"}`).want(t, http.StatusCreated).str(t, "id")
		taken := patch(second, `{"catch_all":true}`)
		taken.wantError(t, http.StatusConflict, "address_taken catch_all")
		taken.wantText(t, all.str(t, "id"))
		create(`{"name":"third","domain":"ann.example","catch_all":true}`).wantError(t, http.StatusConflict, "address_taken catch_all")
		create(`{"name":"all","domain":"ann.example","catch_all":true}`, other).wantError(t, http.StatusForbidden, "domain_not_verified domain")
		patch(second, `{"catch_all":true}`, as(s.newKey(t, onlyInboxes(second)))).wantError(t, http.StatusForbidden, "insufficient_scope catch_all")
		s.do(t, http.MethodDelete, "/v1/inboxes/"+all.str(t, "id"), "").want(t, http.StatusOK).wantAt(t, "aliases", `["sales"]`)
		patch(second, `{"catch_all":true,"aliases":["sales"]}`).want(t, http.StatusOK).wantAt(t, "catch_all", `true`)
		patch(second, `{"catch_all":false}`).want(t, http.StatusOK)
		create(`{"name":"third","domain":"ann.example","catch_all":true}`).want(t, http.StatusCreated)
	})
}
