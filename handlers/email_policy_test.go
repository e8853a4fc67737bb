package handlers_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/store"
)

// Row O11 for emails and batches: an email from the address of an inbox, in any spelling, cannot
// reach recipients that the inbox itself may not write to. TestReplyOnlyCannotBeBypassed has the
// spellings of recipients.
func TestReplyOnlyAppliesToEmails(t *testing.T) {
	s := serve(t)
	g := s.guard(t, store.PolicyReplyOnly)
	template := strings.TrimPrefix(s.newTemplate(t), "/v1/templates/")
	said := `"subject":"s","text":"t"`
	tagged := g.in.Name + "+tag@" + g.in.Domain
	forms := strings.NewReplacer(
		"FROM", g.in.Address, "UPPER", strings.ToUpper(g.in.Name)+"@"+g.in.Domain, "TAGGED", tagged, "UPTAG", strings.ToUpper(tagged),
		"QUOTED", fmt.Sprintf(`\"%s\"@%s`, g.in.Name, g.in.Domain), "LATER", after(time.Hour),
	)
	tests := []struct{ name, body, want string }{
		{"to a stranger", `"from":"FROM","to":"eve@evil.example",` + said, "403 to[0]"},
		{"with a name", `"from":"Desk <FROM>","to":"eve@evil.example",` + said, "403 to[0]"},
		{"in another case", `"from":"UPPER","to":"eve@evil.example",` + said, "403 to[0]"},
		{"with a tag", `"from":"TAGGED","to":"eve@evil.example",` + said, "403 to[0]"},
		{"with a tag and in another case", `"from":"UPTAG","to":"eve@evil.example",` + said, "403 to[0]"},
		{"in quotes", `"from":"QUOTED","to":"eve@evil.example",` + said, "4xx"},
		{"two senders", `"from":"FROM, eve@evil.example","to":"eve@evil.example",` + said, "4xx"},
		{"another sender behind the name", `"from":"\"FROM\" <eve@evil.example>","to":"eve@evil.example",` + said, "403"},
		{"to the sender of a simulated message", `"from":"FROM","to":"mallory@evil.example",` + said, "403 to[0]"},
		{"scheduled", `"from":"FROM","to":"eve@evil.example","scheduledAt":"LATER",` + said, "403 to[0]"},
		{"from a template", `"from":"FROM","to":"eve@evil.example","subject":"s","template":"` + template + `","data":{"name":"x"}`, "403 to[0]"},
		{"with the Reply-To of a stranger", `"from":"FROM","to":"ann@out.example","replyTo":"eve@evil.example",` + said, "201"},
		{"in a batch", `"from":"FROM","recipients":[{"to":"eve@evil.example"}],` + said, "403 recipients[0].to[0]"},
		{"second in a batch", `"from":"FROM","recipients":[{"to":"ann@out.example"},{"to":["ann@out.example","eve@evil.example"]}],` + said, "403 recipients[1].to[1]"},
		{"in a batch, with a tag", `"from":"TAGGED","recipients":[{"to":"eve@evil.example"}],` + said, "403 recipients[0].to[0]"},
		{"in a batch, in another case", `"from":"UPPER","recipients":[{"to":"eve@evil.example"}],` + said, "403 recipients[0].to[0]"},
		{"in a batch, from a template", `"from":"FROM","subject":"s","template":"` + template + `","recipients":[{"to":"eve@evil.example","variables":{"name":"x"}}]`, "403 recipients[0].to[0]"},
		{"in a batch that copies", `"from":"FROM","cc":"eve@evil.example","recipients":[{"to":"ann@out.example"}],` + said, "4xx"},
		{"to senders of the inbox", `"from":"FROM","to":"ANN@OUT.EXAMPLE","cc":"Bob+Shop@out.example",` + said, "201"},
	}
	for _, tt := range tests {
		path := "/v1/emails"
		if strings.Contains(tt.body, `"recipients"`) {
			path += "/batch"
		}
		res := s.do(t, http.MethodPost, path, "{"+forms.Replace(tt.body)+"}", broken)
		if got := refusal(t, res, tt.want); got != tt.want {
			t.Errorf("%s: %s, want %s\n%s", tt.name, got, tt.want, res.body)
		}
	}
	reached := s.texts(t, `SELECT DISTINCT lower(r.email) AS email FROM recipients r JOIN emails e ON e.message_seq = r.message_seq ORDER BY email`)
	if d := cmp.Diff([]string{"ann@out.example", "bob+shop@out.example"}, reached); d != "" {
		t.Errorf("mail was sent to: -want +got:\n%s", d)
	}
}

// The draft of an email has all of it, and is sent with it after its approval.
func TestEmailBecomesADraft(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t, policy(store.PolicyApproval), func(in *store.Inbox) { in.Aliases.V = []string{fmt.Sprintf("alias%d", count.Add(1))} })
	alias := in.Aliases.V[0] + "@" + in.Domain
	body := `{"from":"Shop <` + alias + `>","to":"ann@out.example","cc":["bob@out.example"],"bcc":"carl@out.example","replyTo":"desk@out.example",
			"subject":"Order {{n}}","html":"<p>{{n}} chairs</p><svg>x</svg>","data":{"n":20},"attachments":[{"filename":"a.txt","content":"T3JkZXI="}],
			"category":"marketing","tags":{"flow":"order"},"metadata":{"order":1042}}`
	narrow := as(s.newKey(t, scopes("emails:send")))
	d := s.do(t, http.MethodPost, "/v1/emails", body, narrow, with(idempotencyKey, "k")).want(t, http.StatusAccepted)
	for path, want := range map[string]string{
		"object": `"draft"`, "status": `"pending"`, "kind": `"new"`, "inbox_id": `"` + in.ID + `"`, "from": `{"email":"` + alias + `","name":"Shop"}`,
		"to.0.email": `"ann@out.example"`, "cc.0.email": `"bob@out.example"`, "bcc.0.email": `"carl@out.example"`, "reply_to.0.email": `"desk@out.example"`,
		"subject": `"Order 20"`, "html": `"<p>20 chairs</p>"`, "attachments.0.filename": `"a.txt"`,
		"category": `"marketing"`, "tags": `{"flow":"order"}`, "metadata": `{"order":1042}`,
	} {
		d.wantAt(t, path, want)
	}
	s.do(t, http.MethodPost, "/v1/emails", body, narrow, with(idempotencyKey, "k")).want(t, http.StatusAccepted).wantSame(t, d)
	m := s.do(t, http.MethodPost, draftPath(t, d, "/send"), `{"version":1}`).want(t, http.StatusCreated)
	if raw := string(s.sentRaw(t, m)); !strings.Contains(raw, "From: Shop <"+alias+">\r\n") || !strings.Contains(raw, "Reply-To: desk@out.example") {
		t.Errorf("sent is:\n%s", raw)
	}
	if n := len(s.pages(t, "/v1/emails")); n != 0 {
		t.Errorf("%d emails", n)
	}

	// Of a batch, each email becomes a draft of its own.
	batch := `{"from":"` + in.Address + `","subject":"Hi {{name}}","text":"t","recipients":[
			{"to":"ann@out.example","variables":{"name":"Ann"},"tags":{"wave":1}},{"to":"bob@out.example","variables":{"name":"Bob"}}]}`
	b := s.do(t, http.MethodPost, "/v1/emails/batch", batch, with(idempotencyKey, "k")).want(t, http.StatusCreated)
	b.wantAt(t, "count", "0")
	b.wantAt(t, "emails", "[]")
	b.wantAt(t, "refused", "[]")
	s.do(t, http.MethodPost, "/v1/emails/batch", batch, with(idempotencyKey, "k")).want(t, http.StatusCreated).wantSame(t, b)
	for i, name := range []string{"Ann", "Bob"} {
		b.wantAt(t, fmt.Sprintf("drafts.%d.index", i), fmt.Sprint(i))
		s.do(t, http.MethodGet, "/v1/drafts/"+b.str(t, fmt.Sprintf("drafts.%d.draft_id", i)), "").want(t, http.StatusOK).wantAt(t, "subject", `"Hi `+name+`"`)
	}
	if n := len(s.pages(t, "/v1/drafts?status=pending")); n != 2 {
		t.Errorf("%d pending drafts, want 2", n)
	}
}
