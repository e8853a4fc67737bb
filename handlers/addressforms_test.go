package handlers_test

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
)

// M10 for the API and for stored data: each address field accepts and refuses
// what package message does, and returns, stores and sends the address
// unchanged.
func TestAPIAcceptsTheAddressesOfSMTP(t *testing.T) {
	data, err := os.ReadFile("../internal/mail/testdata/addresses.json")
	must(t, err)
	var forms struct {
		Valid   []struct{ Why, Address, Stored string }
		Invalid []struct{ Why, Address string }
	}
	must(t, json.Unmarshal(data, &forms))
	s := serve(t)
	in := s.newInbox(t)
	path := "/v1/inboxes/" + in.ID + "/messages"
	for _, f := range forms.Valid {
		body := `{"to":` + jsonText(f.Address) + `,"reply_to":{"email":` + jsonText(f.Address) + `,"name":"N"},"subject":"s","text":"t"}`
		res := s.do(t, http.MethodPost, path, body)
		if res.status != http.StatusCreated {
			t.Errorf("%s: %q is refused: %s", f.Why, f.Address, res.body)
			continue
		}
		stored := s.do(t, http.MethodGet, "/v1/messages/"+res.str(t, "id"), "").want(t, http.StatusOK)
		for _, list := range []string{"to", "reply_to", "recipients"} {
			got := stored.strs(t, list, "email") // as written: the comparison ignores case
			if len(got) != 1 || !strings.EqualFold(got[0], f.Stored) {
				t.Errorf("%s: %s is %q, want %q", f.Why, list, got, f.Stored)
			}
		}
		if got := s.sent(t, res).To; len(got) != 1 || localOf(got[0].Email) != localOf(f.Stored) {
			t.Errorf("%s: %q is sent to %+v", f.Why, f.Stored, got)
		}
	}
	places := []struct{ body, param string }{
		{`{"to":%s,"subject":"s","text":"t"}`, "to"},
		{`{"to":"a@b.example","cc":[{"email":%s,"name":"N"}],"subject":"s","text":"t"}`, "cc[0].email"},
		{`{"to":"a@b.example","bcc":["c@d.example",%s],"subject":"s","text":"t"}`, "bcc[1]"},
	}
	for i, f := range forms.Invalid {
		place := places[i%len(places)]
		s.do(t, http.MethodPost, path, strings.Replace(place.body, "%s", jsonText(f.Address), 1), broken).
			wantError(t, http.StatusBadRequest, "invalid_request "+place.param)
	}
	if sent := len(s.pages(t, "/v1/messages?limit=100")); sent != len(forms.Valid) {
		t.Errorf("%d messages, want one for each valid address", sent)
	}
}

func localOf(email string) string { return email[:strings.LastIndexByte(email, '@')] }
