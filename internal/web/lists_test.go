package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/postroom/postroom/gen"
)

// quarantine has the account ask about senders of a domain, and puts n messages of
// them into an inbox. It returns their IDs.
func (s *site) quarantine(t *testing.T, in *gen.Inbox, domain string, n int) (ids []string) {
	t.Helper()
	_, err := s.api.CreateListEntry(s.asUser(t), &gen.ListEntryCreate{Direction: "inbound", Action: "approve", Pattern: "*@" + domain}, gen.CreateListEntryParams{})
	must(t, err)
	for i := range n {
		m, err := s.api.SimulateMessage(s.asUser(t), &gen.MessageSimulate{
			From:    gen.NewOptNilAddress(gen.NewMailboxAddress(gen.Mailbox(fmt.Sprintf("sender%d@%s", i, domain)))),
			Subject: gen.NewOptString(fmt.Sprint("Offer ", i)), Text: gen.NewOptNilString("Your verification code is 482913.\n"),
		}, gen.SimulateMessageParams{InboxID: in.ID})
		must(t, err)
		if m.Status != "quarantined" {
			t.Fatalf("the message is %s", m.Status)
		}
		ids = append(ids, m.ID)
	}
	return ids
}

// Entries are added and deleted by forms, and act on mail.
func TestListsByForms(t *testing.T) {
	s := openSite(t)
	in := s.newInbox(t, "listed", gen.SendPolicyOpen)
	v := s.visitAsUser(t)
	v.get("/lists").want(t, http.StatusOK).has(t, "No entries yet")
	v.post("/lists", []string{"rule", "outbound block", "pattern", "*@Rival.example", "inbox", strings.ToUpper(in.Address)}).want(t, http.StatusSeeOther)
	v.get("/lists").want(t, http.StatusOK).has(t, "Never write to *@rival.example: added.", in.Address)
	_, err := s.api.SendMessage(s.asUser(t), mailTo("ceo@rival.example", "Hello", "Hello"), gen.SendMessageParams{InboxID: in.ID})
	if err == nil {
		t.Error("a blocked recipient was written to")
	}
	for _, tt := range []struct{ fields, want string }{
		{"rule=outbound block|pattern=everybody", "pattern-fault"},
		{"rule=outbound block|pattern=*@a.example|inbox=missing@here.example", "No inbox missing@here.example"},
		{"rule=outbound nonsense|pattern=*@a.example", `role="alert"`},
	} {
		var fields []string
		for _, f := range strings.Split(tt.fields, "|") {
			name, value, _ := strings.Cut(f, "=")
			fields = append(fields, name, value)
		}
		v.post("/lists", fields).want(t, http.StatusBadRequest).has(t, tt.want)
	}
	l, err := s.api.ListListEntries(s.asUser(t), gen.ListListEntriesParams{})
	must(t, err)
	if len(l.Data) != 1 {
		t.Fatalf("%d entries, want 1", len(l.Data))
	}
	v.post("/lists/"+l.Data[0].ID+"/delete", nil).want(t, http.StatusSeeOther)
	v.get("/lists").want(t, http.StatusOK).has(t, "Entry deleted", "No entries yet")
	v.post("/lists/"+l.Data[0].ID+"/delete", nil).want(t, http.StatusSeeOther)
	v.get("/lists").want(t, http.StatusOK).has(t, `class="notice bad"`)
}

// A message in quarantine is shown, released and dropped by people alone.
func TestQuarantineByForms(t *testing.T) {
	s := openSite(t)
	in := s.newInbox(t, "careful", gen.SendPolicyOpen)
	ids := s.quarantine(t, in, "odd.example", 4)
	v := s.visitAsUser(t)
	v.get("/quarantine").want(t, http.StatusOK).has(t, "sender0@odd.example", "Offer 3", in.Address)
	page := v.get("/messages/"+ids[0]).want(t, http.StatusOK).has(t, "In quarantine", "Your verification code is 482913", "/quarantine/release")
	for _, missing := range []string{"/reply", "/raw", "?tab=raw", "found-code", "/threads/"} {
		if strings.Contains(page.body, missing) {
			t.Errorf("the page has %q", missing)
		}
	}
	v.post("/quarantine/release", []string{"message", ids[0]}).want(t, http.StatusSeeOther)
	v.get("/quarantine").want(t, http.StatusOK).has(t, "1 message released.")
	v.get("/messages/"+ids[0]).want(t, http.StatusOK).has(t, "found-code")
	v.post("/quarantine/drop", []string{"message", ids[1], "message", ids[2], "message", ids[1]}).want(t, http.StatusSeeOther)
	v.get("/quarantine").want(t, http.StatusOK).has(t, "2 messages dropped.", "Offer 3")
	v.get("/messages/"+ids[1]).want(t, http.StatusNotFound)
	v.post("/quarantine/drop", nil).want(t, http.StatusSeeOther)
	v.get("/quarantine").want(t, http.StatusOK).has(t, "Select the messages first")
	s.otherAccount(t)
	other := s.visitAsUser(t)
	other.post("/quarantine/release", []string{"message", ids[3]}).want(t, http.StatusSeeOther)
	other.get("/quarantine").want(t, http.StatusOK).has(t, "0 messages released", "Nothing in quarantine")
	other.get("/messages/"+ids[3]).want(t, http.StatusNotFound)
	v.get("/messages/"+ids[3]).want(t, http.StatusOK).has(t, "In quarantine")
}
