package resend

import (
	"strings"
	"testing"
)

// Events of ours have Resend's form for endpoints that its API made.
func TestEventsHaveTheFormOfResend(t *testing.T) {
	t.Parallel()
	const email = `"object":"email","id":"em_1","from":"Acme <a@acme.test>","to":["ann@acme.test","bob@acme.test"],"subject":"s","tags":{"flow":"x"},
		"rfc_message_id":"<1@acme.test>","created_at":"2026-09-23T10:15:30.123Z"`
	for _, tt := range []struct{ typ, data, want string }{
		{"email.queued", email, `"to":["ann@acme.test","bob@acme.test"]},"type":"email.sent"}`},
		{"email.delivered", email + `,"recipient":"bob@acme.test"`, `"to":["bob@acme.test"]},"type":"email.delivered"}`},
		{"email.bounced", email + `,"recipient":"bob@acme.test","bounce_type":"hard","bounce":{"sub_type":"no_mailbox","diagnostic":"550 no"}`,
			`"bounce":{"message":"550 no","subType":"no_mailbox","type":"Permanent"}`},
		{"email.clicked", email + `,"link":"https://acme.test/"`, `"click":{"ipAddress":"","link":"https://acme.test/"`},
		{"email.suppressed", email, `"suppressed":{`},
		{"email.failed", email + `,"recipient":"bob@acme.test","recipients":[{"email":"bob@acme.test","last_response":"domain lost"}]`, `"failed":{"reason":"domain lost"}`},
		{"suppression.created", `"object":"suppression","id":"sup_1","email":"ann@acme.test","reason":"hard_bounce","source":"em_1","created_at":"x"`,
			`{"created_at":"x","email":"ann@acme.test","id":"sup_1","origin":"bounce","source_id":"em_1"},"type":"suppression.added"}`},
		{"webhook.test", `"object":"webhook_endpoint"`, `"data":{},"type":"webhook.test"}`},
	} {
		got, prefix, err := event([]byte(`{"id":"evt_1","type":"` + tt.typ + `","created_at":"2026-09-23T10:15:33.870Z","data":{` + tt.data + `}}`))
		if err != nil || prefix != "Svix" || !strings.Contains(string(got), tt.want) || !strings.Contains(string(got), `{"created_at":"2026-09-23T10:15:33.870Z","data":{`) {
			t.Errorf("%s: %s %s %v, want %s", tt.typ, prefix, got, err, tt.want)
		}
		if strings.HasPrefix(tt.typ, "email.") && !strings.Contains(string(got), `"email_id":"em_1"`) {
			t.Errorf("%s: %s", tt.typ, got)
		}
	}
}
