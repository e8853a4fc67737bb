package handlers_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

const idempotencyKey = "Idempotency-Key"

// onceable lists the operations that accept an idempotency key, each with two
// different bodies.
func (s *server) onceable(t *testing.T) map[string]struct{ path, body, other string } {
	t.Helper()
	in := s.newInbox(t)
	m := s.receive(t, in, "Subject: Hi")
	email := `{"from":"hello@` + mailDomain + `","subject":"s",`
	type call = struct{ path, body, other string }
	return map[string]call{
		"creating an inbox": {"/v1/inboxes", `{"display_name":"a"}`, `{"display_name":"b"}`},
		"sending":           {"/v1/inboxes/" + in.ID + "/messages", `{"to":"a@b.example","subject":"s","text":"t"}`, `{"to":"a@b.example","subject":"s","text":"u"}`},
		"replying":          {"/v1/messages/" + m.ID + "/reply", `{"text":"t"}`, `{"text":"u"}`},
		"forwarding":        {"/v1/messages/" + m.ID + "/forward", `{"to":"a@b.example"}`, `{"to":"c@b.example"}`},
		"an email":          {"/v1/emails", email + `"to":"a@b.example","text":"t"}`, email + `"to":"a@b.example","text":"u"}`},
		"a batch":           {"/v1/emails/batch", email + `"recipients":[{"to":"a@b.example"}],"text":"t"}`, email + `"recipients":[{"to":"c@b.example"}],"text":"t"}`},
		"simulating":        {"/v1/inboxes/" + in.ID + "/simulate", `{"from":"a@b.example"}`, `{"from":"c@b.example"}`},
	}
}

func TestIdempotency(t *testing.T) {
	s := serve(t)
	calls := s.onceable(t)
	for _, name := range slices.Sorted(maps.Keys(calls)) { // retention is 7 days, and each round takes one
		call := calls[name]
		key := with(idempotencyKey, name)
		first := s.do(t, http.MethodPost, call.path, call.body, key).want(t, http.StatusCreated)
		if first.header.Get("Idempotent-Replayed") != "" {
			t.Errorf("%s: the first response is marked as a repeat", name)
		}
		s.clock.Add(time.Hour)
		again := s.do(t, http.MethodPost, call.path, call.body, key).want(t, http.StatusCreated)
		again.wantSame(t, first)
		if again.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s: the repeat is not marked as one", name)
		}
		spaced := strings.ReplaceAll(call.body, `":"`, "\" :\n \"")
		s.do(t, http.MethodPost, call.path, spaced, key).want(t, http.StatusCreated).wantSame(t, first)

		s.do(t, http.MethodPost, call.path, call.other, key).
			wantError(t, http.StatusUnprocessableEntity, "idempotency_key_reused "+idempotencyKey)
		if s.do(t, http.MethodPost, call.path, call.body, with(idempotencyKey, name+"2")).want(t, http.StatusCreated).str(t, "id") == first.str(t, "id") {
			t.Errorf("%s: another key got the same response", name)
		}
		if s.do(t, http.MethodPost, call.path, call.body).want(t, http.StatusCreated).str(t, "id") == first.str(t, "id") {
			t.Errorf("%s: a call without a key got the same response", name)
		}
		s.clock.Add(23 * time.Hour)
		if s.do(t, http.MethodPost, call.path, call.body, key).want(t, http.StatusCreated).str(t, "id") == first.str(t, "id") {
			t.Errorf("%s: after 24 hours the response is still cached", name)
		}
	}
}

// A retry may move the key between the header and the body field.
func TestIdempotencyKeyInHeaderOrBodyIsOneRequest(t *testing.T) {
	s := serve(t)
	const path = "/v1/emails"
	fields := `"from":"hello@` + mailDomain + `","subject":"s","to":"a@b.example","text":"t"}`
	inBody := `{"idempotencyKey":"k",` + fields
	first := s.do(t, http.MethodPost, path, `{`+fields, with(idempotencyKey, "k")).want(t, http.StatusCreated)
	s.do(t, http.MethodPost, path, inBody).want(t, http.StatusCreated).wantSame(t, first)
	s.do(t, http.MethodPost, path, inBody, with(idempotencyKey, "k")).want(t, http.StatusCreated).wantSame(t, first)
	s.do(t, http.MethodPost, path, inBody, with(idempotencyKey, "other")).wantError(t, http.StatusBadRequest, "invalid_request idempotencyKey")
}

// The same key in test mode and live mode belongs to two requests.
func TestTestKeysHaveSeparateIdempotencyKeys(t *testing.T) {
	s := serve(t)
	test := as(s.newKey(t, func(k *store.Key) { k.Mode = store.KeyTest }))
	key := with(idempotencyKey, "k")
	for name, call := range s.onceable(t) {
		simulated := s.do(t, http.MethodPost, call.path, call.other, key, test).want(t, http.StatusCreated)
		live := s.do(t, http.MethodPost, call.path, call.body, key).want(t, http.StatusCreated)
		if live.str(t, "id") == simulated.str(t, "id") {
			t.Errorf("%s: the live request got the response of the test request", name)
		}
		s.do(t, http.MethodPost, call.path, call.other, key, test).want(t, http.StatusCreated).wantSame(t, simulated)
	}
}

func TestIdempotencyKeysBelongToOneOperationOfOneAccount(t *testing.T) {
	s := serve(t)
	key := with(idempotencyKey, "k")
	one, two := s.newInbox(t), s.newInbox(t)
	mine := s.do(t, http.MethodPost, "/v1/inboxes", `{}`, key).want(t, http.StatusCreated)
	body := `{"to":"a@b.example","subject":"s","text":"t"}`
	first := s.do(t, http.MethodPost, "/v1/inboxes/"+one.ID+"/messages", body, key).want(t, http.StatusCreated)
	second := s.do(t, http.MethodPost, "/v1/inboxes/"+two.ID+"/messages", body, key).want(t, http.StatusCreated)
	if first.str(t, "id") == second.str(t, "id") {
		t.Error("two paths got the same response")
	}
	sameAccount := s.newKey(t)
	s.do(t, http.MethodPost, "/v1/inboxes", `{}`, key, as(sameAccount)).want(t, http.StatusCreated).wantSame(t, mine)

	s.account = s.otherInbox(t).AccountID
	theirs := s.do(t, http.MethodPost, "/v1/inboxes", `{}`, key, as(s.newKey(t))).want(t, http.StatusCreated)
	if theirs.str(t, "id") == mine.str(t, "id") {
		t.Error("an account got the response of another")
	}
}

// A key that cannot see an inbox gets no cached response about it.
func TestIdempotencyShowsNothingHidden(t *testing.T) {
	s := serve(t)
	limited := as(s.newKey(t, onlyInboxes(s.newInbox(t).ID)))
	for name, call := range s.onceable(t) {
		key := with(idempotencyKey, name)
		s.do(t, http.MethodPost, call.path, call.body, key).want(t, http.StatusCreated)
		for _, body := range []string{call.body, call.other} {
			if res := s.do(t, http.MethodPost, call.path, body, key, limited); res.status != 404 && res.status != 403 {
				t.Errorf("%s: got %d: %s", name, res.status, res.body)
			}
		}
	}
}

// Only successes are cached: a failed call can be repeated.
func TestIdempotencyKeepsNoErrors(t *testing.T) {
	s := serve(t)
	key := with(idempotencyKey, "k")
	in := s.newInbox(t)
	s.do(t, http.MethodPost, "/v1/inboxes", `{"name":"`+in.Name+`"}`, key).want(t, http.StatusConflict)
	s.do(t, http.MethodPost, "/v1/inboxes", `{"name":""}`, key, broken).want(t, http.StatusBadRequest)
	s.do(t, http.MethodPost, "/v1/inboxes", `{"name":"free"}`, key).want(t, http.StatusCreated)

	path := "/v1/inboxes/" + in.ID + "/messages"
	expired := s.newInbox(t, func(in *store.Inbox) {
		at := store.NewTime(begin)
		in.ExpiresAt = &at
	})
	body := `{"to":"a@b.example","subject":"s","text":"t"}`
	s.do(t, http.MethodPost, "/v1/inboxes/"+expired.ID+"/messages", body, key).want(t, http.StatusForbidden)
	s.do(t, http.MethodPatch, "/v1/inboxes/"+expired.ID, `{"expires_at":null}`).want(t, http.StatusOK)
	s.do(t, http.MethodPost, "/v1/inboxes/"+expired.ID+"/messages", body, key).want(t, http.StatusCreated)
	s.do(t, http.MethodPost, path, body, key).want(t, http.StatusCreated)
}

// Cached responses about an inbox are deleted with it.
func TestIdempotencyForgetsDeletedInboxes(t *testing.T) {
	s := serve(t)
	key := with(idempotencyKey, "k")
	id := s.do(t, http.MethodPost, "/v1/inboxes", `{"display_name":"secret"}`, key).want(t, http.StatusCreated).str(t, "id")
	path, body := "/v1/inboxes/"+id+"/messages", `{"to":"a@b.example","subject":"s","text":"secret"}`
	s.do(t, http.MethodPost, path, body, key).want(t, http.StatusCreated)
	s.do(t, http.MethodDelete, "/v1/inboxes/"+id, "").want(t, http.StatusOK)

	s.do(t, http.MethodPost, path, body, key).wantError(t, http.StatusNotFound, "not_found")
	if s.do(t, http.MethodPost, "/v1/inboxes", `{"display_name":"secret"}`, key).want(t, http.StatusCreated).str(t, "id") == id {
		t.Error("the response names a deleted inbox")
	}
}

// A submission over SMTP whose Message-ID is that of a deleted message sends nothing again. For calls
// with an idempotency key, the contract suite has the same.
func TestSubmissionOfADeletedMessage(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	header := "From: " + in.Address + "\nSubject: Hi\nMessage-ID: <1@mail.example>\n"
	first := s.submits(t, s.key, header)
	s.do(t, http.MethodDelete, "/v1/messages/"+first.ID, "").want(t, http.StatusOK)
	s.refuses(t, s.key, header, "message_expired")
}

// H13: of a hundred equal concurrent calls one has an effect. The others get
// the same response or are asked to retry. On PostgreSQL they use two nodes.
func TestManyCallsAtOnceHaveOneEffect(t *testing.T) {
	t.Parallel()
	const calls = 100
	storetest.RunNodes(t, func(t *testing.T, cfg store.Config) {
		nodes := startNodes(t, cfg, 2)
		s := nodes[0]
		effects := map[string]int64{"sending": 1, "replying": 1, "forwarding": 1, "an email": 1, "a batch": 1} // in recipients
		var sent int64
		for round := range onceRounds {
			for name, call := range s.onceable(t) {
				key := fmt.Sprint(name, round)
				equalAtOnce(t, nodes, calls, call.path, call.body, http.StatusCreated, with(idempotencyKey, key))
				sent += effects[name]
			}
		}
		u, err := s.store.Usage(t.Context(), s.account)
		if err != nil || u.Today != sent || u.Account.Inboxes != 2*onceRounds {
			t.Errorf("%d messages and %d inboxes, want %d and %d: %v", u.Today, u.Account.Inboxes, sent, 2*onceRounds, err)
		}
	})
}

// H13: a repeated call that reached the limit of the plan does not get a limit
// error from the other node.
func TestEqualCallsAtTheLimitOfThePlan(t *testing.T) {
	t.Parallel()
	storetest.RunNodes(t, func(t *testing.T, cfg store.Config) {
		nodes := startNodes(t, cfg, 2)
		s := nodes[0]
		for _, round := range []string{"a", "b", "c"} {
			in := s.newInbox(t)
			path := "/v1/inboxes/" + in.ID + "/messages"
			equalAtOnce(t, nodes, 16, path, plainSend, http.StatusCreated, with(idempotencyKey, round))
			equalAtOnce(t, nodes, 16, "/v1/inboxes", `{}`, http.StatusCreated, with(idempotencyKey, round))
			s.clock.Add(24 * time.Hour)
			for _, id := range s.pages(t, "/v1/inboxes") {
				s.do(t, http.MethodDelete, "/v1/inboxes/"+id, "").want(t, http.StatusOK)
			}
		}
	}, planned(store.Plan{Inboxes: 2, Daily: 1})...)
}
