package contract_test

import (
	"net/http"
	"strings"
)

func scriptEmails(s *script) {
	welcome := read[struct{ ID string }](s.t, s.ask("createTemplate", "", `{"name":"w","subject":"s","html":"<p>{{name}}</p>","text":"{{{name}}}"}`)).ID
	from := `{"from":"Acme, Inc. <hello@` + mailDomain + `>",`
	var ids []string
	for _, fields := range []string{
		`"to":["Ana <ana@example.org>","BEN@example.org"],"cc":[],"bcc":"log@example.org","replyTo":"h@example.org","subject":"Grüße","html":"<p>ß</p>"`,
		`"to":"ana@example.org","subject":"s","text":"t {{x}}","tags":{"b":"2","a":"1"},"metadata":{"z":1.50,"a":[null,"<&>"]},"category":"marketing"`,
		`"to":"ana@example.org","subject":"{{name}}","template":"` + welcome + `","data":{"name":"Zoë & Ü"},"idempotencyKey":"k"`,
		`"to":"ana@example.org","subject":"{{name}}","template":"` + welcome + `","data":{"name":"Zoë & Ü"},"idempotencyKey":"k"`,
		`"to":"missing@` + mailDomain + `","subject":"s","text":"t","attachments":[{"filename":"ä.txt","content":"eA=="}]`,
		`"to":"ana@example.org","subject":"later","text":"t","scheduledAt":"` + tomorrow() + `"`,
	} {
		ids = append(ids, read[email](s.t, s.ask("sendEmail", "", from+fields+`}`)).ID)
	}
	for _, fields := range []string{
		`"to":[],"subject":"s","text":"t"`, `"to":"a b","subject":"s","text":"t"`, `"to":"ana@example.org","subject":"s"`,
		`"to":"ana@example.org","subject":"s","text":""`, `"to":"ana@example.org","subject":"s","template":"tmpl_none"`,
		`"to":"ana@example.org","subject":"s","template":"` + welcome + `"`, `"to":"ana@example.org","subject":"s","html":"h","template":"x"`,
		`"to":"ana@example.org","subject":"s","text":"t","scheduledAt":"2099-01-01T00:00:00Z"`,
		`"to":"ana@example.org","subject":"s","text":"t","metadata":{"x":"` + strings.Repeat("x", 4096) + `"}`,
		`"to":"ana@example.org","subject":"s","html":"h","data":{"x":1},"text":"{{x}} {{y.z}}"`, `"to":"ana@example.org","subject":"s","text":"t","idempotencyKey":"k"`,
	} {
		s.ask("sendEmail", "", from+fields+`}`)
	}
	s.settle()
	for _, id := range ids {
		s.ask("getEmail", "/v1/emails/"+id, "")
	}
	scriptBatch(s, from, welcome)
	scriptScheduled(s, "/v1/emails/"+ids[len(ids)-1])
	for _, pair := range [][2]string{
		{"status", "sent"},
		{"status", "bounced"},
		{"status", "cancelled"},
		{"status", "sending"},
		{"status", "lost"},
		{"tag", "a:1"},
		{"tag", "a:2"},
		{"tag", "a"},
		{"batch_id", "batch_none"},
		{"cursor", "x"},
		{"limit", "0"},
	} {
		s.ask("listEmails", "", "", asking(pair[0], pair[1]))
	}
	s.pages("listEmails", "", asking("limit", "2"))
	s.ask("getEmail", "/v1/emails/em_none", "")
}

func scriptBatch(s *script, from, welcome string) {
	said := from + `"subject":"Hi, {{name}}","template":"` + welcome + `","templateData":{"name":"you"},"recipients":`
	b := read[email](s.t, s.ask("sendEmailBatch", "", said+`[{"to":"ana@example.org","variables":{"name":"Ana"},"tags":{"a":"1"}},
		{"to":["ben@example.org","carl@example.org"],"metadata":{"row":7}}]}`))
	for _, recipients := range []string{
		`[]`, `[{"to":"ana@example.org"},{"to":"x"}]`, `[{"to":"ana@example.org","variables":{"name":[]}}]`, `[{"to":"ana@example.org","variables":{"name":null}}]`,
	} {
		s.ask("sendEmailBatch", "", said+recipients+`}`)
	}
	s.settle()
	s.pages("listEmails", "", asking("batch_id", b.ID), asking("limit", "1"))
	s.ask("listEmails", "", "", asking("batch_id", b.ID), asking("tag", "a:1"))

	made := read[key](s.t, s.send(s.t, s.call("createKey").saying(`{"name":"test","mode":"test"}`)).want(s.t, http.StatusCreated))
	outcomes := []string{"bounced", "x+softbounce", "complained", "failed", "opened", "clicked", "suppressed", "ana"}
	b = read[email](s.t, s.ask("sendEmailBatch", "", from+`"subject":"s","text":"t","recipients":[{"to":"`+
		strings.Join(outcomes, `@example.org"},{"to":"`)+`@example.org"}]}`, asKey(made.Key)))
	s.settle()
	s.ask("listEmails", "", "", asking("batch_id", b.ID))
}

func scriptScheduled(s *script, path string) {
	s.ask("rescheduleEmail", path, `{"scheduledAt":"`+tomorrow()+`"}`)
	s.ask("rescheduleEmail", path, `{"scheduledAt":"2099-01-01T00:00:00Z"}`)
	s.ask("rescheduleEmail", path, `{}`)
	s.ask("cancelEmail", path, "")
	s.ask("cancelEmail", path, "")
	s.ask("rescheduleEmail", path, `{"scheduledAt":"`+tomorrow()+`"}`)
	s.ask("getEmail", path, "")
}
