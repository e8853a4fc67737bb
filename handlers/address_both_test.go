package handlers_test

import (
	"net/http"
	"strings"
	"testing"
)

// Every body with addresses accepts both spellings, alone and in lists, and they
// mean the same.
func TestBothSpellingsOfAnAddress(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		in := s.newInbox(t)
		msg := "/v1/messages/" + s.receive(t, in, "From: Ana <ana@out.example>\nSubject: Hi").ID
		bodies := []struct{ name, path, body string }{
			{"a send", "/v1/inboxes/" + in.ID + "/messages", `{"to":%,"cc":[%],"bcc":%,"reply_to":[%],"subject":"s","text":"t"}`},
			{"a reply", msg + "/reply", `{"cc":%,"bcc":[%],"reply_to":%,"text":"t"}`},
			{"a forward", msg + "/forward", `{"to":[%],"cc":%,"bcc":[%],"reply_to":%}`},
			{"a simulated message", "/v1/inboxes/" + in.ID + "/simulate", `{"from":%,"subject":"s","text":"t"}`},
			{"an email", "/v1/emails", `{"from":{"email":"` + in.Address + `","name":"Shop"},"to":%,"cc":[%],"bcc":%,"replyTo":%,"subject":"s","text":"t"}`},
			{"a batch", "/v1/emails/batch", `{"from":{"email":"` + in.Address + `","name":"Shop"},"recipients":[{"to":%},{"to":[%]}],"subject":"s","text":"t"}`},
		}
		spellings := []string{
			`"Bob Bar <bob@out.example>"`, `"\"Bob Bar\" <bob@out.example>"`, `{"email":"bob@out.example","name":"Bob Bar"}`,
			`"bob@out.example"`, `{"email":"bob@out.example"}`, `{"email":"bob@out.example","name":null}`,
		}
		for _, b := range bodies {
			t.Run(b.name, func(t *testing.T) {
				t.Parallel()
				for _, spelling := range spellings {
					res := s.do(t, http.MethodPost, b.path, strings.ReplaceAll(b.body, "%", spelling))
					if res.status >= http.StatusBadRequest {
						t.Errorf("%s: %s", spelling, res.body)
					}
				}
			})
		}
	})
}

// The name of either spelling is stored and sent.
func TestBothSpellingsKeepTheName(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		in := s.newInbox(t)
		for _, spelling := range []string{`"Bar, Bob <bob@OUT.example>"`, `{"email":"bob@OUT.example","name":"Bar, Bob"}`} {
			res := s.do(t, http.MethodPost, "/v1/inboxes/"+in.ID+"/messages", `{"to":`+spelling+`,"subject":"s","text":"t"}`).want(t, http.StatusCreated)
			stored := s.do(t, http.MethodGet, "/v1/messages/"+res.str(t, "id"), "").want(t, http.StatusOK)
			stored.wantAt(t, "to", `[{"email":"bob@out.example","name":"Bar, Bob"}]`)
			if got := s.sent(t, res).To; len(got) != 1 || got[0].Name != "Bar, Bob" || got[0].Email != "bob@out.example" {
				t.Errorf("%s is sent to %+v", spelling, got)
			}
			email := s.do(t, http.MethodPost, "/v1/emails", `{"from":`+spelled(in.Address, spelling)+`,"to":`+spelling+`,"subject":"s","text":"t"}`).
				want(t, http.StatusCreated)
			email.wantAt(t, "to", `["Bar, Bob <bob@out.example>"]`)
			email.wantAt(t, "from", `"Bar, Bob <`+in.Address+`>"`)
		}
	})
}

// spelled returns the spelling with another address.
func spelled(address, spelling string) string {
	return strings.Replace(spelling, "bob@OUT.example", address, 1)
}

func TestWrongAddressesOfEitherSpelling(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		in := s.newInbox(t)
		send, email := "/v1/inboxes/"+in.ID+"/messages", "/v1/emails"
		tests := []struct{ name, path, body, param, message string }{
			{"a name without brackets", send, `{"to":"Bob bob@out.example","subject":"s","text":"t"}`, "to", `has an invalid local part: "Bob bob@out.example"`},
			{"an object with a name in its address", send, `{"to":{"email":"Bob <bob@out.example>"},"subject":"s","text":"t"}`, "to.email", `is not an email address: "Bob <bob@out.example>"`},
			{"an object with a name in its address, for an email", email, `{"from":"a@in.example","to":[{"email":"B <b@out.example>"}],"subject":"s","text":"t"}`, "to[0].email", `is not an email address: "B <b@out.example>"`},
			{"brackets that do not close", send, `{"to":"Bob <bob@out.example","subject":"s","text":"t"}`, "to", `has an invalid local part: "Bob <bob@out.example"`},
			{"two names", send, `{"to":"Bob <x> <bob@out.example>","subject":"s","text":"t"}`, "to", `has a display name that must be quoted: "Bob <x> <bob@out.example>"`},
			{"an empty address", send, `{"cc":"Bob <>","to":"a@out.example","subject":"s","text":"t"}`, "cc", `is not an email address: "Bob <>"`},
			{"a line break in the name", send, `{"to":"Bob\r\nBcc: x@y.example <bob@out.example>","subject":"s","text":"t"}`, "to", `is not an email address: "Bob\r\nBcc: x@y.example <bob@out.example>"`},
			{"a line break in the name of an object", email, `{"from":"a@in.example","to":{"email":"b@out.example","name":"B\nC"},"subject":"s","text":"t"}`, "to.name", "must not contain line breaks or other control characters"},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				res := s.do(t, http.MethodPost, tt.path, tt.body, broken).wantError(t, http.StatusBadRequest, "invalid_request "+tt.param)
				if got, want := res.str(t, "error.message"), tt.param+" "+tt.message; got != want {
					t.Errorf("message %q, want %q", got, want)
				}
			})
		}
	})
}
