package handlers_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/store"
)

// changing are the fields that differ between two resources of the same request.
var changing = []string{
	"id", "message_id", "thread_id", "rfc_message_id", "batch_id", "address", "name", "email", "url", "key", "key_hint", "prefix",
	"secret", "received_at", "created_at", "updated_at", "raw_url", "first_contact",
}

// strip removes the changing fields at every depth.
func strip(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range changing {
			delete(v, name)
		}
		for name := range v {
			v[name] = strip(v[name])
		}
	case []any:
		for i := range v {
			v[i] = strip(v[i])
		}
	}
	return v
}

// Every nullable field of a request accepts null, which means the same as
// leaving the field out.
func TestNullIsTheSameAsAbsent(t *testing.T) {
	t.Parallel()
	doc, err := openapi3.NewLoader().LoadFromData(gen.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	each(t, func(t *testing.T, s *server) {
		in := s.newInbox(t)
		received := s.receive(t, in, mailOf(in, "Hello."))
		create := func(path, body string) string {
			return path + "/" + s.do(t, http.MethodPost, path, body).want(t, http.StatusCreated).str(t, "id")
		}
		approving := s.newInbox(t, func(in *store.Inbox) { in.SendPolicy = store.PolicyApproval })
		draft := func() string {
			res := s.do(t, http.MethodPost, "/v1/inboxes/"+approving.ID+"/messages", `{"to":"a@b.example","subject":"s","text":"t","html":"<p>h</p>"}`)
			return "/v1/drafts/" + res.want(t, http.StatusAccepted).str(t, "id")
		}
		n := 0
		unique := func(prefix, suffix string) string {
			n++
			return prefix + string(rune('a'+n/26)) + string(rune('a'+n%26)) + suffix
		}
		inbox := "/v1/inboxes/" + in.ID
		webhook := create("/v1/webhooks", `{"url":"https://a.example/hook"}`)
		// Requests that are complete without any of their nullable fields.
		requests := map[string]struct {
			path func() string
			body func() string
		}{
			"createInbox":       {at("/v1/inboxes"), at(`{}`)},
			"updateInbox":       {func() string { return create("/v1/inboxes", `{}`) }, at(`{"send_policy":"open"}`)},
			"simulateMessage":   {at(inbox + "/simulate"), at(`{"from":"a@b.example","subject":"s","text":"t","html":"<p>h</p>"}`)},
			"sendMessage":       {at(inbox + "/messages"), at(`{"to":"a@b.example","subject":"s","text":"t","html":"<p>h</p>"}`)},
			"replyToMessage":    {at("/v1/messages/" + received.ID + "/reply"), at(`{"text":"t","html":"<p>h</p>"}`)},
			"replyToInvitation": {func() string { return s.invite(t, in) + "/calendar/reply" }, at(`{"response":"accept"}`)},
			"forwardMessage":    {at("/v1/messages/" + received.ID + "/forward"), at(`{"to":"a@b.example"}`)},
			"claimMessage":      {at("/v1/messages/claim"), at(`{"inbox_id":"` + approving.ID + `"}`)},
			"updateDraft":       {draft, at(`{"subject":"s"}`)},
			"sendEmail":         {at("/v1/emails"), at(`{"from":"` + sender + `","to":"a@b.example","subject":"s","text":"t","html":"<p>h</p>"}`)},
			"sendEmailBatch":    {at("/v1/emails/batch"), at(`{"from":"` + sender + `","recipients":[{"to":"a@b.example"}],"subject":"s","text":"t","html":"<p>h</p>"}`)},
			"createTemplate":    {at("/v1/templates"), at(`{"name":"n","subject":"s","html":"h","text":"t"}`)},
			"updateTemplate":    {func() string { return create("/v1/templates", `{"name":"n","subject":"s","html":"h"}`) }, at(`{"subject":"s"}`)},
			"replaceTemplate":   {func() string { return create("/v1/templates", `{"name":"n","subject":"s","html":"h"}`) }, at(`{"name":"n","subject":"s","html":"h","text":"t"}`)},
			"createContact":     {at("/v1/contacts"), func() string { return `{"email":"` + unique("c", "@b.example") + `"}` }},
			"updateContact": {
				func() string { return create("/v1/contacts", `{"email":"`+unique("u", "@b.example")+`"}`) }, at(`{"tags":{"x":"y"}}`),
			},
			"createWebhook":   {at("/v1/webhooks"), at(`{"url":"https://a.example/hook"}`)},
			"updateWebhook":   {func() string { return create("/v1/webhooks", `{"url":"https://a.example/hook"}`) }, at(`{"active":true}`)},
			"replayWebhook":   {at(webhook + "/replay"), at(`{"since":"2030-01-01T00:00:00Z"}`)},
			"stopSending":     {at("/v1/stop"), at(`{}`)},
			"resumeSending":   {at("/v1/resume"), at(`{}`)},
			"createListEntry": {at("/v1/lists"), at(`{"direction":"outbound","action":"block","pattern":"a@never.example"}`)},
			"createKey":       {at("/v1/keys"), at(`{"name":"n"}`)},
			"updateKey":       {func() string { return create("/v1/keys", `{"name":"n"}`) }, at(`{"name":"m"}`)},
			"updateApiKey":    {func() string { return create("/v1/api-keys", `{"name":"n"}`) }, at(`{"name":"m"}`)},
			"createApiKey":    {at("/v1/api-keys"), at(`{"name":"n"}`)},
		}
		fields := 0
		for _, item := range doc.Paths.Map() {
			for method, op := range item.Operations() {
				for _, field := range nullable(op) {
					if separate[op.OperationID+"."+field] {
						continue
					}
					r, ok := requests[op.OperationID]
					if !ok {
						t.Errorf("%s has no request here: its field %s may be null", op.OperationID, field)
						break
					}
					fields++
					t.Run(op.OperationID+"."+field, func(t *testing.T) {
						send := func(edit func(map[string]any)) any {
							var body map[string]any
							if err := json.Unmarshal([]byte(r.body()), &body); err != nil {
								t.Fatal(err)
							}
							edit(body)
							text, err := json.Marshal(body)
							if err != nil {
								t.Fatal(err)
							}
							res := s.do(t, method, r.path(), string(text))
							if res.status >= 300 {
								t.Fatalf("%s is refused with %d: %s", text, res.status, res.body)
							}
							if op.OperationID == "sendEmail" {
								res = s.do(t, http.MethodGet, "/v1/emails/"+res.str(t, "id"), "").want(t, http.StatusOK)
							}
							var v any
							if err := json.Unmarshal(res.body, &v); err != nil {
								t.Fatal(err)
							}
							return strip(v)
						}
						absent := send(func(body map[string]any) { delete(body, field) })
						null := send(func(body map[string]any) { body[field] = nil })
						if d := cmp.Diff(absent, null); d != "" {
							t.Errorf("null is not the same as absent: -absent +null:\n%s", d)
						}
						if op.OperationID == "stopSending" {
							s.do(t, http.MethodPost, "/v1/resume", `{}`).want(t, http.StatusOK)
						}
					})
				}
			}
		}
		if fields < 35 {
			t.Errorf("only %d fields tried", fields)
		}
	})
}

// A rule about two fields counts only those that have a value.
func TestNullDoesNotConflict(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		inbox := "/v1/inboxes/" + s.newInbox(t).ID
		tpl := s.do(t, http.MethodPost, "/v1/templates", `{"name":"n","subject":"s","html":"<p>h</p>"}`).want(t, http.StatusCreated).str(t, "id")
		email := `{"from":"` + sender + `","to":"a@b.example","subject":"s",`
		batch := `{"from":"` + sender + `","recipients":[{"to":"a@b.example"}],"subject":"s",`
		tests := []struct {
			name, path, body string
			status           int
			error            string
		}{
			{"a template, html null", "/v1/emails", email + `"template":"` + tpl + `","html":null}`, 201, ""},
			{"a template, all else null", "/v1/emails", email + `"template":"` + tpl + `","html":null,"text":null,"cc":null,"bcc":null,"replyTo":null,"scheduledAt":null}`, 201, ""},
			{"html, template null", "/v1/emails", email + `"template":null,"html":"h"}`, 201, ""},
			{"a template and html", "/v1/emails", email + `"template":"` + tpl + `","html":"h"}`, 400, "template_conflict template"},
			{"all null", "/v1/emails", email + `"template":null,"html":null,"text":null}`, 400, "content_required text"},
			{"a batch with a template, html null", "/v1/emails/batch", batch + `"template":"` + tpl + `","html":null}`, 201, ""},
			{"a batch with html, template null", "/v1/emails/batch", batch + `"template":null,"html":"h"}`, 201, ""},
			{"a batch with both", "/v1/emails/batch", batch + `"template":"` + tpl + `","html":"h"}`, 400, "template_conflict template"},
			{"a batch with all null", "/v1/emails/batch", batch + `"template":null,"html":null,"text":null}`, 400, "content_required text"},
			{"text and html null", inbox + "/messages", `{"to":"a@b.example","subject":"s","text":null,"html":null}`, 400, "content_required text"},
			{"raw, the rest null", inbox + "/simulate", `{"raw":"Subject: s\n\nt","from":null,"text":null,"html":null}`, 201, ""},
			{"raw and text", inbox + "/simulate", `{"raw":"Subject: s\n\nt","text":"t"}`, 400, "invalid_request text"},
			{"from null, no raw", inbox + "/simulate", `{"from":null,"text":"t"}`, 400, "invalid_request from"},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				res := s.do(t, http.MethodPost, tt.path, tt.body, brokenIf(tt.status)).want(t, tt.status)
				if tt.error != "" {
					res.wantError(t, tt.status, tt.error)
				}
			})
		}
	})
}

// separate lists the nullable fields that other tests cover.
var separate = map[string]bool{
	"updateDraft.text": true, "updateDraft.html": true, "updateTemplate.html": true, // null removes the part
	"rescheduleEmail.scheduledAt": true, "rescheduleEmail.scheduled_at": true, // one is required
	"simulateMessage.from": true, // required, unless raw is set
}

func at(text string) func() string { return func() string { return text } }

// nullable lists the fields of an operation's request body that may be null.
func nullable(op *openapi3.Operation) []string {
	if op.RequestBody == nil {
		return nil
	}
	media := op.RequestBody.Value.Content.Get("application/json")
	if media == nil || media.Schema == nil {
		return nil
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(media.Schema.Value.Properties)) {
		if mayBeNull(media.Schema.Value.Properties[name].Value) {
			names = append(names, name)
		}
	}
	return names
}

func mayBeNull(s *openapi3.Schema) bool {
	return s.Nullable || s.Type.Includes("null") || slices.ContainsFunc(s.OneOf, func(one *openapi3.SchemaRef) bool { return mayBeNull(one.Value) })
}
