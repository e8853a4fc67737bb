package handlers_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/store"
)

// addEntry adds an entry, written as direction, action and pattern, to the lists of an inbox.
func (s *server) addEntry(t *testing.T, in store.Inbox, entry string, opts ...option) response {
	t.Helper()
	f := strings.Fields(entry)
	return s.do(t, http.MethodPost, "/v1/lists", fmt.Sprintf(`{"direction":%q,"action":%q,"pattern":%q,"inbox_id":%q}`, f[0], f[1], f[2], in.ID), opts...)
}

// An entry that lets more mail pass needs the scope admin.
func TestListEntriesThatLoosenNeedAdmin(t *testing.T) {
	s := serve(t)
	for _, tt := range []struct {
		name, before, add string // actions and patterns
		loosens           bool
	}{
		{"the first that allows", "", "allow a@x.example", false},
		{"the second that allows", "allow a@x.example", "allow b@x.example", true},
		{"an address of an allowed domain", "allow *@x.example", "allow b@x.example", false},
		{"out of a block", "block *@x.example", "allow b@x.example", true},
		{"approval out of a block", "block *@x.example", "approve b@x.example", true},
		{"approval out of an allow list", "allow *@y.example", "approve b@x.example", true},
		{"approval within an allow list", "allow *@x.example", "approve b@x.example", false},
		{"allow within approval", "approve *@*.example", "allow b@x.example", true},
		{"allow beside a block", "block b@x.example", "allow b@x.example", false},
		{"a block", "allow b@x.example", "block b@x.example", false},
		{"a wide block", "approve b@x.example", "block *@x.example", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in := s.newInbox(t)
			if tt.before != "" {
				s.addEntry(t, in, "outbound "+tt.before).want(t, http.StatusCreated)
			}
			res := s.addEntry(t, in, "outbound "+tt.add, as(s.newKey(t, scopes("send", "read"), onlyInboxes(in.ID))))
			if tt.loosens {
				res.want(t, http.StatusForbidden)
			} else {
				res.want(t, http.StatusCreated)
			}
		})
	}
}

// An entry that allows closes an inbox to all others, until it is deleted. It needs a sender
// that DMARC proves.
func TestEntriesThatAllowRefuseOthers(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	send := func(to string) response {
		return s.do(t, http.MethodPost, "/v1/inboxes/"+in.ID+"/messages", `{"to":"`+to+`","subject":"s","text":"t"}`)
	}
	block := s.addEntry(t, in, "outbound block *@blocked.example").want(t, http.StatusCreated)
	s.addEntry(t, s.newInbox(t), "outbound block *@other.example").want(t, http.StatusCreated)
	bound := as(s.newKey(t, scopes("read"), onlyInboxes(in.ID)))
	if got := s.pages(t, "/v1/lists?limit=1", bound); len(got) != 1 || got[0] != block.str(t, "id") {
		t.Errorf("a key of the inbox sees the entries %v", got)
	}
	allow := s.addEntry(t, in, "outbound allow boss@blocked.example").want(t, http.StatusCreated)
	send("boss@blocked.example").want(t, http.StatusCreated)
	send("b@free.example").wantError(t, http.StatusForbidden, "recipient_blocked to[0]")
	s.do(t, http.MethodDelete, "/v1/lists/"+allow.str(t, "id"), "").want(t, http.StatusOK)
	send("boss@blocked.example").wantError(t, http.StatusForbidden, "recipient_blocked to[0]")
	send("b@free.example").want(t, http.StatusCreated)

	s.addEntry(t, in, "inbound allow *@friend.example").want(t, http.StatusCreated)
	for from, tt := range map[string]struct {
		dmarc   string
		arrives bool
	}{
		"a@friend.example": {"pass", true}, "b@friend.example": {"fail", false}, "a@free.example": {"pass", false},
	} {
		m := s.received(t, in, []byte(mailOf(in, "From: "+from+"\nSubject: Hi")))
		m.Content.Auth = &store.JSON[mail.AuthResult]{V: mail.AuthResult{SPF: "none", DKIM: "none", DMARC: tt.dmarc}}
		if _, err := s.store.AddReceived(t.Context(), []*store.NewMessage{m}, nil); (err == nil) != tt.arrives {
			t.Errorf("mail from %s with dmarc=%s: %v", from, tt.dmarc, err)
		}
	}
}

// The sender of a message in quarantine has not written until the message is released.
func TestQuarantineMakesNobodyKnown(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t, policy(store.PolicyReplyOnly))
	s.addEntry(t, in, "inbound approve *@asked.example").want(t, http.StatusCreated)
	m := s.receive(t, in, "From: a@asked.example\nSubject: Hi")
	send := func() response {
		return s.do(t, http.MethodPost, "/v1/inboxes/"+in.ID+"/messages", `{"to":"a@asked.example","subject":"s","text":"t"}`)
	}
	send().wantError(t, http.StatusForbidden, "recipient_not_allowed to[0]")
	s.do(t, http.MethodPost, "/v1/messages/"+m.ID+"/release", "").want(t, http.StatusOK)
	send().want(t, http.StatusCreated)
	if res := s.do(t, http.MethodPost, "/v1/messages/"+m.ID+"/release", "", broken); res.status < http.StatusBadRequest {
		t.Errorf("released twice: %d", res.status)
	}
}
