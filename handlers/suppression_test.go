package handlers_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/postroom/postroom/store"
)

// suppress adds a suppression to the server's account.
func (s *server) suppress(t *testing.T, email string) {
	t.Helper()
	s.do(t, http.MethodPost, "/v1/suppressions", `{"email":"`+email+`"}`).want(t, http.StatusCreated)
}

func TestCreateSuppression(t *testing.T) {
	s := serve(t)
	once := with("Idempotency-Key", "k")
	first := s.do(t, http.MethodPost, "/v1/suppressions", `{"email":"Gone@Example.org","category":"marketing"}`, once).want(t, http.StatusCreated)
	first.wantAt(t, "email", `"Gone@Example.org"`)
	first.wantAt(t, "reason", `"manual"`)
	if by := first.str(t, "source"); !strings.HasPrefix(by, "key_") {
		t.Errorf("added by %s", by)
	}
	first.wantAt(t, "category", `"marketing"`)
	first.wantSame(t, s.do(t, http.MethodPost, "/v1/suppressions", `{"email":"Gone@Example.org","category":"marketing"}`, once).want(t, http.StatusCreated))

	wide := s.do(t, http.MethodPost, "/v1/suppressions", `{"email":"gone@example.org"}`).want(t, http.StatusCreated)
	wide.wantAt(t, "category", `"all"`)
	wide.wantAt(t, "id", `"`+first.str(t, "id")+`"`)
	s.do(t, http.MethodPost, "/v1/suppressions", `{"email":"gone@example.org","category":"marketing"}`).
		want(t, http.StatusCreated).wantAt(t, "category", `"all"`)
	for body, want := range map[string]string{
		`{}`:               "invalid_request email",
		`{"email":"gone"}`: "invalid_request email",
		`{"email":"a@example.org","category":"some"}`:      "invalid_request category",
		`{"email":"a@example.org","reason":"hard_bounce"}`: "invalid_request reason",
	} {
		s.do(t, http.MethodPost, "/v1/suppressions", body, broken).wantError(t, http.StatusBadRequest, want)
	}
	stranger := as(s.newKey(t, func(k *store.Key) { k.AccountID = s.otherInbox(t).AccountID }))
	s.do(t, http.MethodGet, "/v1/suppressions", "", stranger).want(t, http.StatusOK).wantAt(t, "data", `[]`)
	s.do(t, http.MethodDelete, "/v1/suppressions/gone@example.org", "", stranger).wantError(t, http.StatusNotFound, "not_found")

	res := s.do(t, http.MethodDelete, "/v1/suppressions/GONE%40example.org", "").want(t, http.StatusOK)
	res.wantAt(t, "id", `"`+first.str(t, "id")+`"`)
	res.wantAt(t, "email", `"Gone@Example.org"`)
	s.do(t, http.MethodDelete, "/v1/suppressions/gone@example.org", "").wantError(t, http.StatusNotFound, "not_found")
	s.do(t, http.MethodGet, "/v1/suppressions", "").want(t, http.StatusOK).wantAt(t, "data", `[]`)
}

// An address is suppressed in all of its spellings, until it is removed. Other recipients
// of a message get it. Older entries have the domain as
// it was written.
func TestSuppressedInAnotherSpelling(t *testing.T) {
	s := serve(t)
	path := "/v1/inboxes/" + s.newInbox(t).ID + "/messages"
	for _, tt := range []struct{ listed, to string }{
		{"Gone@out.example", "gone@out.example"},
		{"gone@out.example", `\"Gone\"@out.example`},
		{`\"G\\one\"@out.example`, "gone@out.example"},
		{"gone@bücher.example", "gone@xn--bcher-kva.example"},
		{"gone@xn--bcher-kva.example", `\"gone\"@BÜCHER.example`},
	} {
		s.do(t, http.MethodPost, "/v1/suppressions", `{"email":"`+tt.listed+`"}`).want(t, http.StatusCreated)
		s.do(t, http.MethodPost, path, `{"to":"`+tt.to+`","subject":"s","text":"t"}`).wantError(t, http.StatusUnprocessableEntity, "recipient_suppressed to")
		some := s.do(t, http.MethodPost, path, `{"to":["`+tt.to+`","bob@out.example"],"subject":"s","text":"t"}`)
		some.want(t, http.StatusCreated).wantAt(t, "recipients.0.status", `"suppressed"`)
		some.wantAt(t, "recipients.0.attempts", `0`)
		some.wantAt(t, "recipients.1.status", `"queued"`)
		s.do(t, http.MethodDelete, "/v1/suppressions/"+url.PathEscape(strings.ReplaceAll(tt.to, `\"`, `"`)), "").want(t, http.StatusOK)
		s.do(t, http.MethodPost, path, `{"to":"`+tt.to+`","subject":"s","text":"t"}`).want(t, http.StatusCreated)
	}
	old := store.Suppression{AccountID: s.account, Email: "old@bücher.example", EmailFold: "old@bücher.example", Reason: store.SuppressedManual, Category: store.SuppressAll}
	if _, err := s.store.Suppress(t.Context(), old, nil); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"old@bücher.example", "OLD@xn--bcher-kva.example"} {
		s.do(t, http.MethodPost, path, `{"to":"`+to+`","subject":"s","text":"t"}`).wantError(t, http.StatusUnprocessableEntity, "recipient_suppressed to")
	}
}
