package handlers_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/mime"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

const sender = "hello@" + mailDomain

func (s *server) sendEmail(t *testing.T, fields string, opts ...option) response {
	t.Helper()
	return s.do(t, http.MethodPost, "/v1/emails", `{"from":"`+sender+`","to":"ann@out.example","subject":"Hi","text":"Hello.",`+fields+`}`, opts...)
}

// rawOfEmail opens the raw form of a queued email until the test ends.
func (s *server) rawOfEmail(t *testing.T, id string) *store.Raw {
	t.Helper()
	e, err := s.store.Email(t.Context(), s.account, nil, id)
	must(t, err)
	raw, err := s.store.Raw(t.Context(), e.Seq)
	must(t, err)
	t.Cleanup(func() { _ = raw.Close() }) // read only
	return raw
}

// queuedMail returns a queued email, parsed.
func (s *server) queuedMail(t *testing.T, id string) *mime.Message {
	t.Helper()
	m, err := mime.Parse(s.rawOfEmail(t, id), mail.DefaultLimits())
	must(t, err)
	return m
}

// says is wantAt for chaining.
func (r response) says(t *testing.T, path, want string) response {
	t.Helper()
	r.wantAt(t, path, want)
	return r
}

func TestSendEmail(t *testing.T) {
	s := serve(t)
	res := s.do(t, http.MethodPost, "/v1/emails", `{
			"from": "Acme, Inc. <`+sender+`>", "to": ["Ann <ann@out.example>", "bob@Out.example"], "cc": "carl@out.example",
			"bcc": ["dora@out.example"], "replyTo": "Help <help@out.example>", "subject": "Grüße", "html": "<p>Hello {{name}}</p>",
			"attachments": [{"filename": "a.txt", "content": "eA==", "contentType": "text/plain"}], "tags": {"flow": "receipt"},
			"metadata": {"order": 12345678901234567890, "a": "<b>"}, "category": "marketing"}`).want(t, http.StatusCreated)
	id := res.str(t, "id")
	for path, want := range map[string]string{
		"object": `"email"`, "status": `"queued"`, "from": `"Acme, Inc. <` + sender + `>"`, "subject": `"Grüße"`, "test_mode": `false`,
		"to": `["Ann <ann@out.example>","bob@out.example"]`, "scheduled_at": `null`, "created_at": `"` + after(0) + `"`,
	} {
		res.wantAt(t, path, want)
	}
	got := s.do(t, http.MethodGet, "/v1/emails/"+id, "").want(t, http.StatusOK)
	for path, want := range map[string]string{
		"cc": `["carl@out.example"]`, "bcc": `["dora@out.example"]`, "reply_to": `["Help <help@out.example>"]`,
		"html": `"<p>Hello {{name}}</p>"`, "text": `null`, "tags": `{"flow":"receipt"}`, "category": `"marketing"`, "batch_id": `null`,
		"sent_at": `null`, "recipients.0.status": `"queued"`, "recipients.3.kind": `"bcc"`,
	} {
		got.wantAt(t, path, want)
	}
	if !bytes.Contains(got.body, []byte(`"order":12345678901234567890`)) {
		t.Errorf("metadata changed: %s", got.body)
	}
	m := s.queuedMail(t, id)
	if m.From.Name != "Acme, Inc." || m.From.Email != sender || m.Text == "" || len(m.Attachments) != 1 || len(m.To) != 2 {
		t.Errorf("the mail: %+v", m)
	}
	s.do(t, http.MethodGet, "/v1/messages/"+id, "").want(t, http.StatusNotFound)
	s.do(t, http.MethodGet, "/v1/emails/em_none", "").want(t, http.StatusNotFound)
}

// Fields in camel case have aliases in snake case, and tags may be a list.
func TestOtherFormsOfAnEmail(t *testing.T) {
	s := serve(t)
	send := func(fields string, opts ...option) response {
		return s.do(t, http.MethodPost, "/v1/emails", `{"from":"`+sender+`","to":"ann@out.example","subject":"s","text":"t",`+fields+`}`, opts...)
	}
	body := `"reply_to":"help@out.example","scheduled_at":"` + after(time.Hour) + `","idempotency_key":"k",
			"attachments":[{"filename":"a","content":"eA==","content_type":"text/css"}],"tags":[{"name":"flow","value":"receipt"},{"name":"n","value":1.50}]`
	first := send(body).want(t, http.StatusCreated).says(t, "scheduled_at", `"`+after(time.Hour)+`"`)
	send(body).want(t, http.StatusCreated).wantSame(t, first)
	path := "/v1/emails/" + first.str(t, "id")
	s.do(t, http.MethodGet, path, "").want(t, http.StatusOK).says(t, "reply_to", `["help@out.example"]`).says(t, "tags", `{"flow":"receipt","n":1.50}`)
	if m := s.queuedMail(t, first.str(t, "id")); len(m.Attachments) != 1 || m.Attachments[0].ContentType != "text/css" {
		t.Errorf("the attachments: %+v", m.Attachments)
	}
	s.do(t, http.MethodPatch, path, `{"scheduled_at":"`+after(2*time.Hour)+`"}`).want(t, http.StatusOK).says(t, "scheduled_at", `"`+after(2*time.Hour)+`"`)
	for fields, param := range map[string]string{
		`"replyTo":"a@b.example","reply_to":"a@b.example"`: "reply_to", `"idempotencyKey":"a","idempotency_key":"a"`: "idempotency_key",
		`"scheduledAt":"` + after(0) + `","scheduled_at":"` + after(0) + `"`:                                   "scheduled_at",
		`"attachments":[{"filename":"a","content":"eA==","contentType":"text/css","content_type":"text/css"}]`: "attachments[0].content_type",
		`"tags":[{"name":"a"}]`: "tags[0].value", `"tags":[{"name":"a","value":{}}]`: "tags.a", `"tags":["a"]`: "tags[0]", `"tags":"a"`: "tags",
	} {
		send(fields, broken).wantError(t, http.StatusBadRequest, "invalid_request "+param)
	}
	send(`"tags":[{"name":"a","value":1},{"name":"a","value":2}]`).wantError(t, http.StatusBadRequest, "invalid_request tags[1].name")

	tmpl := s.do(t, http.MethodPost, "/v1/templates", `{"name":"order","subject":"Order {{n}}","text":"{{#each items}}\n- {{name}}{{#if gift}} (a gift){{/if}}\n{{/each}}\nThank you."}`).
		want(t, http.StatusCreated).str(t, "id")
	e := s.do(t, http.MethodPost, "/v1/emails/batch", `{"from":"`+sender+`","template":"order","template_data":{"n":7},"recipients":[
			{"to":"ann@out.example","variables":{"items":[{"name":"Tea","gift":true},{"name":"Pen"}]},"tags":[{"name":"a","value":"b"}]}]}`).want(t, http.StatusCreated)
	s.do(t, http.MethodGet, "/v1/emails/"+e.str(t, "emails.0.id"), "").want(t, http.StatusOK).says(t, "subject", `"Order 7"`).
		says(t, "text", `"- Tea (a gift)\n- Pen\nThank you."`).says(t, "html", `null`).says(t, "tags", `{"a":"b"}`)
	for data, want := range map[string]string{
		`{"n":7}`: "template_variable_missing data.items", `{"n":7,"items":"x"}`: "invalid_request data.items", `{"n":7,"items":[{}]}`: "template_variable_missing data.items.name",
	} {
		s.do(t, http.MethodPost, "/v1/emails", `{"from":"`+sender+`","to":"ann@out.example","template":"`+tmpl+`","data":`+data+`}`).wantError(t, http.StatusBadRequest, want)
	}
}

// Emails and batches have extra header fields, several addresses for replies, and images
// within the HTML.
func TestHeadersAndImagesOfEmails(t *testing.T) {
	s := serve(t)
	const rich = `"html":"<img src=\"cid:logo\">","replyTo":["a@out.example","B <b@out.example>"],"headers":{"X-Order":"1042","List-Id":"<l.out.example>"},
			"attachments":[{"filename":"l.png","content":"eA==","contentId":"logo"},{"filename":"t.txt","content":"eQ=="}]`
	one := s.do(t, http.MethodPost, "/v1/emails", `{"from":"`+sender+`","to":"ann@out.example","subject":"s",`+rich+`}`).want(t, http.StatusCreated)
	batch := s.do(t, http.MethodPost, "/v1/emails/batch", `{"from":"`+sender+`","subject":"s",`+rich+`,"recipients":[{"to":"ann@out.example"}]}`).want(t, http.StatusCreated)
	for _, id := range []string{one.str(t, "id"), batch.str(t, "emails.0.id")} {
		s.do(t, http.MethodGet, "/v1/emails/"+id, "").want(t, http.StatusOK).says(t, "reply_to", `["a@out.example","B <b@out.example>"]`)
		m := s.queuedMail(t, id)
		if len(m.ReplyTo) != 2 || len(m.Attachments) != 2 || m.Attachments[0].ContentID != "logo" || !m.Attachments[0].Inline || m.Attachments[1].Inline {
			t.Errorf("the mail: %+v", m)
		}
		if raw := s.rawText(t, id); !strings.Contains(raw, "\r\nX-Order: 1042\r\n") || !strings.Contains(raw, "multipart/related") {
			t.Errorf("the mail:\n%s", raw)
		}
	}
	for fields, param := range map[string]string{
		`"headers":{"From":"x"}`: "headers.From", `"headers":{"X-A":"a\nb"}`: "headers.X-A",
		`"attachments":[{"filename":"a","content":"eA==","contentId":"<x>"}]`: "attachments[0].contentId",
	} {
		s.do(t, http.MethodPost, "/v1/emails", `{"from":"`+sender+`","to":"ann@out.example","subject":"s","text":"t",`+fields+`}`, broken).
			wantError(t, http.StatusBadRequest, "invalid_request "+param)
	}
	big := `"attachments":[{"filename":"a","content":"` + strings.Repeat("AAAA", 7<<20) + `"}]`
	s.do(t, http.MethodPost, "/v1/emails/batch", `{"from":"`+sender+`","subject":"s","text":"t",`+big+`,"recipients":[{"to":"a@out.example"},{"to":"b@out.example"}]}`).
		wantError(t, http.StatusBadRequest, "invalid_request attachments")
}

// The events of one email, in order and in pages.
func TestEventsOfOneEmail(t *testing.T) {
	s := serve(t)
	s.suppress(t, "gone@out.example")
	id := s.do(t, http.MethodPost, "/v1/emails", `{"from":"`+sender+`","to":["ann@out.example","gone@out.example"],"subject":"s","text":"t"}`).
		want(t, http.StatusCreated).str(t, "id")
	s.sendEmail(t, `"scheduledAt":"`+after(24*time.Hour)+`"`).want(t, http.StatusCreated)
	for i, a := range []store.Attempt{
		{Status: store.RecipientQueued, Response: "451 4.7.1 later"}, {Status: store.RecipientQueued, Response: "451 4.7.1 later"},
		{Status: store.RecipientDelivered, Response: "250 2.0.0 Ok"},
	} {
		if a.Status == store.RecipientQueued {
			next := store.NewTime(s.clock.Now().Add(time.Minute))
			a.Next = &next
		}
		claimed, err := s.store.ClaimRecipients(t.Context(), 1, time.Minute, nil)
		if err != nil || len(claimed) != 1 {
			t.Fatal(i, len(claimed), err)
		}
		a.RecipientSeq, a.MessageSeq, a.Fence = claimed[0].Seq, claimed[0].MessageSeq, claimed[0].Fence
		must(t, s.store.RecordAttempt(t.Context(), a))
		s.clock.Add(time.Hour)
	}
	var types []string
	path := "/v1/emails/" + id + "/events?limit=2"
	for at := path; ; {
		page := s.do(t, http.MethodGet, at, "").want(t, http.StatusOK)
		for i := range 2 {
			if typ, ok := page.get(t, fmt.Sprintf("data.%d.type", i)); ok {
				types = append(types, fmt.Sprint(typ))
			}
		}
		if page.at(t, "has_more") != true {
			break
		}
		at = path + "&cursor=" + page.str(t, "cursor")
	}
	if got, want := strings.Join(types, " "), "email.queued email.suppressed email.delivery_delayed email.sent email.delivered"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	s.do(t, http.MethodGet, "/v1/emails/em_none/events", "").want(t, http.StatusNotFound)
	s.do(t, http.MethodGet, path+"&cursor=x", "").want(t, http.StatusBadRequest)
}

func TestEmailsThatAreRefused(t *testing.T) {
	s := serve(t)
	other := storetest.Inbox(t, s.store, func(in *store.Inbox) { in.Address = "other@" + mailDomain })
	for name, tt := range map[string]struct {
		body, param, code string
		status            int
	}{
		"nothing to say":      {`"from":"` + sender + `","to":"a@b.example"`, "text", "content_required", 400},
		"empty text":          {`"from":"` + sender + `","to":"a@b.example","text":""`, "text", "content_required", 400},
		"another domain":      {`"from":"x@example.net","to":"a@b.example","text":"t"`, "from", "domain_not_verified", 403},
		"a domain below":      {`"from":"x@sub.` + mailDomain + `","to":"a@b.example","text":"t"`, "from", "domain_not_verified", 403},
		"another's inbox":     {`"from":"` + strings.ToUpper(other.Name) + `+x@` + other.Domain + `","to":"a@b.example","text":"t"`, "from", "domain_not_verified", 403},
		"an unknown template": {`"from":"` + sender + `","to":"a@b.example","template":"tmpl_none"`, "template", "invalid_request", 400},
		"an inbox in quotes":  {`"from":"\"` + other.Name + `\"@` + other.Domain + `","to":"a@b.example","text":"t"`, "from", "invalid_request", 400},
		"a ms over 30 days":   {`"from":"` + sender + `","to":"a@b.example","text":"t","scheduledAt":"` + after(30*24*time.Hour+time.Millisecond) + `"`, "scheduledAt", "invalid_request", 400},
		"much metadata":       {`"from":"` + sender + `","to":"a@b.example","text":"t","metadata":{"x":"` + strings.Repeat("y", 4<<10) + `"}`, "metadata", "invalid_request", 400},
	} {
		res := s.do(t, http.MethodPost, "/v1/emails", `{"subject":"s",`+tt.body+`}`, brokenIf(tt.status))
		if res.status != tt.status || res.str(t, "error.code") != tt.code || res.str(t, "error.param") != tt.param {
			t.Errorf("%s: %d %s", name, res.status, res.body)
		}
	}
	s.do(t, http.MethodGet, "/v1/emails", "").want(t, http.StatusOK).says(t, "data", "[]")
}

// A key with inbox_ids sends from its inboxes and sees their emails (O11).
func TestEmailsFromInboxes(t *testing.T) {
	s := serve(t)
	from := func(address, to string, opts ...option) response {
		t.Helper()
		return s.do(t, http.MethodPost, "/v1/emails", `{"from":"`+address+`","to":"`+to+`","subject":"s","text":"t"}`, opts...)
	}
	open, closed := s.newInbox(t), s.newInbox(t)
	e := from(open.Address, "eve@out.example").want(t, http.StatusCreated)
	from(closed.Address, "ann@out.example").want(t, http.StatusCreated)

	narrow := as(s.newKey(t, onlyInboxes(closed.ID)))
	from(closed.Address, "ann@out.example", narrow).want(t, http.StatusCreated)
	for _, address := range []string{open.Address, sender} {
		from(address, "ann@out.example", narrow).want(t, http.StatusForbidden).says(t, "error.code", `"insufficient_scope"`)
	}
	s.do(t, http.MethodGet, "/v1/emails/"+e.str(t, "id"), "", narrow).want(t, http.StatusNotFound)
	s.do(t, http.MethodDelete, "/v1/emails/"+e.str(t, "id"), "", narrow).want(t, http.StatusNotFound)
	list := s.do(t, http.MethodGet, "/v1/emails", "", narrow).want(t, http.StatusOK)
	if from := list.strs(t, "data", "from"); !cmp.Equal(from, []string{closed.Address, closed.Address}) {
		t.Errorf("seen from %v", from)
	}
	if _, err := s.store.DeleteInbox(t.Context(), s.account, open.ID); err != nil {
		t.Fatal(err)
	}
	from(open.Address, "eve@out.example").want(t, http.StatusForbidden).says(t, "error.code", `"domain_not_verified"`)
}

func TestScheduledEmail(t *testing.T) {
	s := serve(t)
	id := s.sendEmail(t, `"scheduledAt":"`+after(time.Hour)+`"`).want(t, http.StatusCreated).says(t, "status", `"scheduled"`).str(t, "id")
	path := "/v1/emails/" + id
	s.do(t, http.MethodPatch, path, `{"scheduledAt":"`+after(2*time.Hour)+`"}`).want(t, http.StatusOK).
		says(t, "scheduled_at", `"`+after(2*time.Hour)+`"`)
	s.do(t, http.MethodPatch, path, `{"scheduledAt":"`+after(31*24*time.Hour)+`"}`).want(t, http.StatusBadRequest)
	s.do(t, http.MethodPatch, path, `{}`, broken).want(t, http.StatusBadRequest)
	s.do(t, http.MethodDelete, path, "").want(t, http.StatusOK).says(t, "status", `"cancelled"`).
		says(t, "recipients.0.status", `"cancelled"`)
	for _, method := range []string{http.MethodDelete, http.MethodPatch} {
		s.do(t, method, path, map[string]string{http.MethodPatch: `{"scheduledAt":"` + after(time.Hour) + `"}`}[method]).
			want(t, http.StatusConflict).says(t, "error.code", `"not_cancellable"`)
	}
	early := "/v1/emails/" + s.sendEmail(t, `"scheduledAt":"`+after(time.Hour)+`"`).want(t, http.StatusCreated).str(t, "id")
	s.do(t, http.MethodPatch, early, `{"scheduledAt":"`+after(-time.Hour)+`"}`).want(t, http.StatusOK).
		says(t, "status", `"queued"`).says(t, "scheduled_at", "null")
	s.do(t, http.MethodPatch, early, `{"scheduledAt":"`+after(time.Hour)+`"}`).want(t, http.StatusConflict).says(t, "error.code", `"not_cancellable"`)
	now := s.sendEmail(t, `"scheduledAt":"`+after(-time.Hour)+`"`).want(t, http.StatusCreated)
	now.says(t, "status", `"queued"`).says(t, "scheduled_at", "null")
	s.do(t, http.MethodDelete, "/v1/emails/"+now.str(t, "id"), "").want(t, http.StatusConflict)
}

func TestSendEmailBatch(t *testing.T) {
	s := serve(t)
	batch := func(recipients string, opts ...option) response {
		t.Helper()
		return s.do(t, http.MethodPost, "/v1/emails/batch", `{"from":"`+sender+`","subject":"s","text":"t","recipients":[`+recipients+`]}`, opts...)
	}
	two := `{"to":"ann@out.example","tags":{"n":"1"}},{"to":["bob@out.example","carl@out.example"],"metadata":{"row":2}}`
	key := with("Idempotency-Key", "k")
	res := batch(two, key).want(t, http.StatusCreated).says(t, "object", `"email.batch"`).says(t, "count", "2")
	id := res.str(t, "id")
	if again := batch(two, key).want(t, http.StatusCreated); again.str(t, "id") != id {
		t.Errorf("not a repeat: %s", again.body)
	}
	for query, want := range map[string]int{"batch_id=" + id: 2, "tag=n:1": 1, "tag=n:2": 0, "batch_id=" + id + "&tag=n:1&status=queued": 1,
		"to=Carl@OUT.example": 1, "to=*@out.example": 2, "to=carl": 0, "since=2000-01-01T00:00:00Z": 2, "until=2000-01-01T00:00:00Z": 0} {
		if ids := s.do(t, http.MethodGet, "/v1/emails?"+query, "").want(t, http.StatusOK).strs(t, "data", "id"); len(ids) != want {
			t.Errorf("%s: %v, want %d", query, ids, want)
		}
	}
	for recipients, param := range map[string]string{
		two + `,{"to":"bad"}`: "recipients[2].to", two + `,{"to":["a@b.example","bad"]}`: "recipients[2].to[1]",
		two + `,{"to":"a@b.example","metadata":{"x":"` + strings.Repeat("y", 4<<10) + `"}}`: "recipients[2].metadata",
		strings.TrimPrefix(strings.Repeat(`,{"to":"a@b.example"}`, 101), ","):               "recipients",
	} {
		batch(recipients, broken).want(t, http.StatusBadRequest).says(t, "error.param", fmt.Sprintf("%q", param))
	}
	if ids := s.do(t, http.MethodGet, "/v1/emails", "").strs(t, "data", "id"); len(ids) != 2 {
		t.Errorf("%d emails, want 2", len(ids))
	}
}

// Templates and batches always have variables; inline content has them if there
// is data (T1).
func TestEmailsWithVariables(t *testing.T) {
	s := serve(t)
	id := strings.TrimPrefix(s.newTemplate(t), "/v1/templates/")
	post := func(path, fields string) response {
		t.Helper()
		return s.do(t, http.MethodPost, path, `{"from":"`+sender+`",`+fields+`}`)
	}
	says := func(res response, subject, html, text string) {
		t.Helper()
		id := res.want(t, http.StatusCreated).str(t, "id")
		e := s.do(t, http.MethodGet, "/v1/emails/"+id, "").want(t, http.StatusOK)
		e.says(t, "subject", subject).says(t, "html", html).wantAt(t, "text", text)
	}
	to := `"to":"ann@out.example",`
	named := to + `"template":"` + id + `","subject":"For {{name}}","data":{"name":"A & B"}`
	says(post("/v1/emails", named), `"For A & B"`, `"<p>Hello, A &amp; B.</p>"`, `"Hello, A & B."`)
	says(post("/v1/emails", named+`,"text":"Own {{name}}"`), `"For A & B"`, `"<p>Hello, A &amp; B.</p>"`, `"Own A & B"`)
	says(post("/v1/emails", to+`"subject":"{{name}}","text":"{{name}}"`), `"{{name}}"`, `null`, `"{{name}}"`)
	says(post("/v1/emails", to+`"subject":"{{name}}","text":"{{{name}}}","data":{"name":"{{x}}"}`), `"{{x}}"`, `null`, `"{{x}}"`)
	saved := s.do(t, http.MethodGet, "/v1/templates/"+id, "").want(t, http.StatusOK)
	name := saved.str(t, "name")
	plain := strings.ReplaceAll(saved.str(t, "subject"), "{{name}}", "Ann")
	says(post("/v1/emails", to+`"template":"`+id+`","data":{"name":"Ann"}`), `"`+plain+`"`, `"<p>Hello, Ann.</p>"`, `"Hello, Ann."`)
	says(post("/v1/emails", to+`"template":"`+name+`","subject":"S","data":{"name":"Ann"}`), `"S"`, `"<p>Hello, Ann.</p>"`, `"Hello, Ann."`)
	for fields, want := range map[string]string{
		`"text":"t"`:                            "invalid_request subject",
		`"template":"` + id + `","subject":"s"`: "template_variable_missing data.name",
		`"template":"` + id + `","subject":"s","data":{"name":null}`:        "template_variable_missing data.name",
		`"template":"tmpl_none","subject":"s"`:                              "invalid_request template",
		`"text":"{{if x}}","subject":"s","data":{}`:                         "invalid_request text",
		`"text":"t","subject":"{{x}}","data":{"x":"a\r\nBcc: b@c.example"}`: "invalid_request data.x",
	} {
		post("/v1/emails", to+fields).wantError(t, http.StatusBadRequest, want)
	}
	s.do(t, http.MethodPost, "/v1/emails", `{"from":"`+sender+`",`+to+`"template":"`+id+`","subject":"s","html":"h"}`, broken).
		wantError(t, http.StatusBadRequest, "template_conflict template")

	s.do(t, http.MethodPost, "/v1/templates", `{"name":"`+name+`","subject":"s","html":"h"}`).want(t, http.StatusCreated)
	post("/v1/emails", to+`"template":"`+name+`"`).wantError(t, http.StatusBadRequest, "invalid_request template") // two have the name

	batch := `"subject":"{{greeting}}, {{name}}","template":"` + id + `","templateData":{"greeting":"Hi","name":"you"},"recipients":`
	res := post("/v1/emails/batch", batch+`[{"to":"ann@out.example","variables":{"name":"Ann"}},{"to":"bob@out.example"}]`).want(t, http.StatusCreated)
	if d := cmp.Diff([]string{"Hi, Ann", "Hi, you"}, res.strs(t, "emails", "subject")); d != "" {
		t.Errorf("subjects: -want +got:\n%s", d)
	}
	post("/v1/emails/batch", batch+`[{"to":"ann@out.example"},{"to":"bob@out.example","variables":{"name":["x"]}}]`).
		wantError(t, http.StatusBadRequest, "invalid_request recipients[1].variables.name")
}
