package web_test

import (
	"strings"
	"testing"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// Every page that shows a forged sender name shows the address with it.
func TestForgedSendersAreSeen(t *testing.T) {
	const mark, forged, unverified = "class=\"badge ", "Sender may be forged", "Unverified sender"
	tests := []struct {
		title, name string
		auth        *mail.AuthResult
		want        []string
		without     []string
	}{
		{
			"a name like an address, and DMARC fails", "security@bank.example", &mail.AuthResult{SPF: "pass", DKIM: "none", DMARC: "fail"},
			[]string{`<strong class="address"><bdi>evil@evil.example</bdi></strong>`, "displayed as “<bdi>security@bank.example</bdi>”", mark + `bad"`, forged},
			nil,
		},
		{
			"a wide at sign", "security＠bank.example", nil,
			[]string{`<strong class="address"><bdi>evil@evil.example</bdi></strong>`, "displayed as “<bdi>security＠bank.example</bdi>”"},
			[]string{forged, unverified},
		},
		{
			"a name, and nothing passes", "Your Bank", &mail.AuthResult{SPF: "temperror", DKIM: "none", DMARC: "none"},
			[]string{"<bdi>Your Bank</bdi></strong>", `<small class="address"><bdi>evil@evil.example</bdi>`, mark + `"`, unverified},
			[]string{forged},
		},
		{
			"SPF passes for another domain", "Your Bank", &mail.AuthResult{SPF: "pass", DKIM: "none", DMARC: "none"},
			[]string{`<bdi>evil@evil.example</bdi>`, mark + `warn"`, unverified},
			nil,
		},
		{
			"a verified sender", "Your Bank", &mail.AuthResult{SPF: "pass", DKIM: "pass", DMARC: "pass"},
			[]string{"<bdi>Your Bank</bdi>", `<bdi>evil@evil.example</bdi>`},
			[]string{forged, unverified},
		},
		{
			"an internal sender", "Your Bank", &mail.AuthResult{SPF: "none", DKIM: "none", DMARC: "none", Internal: "pass", Account: "acc_other"},
			[]string{`<bdi>evil@evil.example</bdi>`, `title="Sent by the account acc_other of this installation.">Internal</span>`},
			[]string{forged, unverified},
		},
		{"no name", "", nil, []string{`<strong class="address"><bdi>evil@evil.example</bdi></strong>`}, []string{"with the name", forged, unverified}},
	}
	s := openSQLite(t)
	in := storetest.Inbox(t, s.store, func(in *store.Inbox) { in.AccountID = s.account })
	v := s.visitAsUser(t)
	for _, tt := range tests {
		m := storetest.Received(t, s.store, in, func(m *store.NewMessage) {
			m.Addresses.V.From = &mail.Address{Name: tt.name, Email: "evil@evil.example"}
			m.Subject = "About " + strings.Fields(tt.title)[0]
			if tt.auth != nil {
				m.Content.Auth = &store.JSON[mail.AuthResult]{V: *tt.auth}
			}
		})
		for _, path := range []string{
			"/inboxes/" + in.ID, "/inboxes/" + in.ID + "?direction=in",
			"/inboxes/" + in.ID + "/threads/" + m.ThreadID, "/messages/" + m.ID, "/messages/" + m.ID + "/reply",
		} {
			page := v.get(path).want(t, 200).has(t, tt.want...)
			for _, text := range tt.without {
				if strings.Contains(page.body, text) {
					t.Errorf("%s: %s has %q", tt.title, path, text)
				}
			}
		}
		_, err := s.api.DeleteMessage(s.asUser(t), gen.DeleteMessageParams{MessageID: m.ID}) // so that each list holds one
		must(t, err)
	}
}
