package handlers_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/store"
)

// A draft keeps the sender name from its creation, even if that of the inbox
// changes.
func TestDraftKeepsItsSenderName(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t, policy(store.PolicyApproval), func(in *store.Inbox) { in.DisplayName = new("Shop Robot") })
	d := s.newDraft(t, in, plainSend)
	s.do(t, http.MethodPatch, "/v1/inboxes/"+in.ID, `{"display_name":"Your Bank"}`).want(t, http.StatusOK)
	from := `{"email":"` + in.Address + `","name":"Shop Robot"}`
	s.do(t, http.MethodGet, draftPath(t, d), "").want(t, http.StatusOK).wantAt(t, "from", from)
	m := s.do(t, http.MethodPost, draftPath(t, d, "/send"), `{"version":1}`).want(t, http.StatusCreated)
	m.wantAt(t, "from", from)
	if raw := string(s.sentRaw(t, m)); !strings.Contains(raw, "From: Shop Robot <"+in.Address+">") {
		t.Errorf("sent as:\n%.300s", raw)
	}
	d = s.newDraft(t, in, plainSend)
	d.wantAt(t, "from.name", `"Your Bank"`)
	s.do(t, http.MethodPatch, "/v1/inboxes/"+in.ID, `{"display_name":null}`).want(t, http.StatusOK)
	s.do(t, http.MethodPatch, draftPath(t, d), `{"subject":"Other"}`).want(t, http.StatusOK).wantAt(t, "from.name", `"Your Bank"`)
}

// A draft is sanitized when it is created or edited, and sent as shown.
func TestDraftIsSanitized(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t, policy(store.PolicyApproval))
	const hidden = `<p>Hello</p><svg><text>Pay 900 EUR</text></svg><p style=\"display:none\">Psst</p><a href=\"https://evil.example/\">www.bank.example</a>`
	d := s.newDraft(t, in, `{"to":"ann@out.example","subject":"Order","html":"`+hidden+`"}`)
	const clean = `"<p>Hello</p><p style=\"display:none\">Psst</p><a href=\"https://evil.example/\">www.bank.example</a>"`
	d.wantAt(t, "html", clean)
	want := []string{
		`html_removed <svg> Pay 900 EUR`, `hidden_text display Psst`, `misleading_link https://evil.example/ www.bank.example`,
		`new_recipient ann@out.example <nil>`, `link https://evil.example/ <nil>`,
	}
	wantWarnings(t, d, want...)
	wantWarnings(t, s.do(t, http.MethodGet, draftPath(t, d), ""), want...)
	if n := len(s.do(t, http.MethodGet, "/v1/drafts", "").want(t, http.StatusOK).at(t, "data.0.warnings").([]any)); n != len(want) { //nolint:forcetypeassert // by the contract
		t.Errorf("in a list: %d warnings, want %d", n, len(want))
	}

	// An edit of the text keeps the warnings about the HTML.
	edited := s.do(t, http.MethodPatch, draftPath(t, d), `{"text":"See https://other.example/x"}`).want(t, http.StatusOK)
	wantWarnings(t, edited, append(want, `link https://other.example/x <nil>`)...)
	edited = s.do(t, http.MethodPatch, draftPath(t, d), `{"html":"<b onclick=\"x()\">Hi</b><math><mi>x</mi></math>"}`).want(t, http.StatusOK)
	edited.wantAt(t, "html", `"<b>Hi</b>"`)
	wantWarnings(t, edited, `html_removed attribute onclick x()`, `html_removed <math> x`, `new_recipient ann@out.example <nil>`, `link https://other.example/x <nil>`)
	m := s.do(t, http.MethodPost, draftPath(t, d, "/send"), `{"version":3}`).want(t, http.StatusCreated)
	m.wantAt(t, "html", `"<b>Hi</b>"`)

	// The second time the recipient is known.
	wantWarnings(t, s.newDraft(t, in, plainSend))
	res := s.do(t, http.MethodPost, "/v1/inboxes/"+in.ID+"/messages", `{"to":"ann@out.example","subject":"Order","html":"<svg>x</svg>"}`)
	res.wantError(t, http.StatusBadRequest, "content_required text")
}

func wantWarnings(t *testing.T, d response, want ...string) {
	t.Helper()
	var got []string
	for _, w := range d.at(t, "warnings").([]any) { //nolint:forcetypeassert // by the contract
		v := w.(map[string]any) //nolint:forcetypeassert // as above
		got = append(got, fmt.Sprint(v["code"], " ", v["value"], " ", v["text"]))
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("warnings are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Amounts, risky files and where the original came from are warned of. An edit checks the
// amounts again and keeps the rest.
func TestUnusualDraftsWarn(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t, policy(store.PolicyApproval))
	body := `{"text":"It is $1,200.50 or 90 EUR.","attachments":[{"filename":"Offer.pdf","content":"eA=="},{"filename":"run.JS","content":"eA=="}]}`
	for _, tt := range []struct {
		auth *mail.AuthResult
		want []string
	}{
		{nil, []string{`unverified_sender ann@out.example <nil>`, `first_contact ann@out.example <nil>`}},
		{&mail.AuthResult{SPF: "fail", DKIM: "none", DMARC: "fail"}, []string{`unverified_sender ann@out.example <nil>`}},
		{&mail.AuthResult{SPF: "none", DKIM: "pass", DMARC: "pass"}, nil},
		{&mail.AuthResult{SPF: "none", DKIM: "none", DMARC: "none", Internal: "pass"}, nil},
	} {
		m := s.receive(t, in, "Subject: Offer?", func(m *store.NewMessage) {
			if tt.auth != nil {
				m.Content.Auth = &store.JSON[mail.AuthResult]{V: *tt.auth}
			}
		})
		d := s.do(t, http.MethodPost, "/v1/messages/"+m.ID+"/reply", body).want(t, http.StatusAccepted)
		files := `attachment_type run.JS <nil>`
		wantWarnings(t, d, append(slices.Clone(tt.want), `amount $1,200.50 <nil>`, `amount 90 EUR <nil>`, files)...)
		edited := s.do(t, http.MethodPatch, draftPath(t, d), `{"text":"It is 80 EUR. The 3 chairs of room 12 stay."}`).want(t, http.StatusOK)
		wantWarnings(t, edited, append(slices.Clone(tt.want), `amount 80 EUR <nil>`, files)...)
	}
	test := as(s.newKey(t, func(k *store.Key) { k.Mode = store.KeyTest }))
	made := s.do(t, http.MethodPost, "/v1/inboxes/"+in.ID+"/simulate", `{"from":"Ceo <ceo@corp.example>","text":"Approved"}`).want(t, http.StatusCreated)
	d := s.do(t, http.MethodPost, "/v1/messages/"+made.str(t, "id")+"/reply", `{"text":"t"}`, test).want(t, http.StatusAccepted)
	wantWarnings(t, d, `simulated_original ceo@corp.example <nil>`)
	// Simulated mail and mail in other inboxes do not make a sender known; a sent message does.
	m := s.receive(t, in, "From: ceo@corp.example\nSubject: Hi")
	d = s.do(t, http.MethodPost, "/v1/messages/"+m.ID+"/forward", `{"to":"ann@out.example"}`).want(t, http.StatusAccepted)
	wantWarnings(t, d, `unverified_sender ceo@corp.example <nil>`, `first_contact ceo@corp.example <nil>`)
	s.setPolicy(t, in, store.PolicyOpen)
	s.do(t, http.MethodPost, "/v1/inboxes/"+in.ID+"/messages", `{"to":"Bob@out.example","subject":"s","text":"t"}`).want(t, http.StatusCreated)
	s.setPolicy(t, in, store.PolicyApproval)
	m = s.receive(t, in, "From: bob@out.example\nSubject: Hi")
	d = s.do(t, http.MethodPost, "/v1/messages/"+m.ID+"/reply", `{"text":"t"}`).want(t, http.StatusAccepted)
	wantWarnings(t, d, `unverified_sender bob@out.example <nil>`)
}

// A stored draft whose HTML is not sanitized is sanitized at the first send
// and must be reviewed again.
func TestOldDraftIsSeenAgain(t *testing.T) {
	s := serve(t)
	d := s.newDraft(t, s.newInbox(t, policy(store.PolicyApproval)), `{"to":"ann@out.example","subject":"Order","html":"<p>x</p>"}`)
	_, err := s.store.UpdateDraft(t.Context(), s.account, d.str(t, "id"), func(d *store.Draft) error {
		d.Content.HTML = "<p>x</p><xmp>y</xmp>"
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.do(t, http.MethodPost, draftPath(t, d, "/send"), `{"version":2}`).wantError(t, http.StatusConflict, "draft_changed")
	got := s.do(t, http.MethodGet, draftPath(t, d), "").want(t, http.StatusOK)
	got.wantAt(t, "version", "3")
	got.wantAt(t, "html", `"<p>x</p>"`)
	wantWarnings(t, got, `html_removed <xmp> y`, `new_recipient ann@out.example <nil>`)
	s.do(t, http.MethodPost, draftPath(t, d, "/send"), `{"version":3}`).want(t, http.StatusCreated)
}
