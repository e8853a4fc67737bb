package handlers_test

import (
	"fmt"
	"net/http"
	"testing"
)

// Emails skip suppressed recipients and show that. Without any other recipient
// the call is refused. Unsubscribing from marketing affects marketing only.
func TestSuppressedRecipientsOfEmails(t *testing.T) {
	s := serve(t)
	for _, body := range []string{
		`{"email":"Gone@out.example"}`, `{"email":"quiet@out.example","category":"marketing"}`, `{"email":"missing@out.example","category":"emails"}`,
	} {
		s.do(t, http.MethodPost, "/v1/suppressions", body).want(t, http.StatusCreated)
	}
	send := func(category, to string) response {
		return s.do(t, http.MethodPost, "/v1/emails", fmt.Sprintf(
			`{"from":%q,"to":%s,"subject":"s","text":"t","category":%q}`, sender, to, category))
	}
	send("transactional", `"gone@OUT.example"`).wantError(t, http.StatusUnprocessableEntity, "recipient_suppressed to")
	send("marketing", `["Gone@out.example","quiet@out.example"]`).wantError(t, http.StatusUnprocessableEntity, "recipient_suppressed to").
		says(t, "error.details", `[{"param":"to","message":"gone@out.example is suppressed"},{"param":"to","message":"quiet@out.example is suppressed"}]`).
		says(t, "error.message", `"every recipient is suppressed: gone@out.example, quiet@out.example. `+
			`To send to an address again, call DELETE /v1/suppressions/{email}"`)
	send("marketing", `"missing@out.example"`).wantError(t, http.StatusUnprocessableEntity, "recipient_suppressed to")
	send("transactional", `"quiet@out.example"`).want(t, http.StatusCreated)

	id := send("transactional", `["ann@out.example","gone@out.example"]`).want(t, http.StatusCreated).str(t, "id")
	s.do(t, http.MethodGet, "/v1/emails/"+id, "").want(t, http.StatusOK).
		says(t, "status", `"queued"`).says(t, "recipients.0.status", `"queued"`).says(t, "recipients.1.status", `"suppressed"`)

	batch := func(recipients string) response { // each email has its own state
		return s.do(t, http.MethodPost, "/v1/emails/batch", `{"from":"`+sender+`","subject":"s","text":"t","recipients":`+recipients+`}`)
	}
	batch(`[{"to":"gone@out.example"},{"to":["GONE@out.example"]}]`).wantError(t, http.StatusUnprocessableEntity, "recipient_suppressed recipients")
	batch(`[{"to":"gone@out.example"},{"to":"ann@out.example"}]`).want(t, http.StatusCreated).
		says(t, "emails.0.status", `"failed"`).says(t, "emails.1.status", `"queued"`)
}
