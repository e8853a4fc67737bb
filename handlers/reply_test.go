package handlers_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/store"
)

func TestRecipientsOfAReply(t *testing.T) {
	s := serve(t)
	tests := []struct {
		name, header, body string
		to, cc, bcc        string
	}{
		{"the sender", "From: ann@out.example", `"text":"t"`, "ann@out.example", "", ""},
		{"Reply-To if the message has it", "From: ann@out.example\nReply-To: list@out.example", `"text":"t"`, "list@out.example", "", ""},
		{"all of Reply-To", "From: ann@out.example\nReply-To: a@out.example, b@out.example", `"text":"t"`, "a@out.example b@out.example", "", ""},
		{"an empty Reply-To is ignored", "From: ann@out.example\nReply-To:", `"text":"t"`, "ann@out.example", "", ""},
		{"not to other recipients", "From: ann@out.example\nTo: OWN, bob@out.example\nCc: carl@out.example", `"text":"t"`, "ann@out.example", "", ""},
		{
			"to other recipients with reply_all", "From: ann@out.example\nTo: OWN, bob@out.example\nCc: carl@out.example", `"text":"t","reply_all":true`,
			"ann@out.example", "bob@out.example carl@out.example", "",
		},
		{
			"no recipient twice", "From: ann@out.example\nTo: bob@out.example, Ann@Out.example\nCc: BOB@out.example", `"text":"t","reply_all":true,"cc":["bob@out.example","dora@out.example"]`,
			"ann@out.example", "bob@out.example dora@out.example", "",
		},
		{
			"never to the inbox itself", "From: ann@out.example\nTo: OWN\nCc: TAGGED", `"text":"t","reply_all":true,"cc":"OWN","bcc":["TAGGED","emil@out.example"]`,
			"ann@out.example", "", "emil@out.example",
		},
		{"not to a Reply-To of the inbox itself", "From: ann@out.example\nReply-To: OWN, bob@out.example", `"text":"t"`, "bob@out.example", "", ""},
		{"further copies", "From: ann@out.example", `"text":"t","cc":{"email":"a@out.example"},"bcc":"b@out.example"`, "ann@out.example", "a@out.example", "b@out.example"},
		{"not to malformed addresses", "From: ann@out.example\nTo: OWN, undisclosed-recipients:;\nCc: bob, x@y@z", `"text":"t","reply_all":true`, "ann@out.example", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in := s.newInbox(t)
			own := strings.NewReplacer("OWN", in.Address, "TAGGED", strings.ToUpper(in.Name)+"+tag@"+in.Domain)
			m := s.receive(t, in, own.Replace(tt.header)+"\nSubject: Hi")
			res := s.do(t, http.MethodPost, "/v1/messages/"+m.ID+"/reply", "{"+own.Replace(tt.body)+"}").want(t, http.StatusCreated)
			for field, want := range map[string]string{"to": tt.to, "cc": tt.cc, "bcc": tt.bcc} {
				if got := strings.Join(res.strs(t, field, "email"), " "); got != want {
					t.Errorf("%s is %q, want %q", field, got, want)
				}
			}
		})
	}
}

// An alias, an address that the inbox had once, and an address that only a catch-all
// inbox receives are the inbox's own: a reply does not go there.
func TestReplyDoesNotGoToAnAliasOrACatchAllAddress(t *testing.T) {
	t.Parallel()
	eachDomain(t, func(t *testing.T, s *server, zone *dns) {
		d := s.newDomain(t, "ann.example")
		zone.publish(d, "OWNERSHIP", "DKIM")
		s.verify(t, d.ID)
		inbox := func(body string) store.Inbox {
			t.Helper()
			id := s.do(t, http.MethodPost, "/v1/inboxes", body).want(t, http.StatusCreated).str(t, "id")
			in, err := s.store.Inbox(t.Context(), s.account, id)
			must(t, err)
			return in
		}
		aliased, all := inbox(`{"name":"desk","aliases":["sales"]}`), inbox(`{"name":"all","domain":"ann.example","catch_all":true,"aliases":["orders"]}`)
		inbox(`{"name":"other","domain":"ann.example","aliases":["second"]}`)
		for _, tt := range []struct {
			name        string
			in          store.Inbox
			deliveredTo string
			header      string
			want        string
		}{
			{"an alias", aliased, "sales@mail.example", "To: Sales@mail.example, bob@out.example", "bob@out.example"},
			{"a former alias", aliased, "former@mail.example", "To: Former@mail.example\nCc: bob@out.example, former+tag@mail.example", "bob@out.example"},
			{"another inbox on the domain", aliased, "sales@mail.example", "To: sales@mail.example, support@mail.example", "support@mail.example"},
			{"a catch-all address", all, "any@ann.example", "To: any@ann.example, bob@out.example\nCc: Any@Ann.example", "bob@out.example"},
			{"several catch-all addresses", all, "any@ann.example", "To: any@ann.example, more+tag@ann.example\nCc: orders@ann.example, bob@out.example, x@below.ann.example", "bob@out.example"},
			{"a reserved name", all, "any@ann.example", "To: any@ann.example, postmaster@ann.example", "postmaster@ann.example"},
			{"other inboxes beside a catch-all inbox", all, "any@ann.example", "To: any@ann.example, other@ann.example\nCc: second@ann.example", "other@ann.example second@ann.example"},
			{"a Reply-To", all, "any@ann.example", "Reply-To: any@ann.example, carl@out.example\nTo: any@ann.example", ""},
		} {
			m := s.receive(t, tt.in, "From: ann@out.example\n"+tt.header+"\nSubject: Hi", func(m *store.NewMessage) { m.DeliveredTo = &tt.deliveredTo })
			res := s.do(t, http.MethodPost, "/v1/messages/"+m.ID+"/reply", `{"text":"t","reply_all":true,"bcc":"`+tt.deliveredTo+`"}`).want(t, http.StatusCreated)
			if got := strings.Join(res.strs(t, "cc", "email"), " "); got != tt.want {
				t.Errorf("%s: cc is %q, want %q", tt.name, got, tt.want)
			}
			if to, bcc := res.strs(t, "to", "email"), res.strs(t, "bcc", "email"); len(to) != 1 || len(bcc) != 0 {
				t.Errorf("%s: to %v, bcc %v", tt.name, to, bcc)
			}
		}
	})
}

// The sender of the original cannot cause a reply to too many recipients.
func TestReplyHasNoMoreRecipientsThanASend(t *testing.T) {
	some := func(n int) string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf("p%d@out.example", i)
		}
		return strings.Join(list, ",\n ")
	}
	s := serve(t)
	in := s.newInbox(t)
	for _, tt := range []struct{ header, body, field string }{
		{"Reply-To: ", `{"text":"t"}`, "to"},
		{"Cc: ", `{"text":"t","reply_all":true}`, "cc"},
	} {
		most, more := s.receive(t, in, tt.header+some(50)), s.receive(t, in, tt.header+some(51))
		s.do(t, http.MethodPost, "/v1/messages/"+most.ID+"/reply", tt.body).want(t, http.StatusCreated)
		s.do(t, http.MethodPost, "/v1/messages/"+more.ID+"/reply", tt.body).wantError(t, http.StatusBadRequest, "invalid_request "+tt.field)
	}
}

func TestReplyToOwnMessageIsSentToItsRecipients(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	first := s.do(t, http.MethodPost, "/v1/inboxes/"+in.ID+"/messages",
		`{"to":["ann@out.example","`+in.Address+`"],"cc":"bob@out.example","bcc":"carl@out.example","reply_to":"desk@out.example","subject":"s","text":"t"}`).want(t, http.StatusCreated)
	path := "/v1/messages/" + first.str(t, "id") + "/reply"
	res := s.do(t, http.MethodPost, path, `{"text":"t"}`).want(t, http.StatusCreated)
	if to, cc := res.strs(t, "to", "email"), res.strs(t, "cc", "email"); cmp.Diff(to, []string{"ann@out.example"}) != "" || len(cc) != 0 {
		t.Errorf("to %v, cc %v", to, cc)
	}
	res = s.do(t, http.MethodPost, path, `{"text":"t","reply_all":true}`).want(t, http.StatusCreated)
	if to, cc := res.strs(t, "to", "email"), res.strs(t, "cc", "email"); cmp.Diff(to, []string{"ann@out.example"}) != "" || cmp.Diff(cc, []string{"bob@out.example"}) != "" {
		t.Errorf("to all: to %v, cc %v", to, cc)
	}
	if len(res.strs(t, "bcc", "email")) != 0 {
		t.Errorf("the reply copies a Bcc: %s", res.body)
	}
}

func TestReplyNeedsARecipient(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	for _, header := range []string{"From: " + in.Address, "From: ", "From: no address", "From: ann@out.example\nReply-To: " + in.Address} {
		m := s.receive(t, in, header+"\nSubject: Hi")
		s.do(t, http.MethodPost, "/v1/messages/"+m.ID+"/reply", `{"text":"t"}`).wantError(t, http.StatusBadRequest, "invalid_request message_id")
	}
}

func TestReplyStaysInItsThread(t *testing.T) {
	s := serve(t)
	tests := []struct {
		name, header          string
		inReplyTo, references string
		subject, rawInReplyTo string
	}{
		{"a first message", "Message-ID: <a@out.example>\nSubject: Order", "<a@out.example>", "<a@out.example>", "Re: Order", "<a@out.example>"},
		{
			"a message of a thread", "Message-ID: <c@out.example>\nReferences: <a@out.example> <b@out.example>\nIn-Reply-To: <b@out.example>\nSubject: RE: Order",
			"<c@out.example>", "<a@out.example> <b@out.example> <c@out.example>", "RE: Order", "<c@out.example>",
		},
		{"a message that only names its parent", "Message-ID: <b@out.example>\nIn-Reply-To: <a@out.example>\nSubject: re: Order", "<b@out.example>", "<a@out.example> <b@out.example>", "re: Order", "<b@out.example>"},
		{"a message without an id", "Subject: Order", "", "", "Re: Order", ""},
		{"a message without a subject", "Message-ID: <a@out.example>", "<a@out.example>", "<a@out.example>", "Re:", "<a@out.example>"},
		{"a reply in German", "Message-ID: <a@out.example>\nSubject: AW: Order", "<a@out.example>", "<a@out.example>", "Re: AW: Order", "<a@out.example>"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in := s.newInbox(t)
			m := s.receive(t, in, tt.header, func(m *store.NewMessage) { m.HeaderID = strings.TrimSpace(m.HeaderID) })
			for range 2 { // a second reply gets the same headers
				res := s.do(t, http.MethodPost, "/v1/messages/"+m.ID+"/reply", `{"text":"t"}`).want(t, http.StatusCreated)
				if got := res.str(t, "thread_id"); got != m.ThreadID {
					t.Errorf("thread %s, want %s", got, m.ThreadID)
				}
				for field, want := range map[string]string{"in_reply_to": tt.inReplyTo, "references": tt.references} {
					if got := strings.Trim(fmt.Sprint(res.at(t, field)), "[]"); got != want {
						t.Errorf("%s: %q, want %q", field, got, want)
					}
				}
				if got := res.str(t, "subject"); got != tt.subject {
					t.Errorf("subject %q, want %q", got, tt.subject)
				}
				sent := s.sent(t, res)
				if got := strings.Join(sent.InReplyTo, " "); got != tt.rawInReplyTo {
					t.Errorf("In-Reply-To of the mail: %q", got)
				}
				if got := strings.Join(sent.References, " "); got != tt.references {
					t.Errorf("References of the mail: %q", got)
				}
			}
		})
	}
}

// Of two unrelated messages without an id, a reply to the first must not join
// the thread of the second.
func TestReplyWithoutIdsFindsItsThread(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	one := s.receive(t, in, "From: ann@out.example\nSubject: Order")
	two := s.receive(t, in, "From: bob@out.example\nSubject: Order")
	if one.ThreadID == two.ThreadID {
		t.Fatal("two strangers share a thread")
	}
	for _, m := range []store.Message{one, two, one} {
		res := s.do(t, http.MethodPost, "/v1/messages/"+m.ID+"/reply", `{"text":"t","cc":["ann@out.example","bob@out.example"]}`).want(t, http.StatusCreated)
		if got := res.str(t, "thread_id"); got != m.ThreadID {
			t.Errorf("thread %s, want %s", got, m.ThreadID)
		}
	}
}

// A long References chain keeps the first and the newest entries.
func TestReferencesAreBounded(t *testing.T) {
	s := serve(t)
	var refs strings.Builder
	for i := range 60 {
		fmt.Fprintf(&refs, "\n <%d@out.example>", i)
	}
	m := s.receive(t, s.newInbox(t), "Subject: Hi\nMessage-ID: <last@out.example>\nReferences:"+refs.String())
	res := s.do(t, http.MethodPost, "/v1/messages/"+m.ID+"/reply", `{"text":"t"}`).want(t, http.StatusCreated)
	got, ok := res.at(t, "references").([]any)
	if !ok || len(got) != 30 || got[0] != "<0@out.example>" || got[29] != "<last@out.example>" {
		t.Errorf("%d references: %v", len(got), got)
	}
}

func TestReplyRefuses(t *testing.T) {
	s := serve(t)
	m := s.receive(t, s.newInbox(t), "Subject: Hi")
	for body, want := range map[string]string{
		`{}`:                                "content_required text",
		`{"text":""}`:                       "content_required text",
		`{"text":"t","headers":{"To":"a"}}`: "invalid_request headers.To",
	} {
		s.do(t, http.MethodPost, "/v1/messages/"+m.ID+"/reply", body, broken).wantError(t, http.StatusBadRequest, want)
	}
	s.do(t, http.MethodPost, "/v1/messages/msg_0/reply", `{"text":"t"}`).wantError(t, http.StatusNotFound, "not_found")
}
