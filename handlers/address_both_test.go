package handlers_test

import (
	"net/http"
	"strings"
	"testing"
)

// Every body with addresses accepts both spellings, alone and in lists, and they
// mean the same.
func TestBothSpellingsOfAnAddress(t *testing.T) {
	s := serve(t)
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
}

// The name of either spelling is stored and sent.
func TestBothSpellingsKeepTheName(t *testing.T) {
	s := serve(t)
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
}

// spelled returns the spelling with another address.
func spelled(address, spelling string) string {
	return strings.Replace(spelling, "bob@OUT.example", address, 1)
}
